import os

from collegium._util import machine


def test_no_more_cores_than_there_are():
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)


def test_a_container_gets_its_share(monkeypatch):
    monkeypatch.setattr(machine, "_limits", lambda name: ["150000 100000", "max 100000"])
    machine.core_share.cache_clear()
    try:
        assert machine.core_share() == 1.5
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
        assert machine.cores() == 2
    finally:
        machine.core_share.cache_clear()


def test_memory_is_what_the_narrowest_limit_leaves(monkeypatch):
    free = machine.free_memory()
    assert free is None or free > 0
    limits = {"memory.max": ["max", "3000"], "memory.current": ["1000", "1000"]}
    monkeypatch.setattr(machine, "_limits", limits.__getitem__)
    if free is not None:
        assert machine.free_memory() == 2000


def test_only_what_is_installed_has_a_version():
    assert set(machine.versions(["numpy", "no-such-package"])) == {"numpy"}
