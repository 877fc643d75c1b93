import importlib.util
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from collegium.data import environment
from collegium.errors import BackendError
from fake_blender import broken_blender, fake_blender

PIP = """
import os, subprocess, sys
python = sys.argv[sys.argv.index("--python") + 1]
site = subprocess.run([python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True)
with open(os.path.join(site.stdout.strip(), "bpy.py"), "w") as file:
    file.write({content!r})
with open(__file__ + ".log", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
print("working on it")
sys.exit({code!r})
"""


@pytest.fixture(autouse=True)
def nobody_has_blender(monkeypatch):
    monkeypatch.delenv("COLLEGIUM_BLENDER", raising=False)
    monkeypatch.setattr(environment, "find_spec", lambda name: None)


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Call it to have a pip that puts `content` into the environment and ends with `code`."""

    def install(content="", code=0):
        script = tmp_path / "pip.py"
        script.write_text(PIP.format(content=content, code=code))
        monkeypatch.setattr(environment, "_pip", lambda home: [sys.executable, str(script)])
        return Path(f"{script}.log")

    return install


def test_the_variable_comes_first(monkeypatch, tmp_path, pip):
    pip()
    environment.make_environment()
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(fake_blender(tmp_path)))
    assert environment.environment() == tmp_path / "fake-blender"


@pytest.mark.parametrize("name", ["absent", "folder"])
def test_a_variable_that_leads_nowhere(monkeypatch, tmp_path, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(tmp_path / name))
    with pytest.raises(BackendError, match=f"COLLEGIUM_BLENDER names {tmp_path}/{name}, which cannot import bpy: "):
        environment.find_environment()


def test_a_python_without_blender(monkeypatch):
    monkeypatch.setenv("COLLEGIUM_BLENDER", sys.executable)
    if importlib.util.find_spec("bpy"):
        pytest.skip("this Python has Blender in it")
    with pytest.raises(BackendError, match="cannot import bpy: ModuleNotFoundError: No module named 'bpy'"):
        environment.find_environment()


def test_a_missing_library_is_named_with_its_packages(monkeypatch, tmp_path):
    said = "ImportError: libXrender.so.1: cannot open shared object file: No such file or directory"
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(broken_blender(tmp_path, said)))
    with pytest.raises(BackendError, match=r"library libXrender\.so\.1 is missing; .* apt install .*libxrender1"):
        environment.find_environment()


def test_this_python_comes_second(monkeypatch, tmp_path, pip):
    pip()
    environment.make_environment()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "bpy.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "here"))
    monkeypatch.setattr(environment, "find_spec", lambda name: name == "bpy" or None)
    assert environment.environment() == Path(sys.executable)


def test_one_is_made_once_and_said_so(tmp_path, pip):
    log = pip()
    assert environment.find_environment() is None
    told = []
    python = environment.environment(told.append)
    assert told == [environment.NOTICE]
    assert python == tmp_path / "cache" / "blender" / "bin" / "python"
    assert environment.environment(told.append) == python
    assert environment.make_environment() == python
    assert len(told) == 1
    [call] = log.read_text().splitlines()
    assert call.startswith(f"--python {python} install")
    assert call.endswith("bpy==5.0.1 numpy<2")


def test_what_pip_says_last_is_told_and_the_rest_is_not_believed(tmp_path, pip):
    pip("raise SystemExit('the half of it')", "ERROR: no space left")
    with pytest.raises(BackendError, match=r"^Blender could not be fetched, pip reports: ERROR: no space left$"):
        environment.make_environment()
    assert (tmp_path / "cache" / "blender").is_dir()
    assert environment.find_environment() is None
    leftover = tmp_path / "cache" / "blender" / "leftover"
    leftover.touch()
    pip()
    assert environment.make_environment().exists()
    assert not leftover.exists()


def test_an_environment_of_other_versions_is_made_again(monkeypatch, pip):
    log = pip()
    environment.make_environment()
    monkeypatch.setattr(environment, "REQUIREMENTS", ("bpy==6.0.0", "numpy<2"))
    assert environment.find_environment() is None
    environment.make_environment()
    assert "bpy==6.0.0" in log.read_text().splitlines()[1]


def test_an_installed_blender_that_does_not_start(pip):
    pip("raise ImportError('libXi.so.6: cannot open shared object file: No such file or directory')")
    with pytest.raises(BackendError, match=r"is installed, but cannot be started: the shared library libXi\.so\.6"):
        environment.make_environment()
    with pytest.raises(BackendError, match=r"libXi\.so\.6 is missing"):
        environment.find_environment()


def test_only_one_python_will_do(monkeypatch):
    monkeypatch.setattr(environment, "PYTHON", (3, 1))
    with pytest.raises(BackendError, match=r"needs Python 3\.1, which is not here.*COLLEGIUM_BLENDER"):
        environment.make_environment()


def test_without_any_pip(monkeypatch):
    run = environment._run
    monkeypatch.setattr(environment, "_run", lambda command, env=None: run(command) if "venv" in command else (1, ""))
    with pytest.raises(BackendError, match=r"needs pip 22\.3 or later"):
        environment.make_environment()


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BackendError, match=r"cannot make .*: Not a directory"):
        environment.make_environment()


@pytest.mark.parametrize("program", ["true", "echo"])
def test_what_is_no_python_does_not_pass_for_one(monkeypatch, program):
    path = shutil.which(program)
    monkeypatch.setenv("COLLEGIUM_BLENDER", path)
    with pytest.raises(BackendError, match=f"COLLEGIUM_BLENDER names {path}, which cannot import bpy: "):
        environment.find_environment()


def test_how_far_the_fetching_has_come_is_seen_by_what_grows(monkeypatch, pip, tmp_path):
    pip("#" * 5000)
    seen = []

    class Bar:
        completed = 0

        def move_to(self, completed):
            seen.append(completed)
            Bar.completed = completed

    @contextmanager
    def progress(label, total, **_):
        assert (label, total) == ("fetching Blender", 1342e6)
        yield Bar()

    monkeypatch.setattr(environment, "progress", progress)
    wait = environment.wait
    monkeypatch.setattr(environment, "wait", lambda running, timeout: wait(running, timeout=0.001))
    home = environment.make_environment().parent.parent
    assert seen == sorted(seen)
    assert seen[0] > 0
    assert not (home / "tmp").exists()
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file").write_bytes(bytes(7))
    assert environment._bytes_in(tmp_path / "some") == 7
