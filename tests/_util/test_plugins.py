"""Parts of users: found by file and by entry point, and what is wrong with them said in one sentence."""

import os
import subprocess
import sys

import pytest
from joblib import Parallel, delayed

from collegium._util import plugins
from collegium.errors import InputFileError
from own_parts import install


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where files are named without a path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


def test_a_name_of_a_file(folder):
    (folder / "mine.py").write_text("LIMIT = 7\ndef twice(x):\n    return 2 * x\n")
    assert plugins.load("mine.py:LIMIT", plugins.DATA) == 7
    assert plugins.load(f"{folder}/mine.py:twice", plugins.DATA)(4) == 8
    assert plugins.call("mine.py:twice", plugins.MODELS, "ab") == "abab"


def test_a_file_is_run_once_and_again_when_it_was_edited(folder, monkeypatch):
    """Also where the edit leaves size and time as they were, as Python's own cache would not notice."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = folder / "mine.py"
    file.write_text("class Part: number = 1\n")
    times = file.stat()
    first = plugins.load("mine.py:Part", plugins.DATA)
    assert plugins.load(str(file) + ":Part", plugins.DATA) is first
    file.write_text("class Part: number = 2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert plugins.load("mine.py:Part", plugins.DATA).number == 2
    assert not list(folder.rglob("*.pyc"))


def test_what_lies_beside_a_file_can_be_imported_and_hides_nothing(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    (folder / "beside_mine.py").write_text("NUMBER = 3\n")
    (folder / "wave.py").write_text("raise RuntimeError('this is not the one that was meant')\n")
    (folder / "mine.py").write_text("import wave\n\nfrom beside_mine import NUMBER\n")
    assert plugins.load("mine.py:NUMBER", plugins.DATA) == 3
    (folder / "other").mkdir()
    (folder / "other" / "mine.py").write_text("NUMBER = 4\n")
    assert plugins.load("other/mine.py:NUMBER", plugins.DATA) == 4  # two files of one name


def test_objects_go_to_processes_that_train(folder):
    """They cannot import the file by a name."""
    (folder / "mine.py").write_text(
        "import os\nclass Part:\n    def where(self):\n        return os.getpid()\n\n"
        "def ask(part):\n    return part.where()\n"
    )
    part, ask = (plugins.load(f"mine.py:{name}", plugins.MODELS) for name in ("Part", "ask"))
    found = Parallel(n_jobs=2, backend="loky")(delayed(ask)(part()) for _ in range(2))
    assert os.getpid() not in found


def test_another_process_gives_a_module_the_same_name(folder):
    """So that an error raised there can be raised here."""
    (folder / "mine.py").write_text("class Mistake(Exception): pass\n")
    script = "import sys; from collegium._util import plugins; print(plugins.load(sys.argv[1], '').__module__)"
    written = plugins.absolute("mine.py:Mistake")
    said = subprocess.run([sys.executable, "-c", script, written], cwd="/", capture_output=True, text=True, check=True)
    assert said.stdout.strip() == plugins.load("mine.py:Mistake", "").__module__


LOADING = {
    "no file": ("missing.py:load", "", "there is no file missing.py"),
    "a folder": (".py:load", None, "cannot read .py: Is a directory"),
    "no name": ("mine.py", "", "write FILE.py:NAME, such as mine.py:load"),
    "empty name": ("mine.py:", "", "'mine.py:' does not name what to take from the file"),
    "not in it": ("mine.py:load", "def lode(): pass", "mine.py has no 'load' in it"),
    "syntax": ("mine.py:load", "x = 1\n\ndef load(:\n", "mine.py cannot be loaded, line 3: SyntaxError: "),
    "raises": (
        "mine.py:load",
        "a = 1\nb = a / 0\n",
        "mine.py cannot be loaded, line 2: ZeroDivisionError: division by",
    ),
    "raises below": ("mine.py:load", "import os\n\nos.stat('no')\n", "line 3: FileNotFoundError: "),
    "import": ("mine.py:load", "\nimport nowhere_at_all\n", "line 2: ModuleNotFoundError: No module named 'nowhere_at"),
    "exits": ("mine.py:load", "import sys\nsys.exit('enough')\n", "line 2: SystemExit: enough"),
}


@pytest.mark.parametrize("case", LOADING)
def test_a_file_that_cannot_be_loaded_gets_a_sentence(folder, case):
    written, text, sentence = LOADING[case]
    if text is None:
        (folder / ".py").mkdir()
    elif case != "no file":
        (folder / "mine.py").write_text(text)
    with pytest.raises(InputFileError) as refusal:
        plugins.load(written, plugins.DATA)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_function_that_fails_is_named_with_its_line(folder):
    (folder / "mine.py").write_text(
        "def load():\n    import numpy as np\n    return np.ones(3) @ np.ones(4)\n\nload.x = 1\n"
    )
    with pytest.raises(InputFileError, match=r"^mine.py:load failed, line 3: ValueError: matmul"):
        plugins.call("mine.py:load", plugins.DATA)
    with pytest.raises(InputFileError, match=r"^mine.py:load failed: TypeError: load\(\) takes 0 positional"):
        plugins.call("mine.py:load", plugins.MODELS, 1)
    (folder / "mine.py").write_text("load = 7\n")
    with pytest.raises(InputFileError, match=r"^mine.py:load must be a function, got int$"):
        plugins.call("mine.py:load", plugins.DATA)


def test_entry_points(folder, monkeypatch):
    (folder / "parts_of_mine.py").write_text("def office():\n    return 'office'\n")
    entries = {"office": "parts_of_mine:office", "gone": "parts_of_mine:gone", "lost": "no_such_module_of_mine:x"}
    install(folder, monkeypatch, data=entries)
    assert plugins.names(plugins.DATA) == ["gone", "lost", "office"]
    assert plugins.names(plugins.MODELS) == []
    assert plugins.call("office", plugins.DATA) == "office"
    assert plugins.fingerprint("office", plugins.DATA) == "office parts 1.2"
    with pytest.raises(InputFileError, match=r"^'gone' \(parts_of_mine:gone\) cannot be loaded: AttributeError: "):
        plugins.load("gone", plugins.DATA)
    with pytest.raises(InputFileError, match=r"^'lost' .* cannot be loaded: ModuleNotFoundError: "):
        plugins.load("lost", plugins.DATA)
    with pytest.raises(
        InputFileError, match=r"no 'b' among the data: choose one of a, gone, lost, office, or write FILE"
    ):
        plugins.load("b", plugins.DATA, known=["a"])
    with pytest.raises(InputFileError, match=r"^there is no 'b' among the models: write FILE.py:NAME$"):
        plugins.load("b", plugins.MODELS)


def test_a_fingerprint_is_of_the_code_not_of_its_place(folder):
    (folder / "other").mkdir()
    for path in ("mine.py", "other/mine.py"):
        (folder / path).write_text("def load(): return 1\ndef also(): return 2\n")
    first = plugins.fingerprint("mine.py:load", plugins.DATA)
    assert first == plugins.fingerprint("other/mine.py:load", plugins.DATA)
    assert first != plugins.fingerprint("mine.py:also", plugins.DATA)
    (folder / "mine.py").write_text("def load(): return 3\n")
    assert first != plugins.fingerprint("mine.py:load", plugins.DATA)


def test_a_digest_follows_what_lies_beside_the_file_and_is_imported(tmp_path):
    (tmp_path / "mine.py").write_text("import helper\nfrom deep.er import x\ndef load(): return helper.SHIFT\n")
    (tmp_path / "helper.py").write_text("from other import y\nSHIFT = 0.5\n")
    (tmp_path / "other.py").write_text("y = 1\n")
    (tmp_path / "unrelated.py").write_text("z = 1\n")
    written = f"{tmp_path / 'mine.py'}:load"
    first = plugins.fingerprint(written, plugins.DATA)
    (tmp_path / "unrelated.py").write_text("z = 2\n")
    assert plugins.fingerprint(written, plugins.DATA) == first
    for name in ("helper", "other", "mine"):
        path = tmp_path / f"{name}.py"
        path.write_text(path.read_text() + "# changed\n")
        changed = plugins.fingerprint(written, plugins.DATA)
        assert changed != first
        first = changed
