"""Files are whole or not there at all, whatever happens while they are written."""

import os
import threading
from pathlib import Path

import pytest

from collegium._util.files import LEFTOVERS, atomic_write
from collegium.errors import InputFileError


def write(path, content, then=bool, **how):
    with atomic_write(path, **how) as file:
        file.write(content)
        then()


def test_a_file_appears_whole_and_replaces_an_older_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    seen = []
    replace = os.replace

    def watch(old, new):
        seen.append((Path(old).parent, Path(old).read_bytes(), path.read_bytes() if path.exists() else None))
        replace(old, new)

    monkeypatch.setattr(os, "replace", watch)
    write(path, b"first")
    write(str(path), b"second")
    assert seen == [(tmp_path, b"first", None), (tmp_path, b"second", b"first")]
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("moment", ["write", "os.fsync", "os.replace"])
@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("no form")]
)
def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path, monkeypatch, moment, failure):
    def fail(*_):
        raise failure

    path = tmp_path / "file"
    path.write_bytes(b"older")
    if moment != "write":
        monkeypatch.setattr(moment, fail)
    expected = InputFileError if isinstance(failure, OSError) else type(failure)
    message = f"^cannot write {path}: No space left on device$" if expected is InputFileError else None
    with pytest.raises(expected, match=message):
        write(path, b"half of a fi", sync=True, then=fail if moment == "write" else bool)
    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("sync", [False, True])
def test_a_synced_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, sync):
    calls = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda number: calls.append(os.fstat(number).st_size))
    monkeypatch.setattr(os, "replace", lambda old, new: (calls.append("named"), replace(old, new)))
    write(tmp_path / "file", b"content", sync=sync)
    assert calls == ([7] if sync else []) + ["named"]


def test_folders_are_made_only_if_asked_for(tmp_path):
    with pytest.raises(InputFileError, match=r"cannot write .*: No such file"):
        write(tmp_path / "a" / "b" / "file", b"x")
    assert os.listdir(tmp_path) == []
    write(tmp_path / "a" / "b" / "file", b"x", parents=True)
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"x"


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize("place", ["", "in the way/file", "long" * 100])
def test_places_that_cannot_be_written(tmp_path, place, parents):
    (tmp_path / "in the way").write_text("no folder")
    with pytest.raises(InputFileError, match=r"^cannot write .*: [A-Z][a-z ]+$"):
        write(tmp_path / place, b"x", parents=parents)
    assert os.listdir(tmp_path) == ["in the way"]


def test_a_link_keeps_leading_where_it_led(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "file")
    write(link, b"through the link")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_bytes() == b"through the link"
    assert os.listdir(tmp_path / "elsewhere") == ["file"]


@pytest.mark.parametrize("kind", ["named", "of the shell"])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, kind):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names on this system")
    read = []
    if kind == "named":
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
        reader.start()
        write(path, b"content")
        reader.join()
        assert path.is_fifo()
    else:  # as in --save >(gzip), or --save /dev/stdout before a pipe
        outlet, inlet = os.pipe()
        write(f"/dev/fd/{inlet}", b"content")
        os.close(inlet)
        with open(outlet, "rb") as file:
            read.append(file.read())
    assert read == [b"content"]


def test_two_at_a_time_do_not_meet(tmp_path):
    with atomic_write(tmp_path / "file") as one:
        one.write(b"o")
        write(tmp_path / "file", b"two")
        one.write(b"ne")
    assert (tmp_path / "file").read_bytes() == b"one"


def test_what_a_killed_process_leaves_can_be_found(tmp_path):
    with atomic_write(tmp_path / "file"):
        [part] = tmp_path.iterdir()
        assert list(tmp_path.glob(LEFTOVERS)) == [part]
