"""`import collegium` is cheap and brings in nothing heavy; its names are what it says."""

import subprocess
import sys

import pytest

import collegium

HEAVY = ("numba", "torch", "ray", "zenoh", "matplotlib", "sklearn", "pandas")


def loaded_after(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "code",
    ["import collegium", "from collegium import topology, policy, protocol, corruption, collaborate, check_rule"],
)
def test_importing_loads_nothing_heavy(code):
    assert loaded_after(code).isdisjoint(HEAVY)


def test_every_public_name_is_there():
    for name in collegium.__all__:
        assert getattr(collegium, name) is not None
    assert set(collegium.__all__) <= set(dir(collegium))


def test_modules_named_in_the_documentation_are_reached_from_the_package():
    code = "import collegium; print(collegium.randomness.child(0, 1))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        collegium.nonsense  # noqa: B018


def test_second_process_does_not_compile():
    code = (
        "from collegium import collaborate, policy, topology\n"
        "import collegium.kernels.arithmetic as kernels\n"
        "collaborate([[1.0, 2.0, 3.0]], policy.uniform(topology.ring(3)))\n"
        "print(sum(kernels.block.stats.cache_misses.values()), sum(kernels.block.stats.cache_hits.values()))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[1].stdout.split() == ["0", "1"]
