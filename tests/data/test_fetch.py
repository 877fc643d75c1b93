import hashlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from children import interruptible
from collegium import data
from collegium.data import folders
from collegium.data.fetch import already_there, fetch_cifar10
from collegium.errors import DataError, InputFileError
from serving import Answer, serve
from tiny_data import cifar_entries, cifar_file, tar_gz, write_cifar

ARCHIVE = tar_gz(cifar_entries())
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def test_from_the_server_to_the_data_set(tmp_path):
    with serve(ARCHIVE, plan=[Answer(cut=5000), Answer(cut=5000)]) as site:
        folder = fetch_cifar10(tmp_path / "new", site.url, DIGEST, pause=0.001)
    assert folder == tmp_path / "new/cifar-10-batches-bin"
    assert names(tmp_path / "new") == ["cifar-10-batches-bin"]
    assert (folder / "data_batch_3.bin").read_bytes() == cifar_file((3, 5), seed=2)
    train, test = data.cifar10(root=tmp_path / "new")
    assert (train.counts, test.counts) == ((5, 5), (1, 1))


def test_where_it_is_put_by_default(tmp_path, monkeypatch, no_data):
    with serve(ARCHIVE) as site:
        assert fetch_cifar10(None, site.url, DIGEST) == no_data / ".local/share/collegium/cifar-10-batches-bin"
        monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "set"))
        assert fetch_cifar10(None, site.url, DIGEST) == tmp_path / "set/cifar-10-batches-bin"


def test_an_archive_brought_by_hand_needs_no_network(tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(ARCHIVE)
    with serve(b"") as site:
        fetch_cifar10(tmp_path, site.url, DIGEST)
    assert site.asked == []
    assert names(tmp_path) == ["cifar-10-batches-bin"]


def test_the_official_archive_is_not_replaced_by_anything_else(tmp_path):
    with serve(ARCHIVE) as site, pytest.raises(InputFileError, match="not the 170052171 expected"):
        fetch_cifar10(tmp_path, site.url)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (("../evil", b"x"), r"'\.\./evil'"),
        (("cifar-10-batches-bin/data_batch_6.bin", b"x"), "data_batch_6"),
        (("cifar-10-batches-bin/data_batch_1.bin", b""), "data_batch_1"),
    ],
)
def test_a_bad_archive_with_the_right_checksum_is_still_not_trusted(tmp_path, entry, says):
    archive = tar_gz([entry, *(one for one in cifar_entries() if one[0] != entry[0])])
    with serve(archive) as site, pytest.raises(InputFileError, match=says):
        fetch_cifar10(tmp_path / "to", site.url, hashlib.sha256(archive).hexdigest())
    assert not (tmp_path / "to/cifar-10-batches-bin").exists()
    assert not (tmp_path / "evil").exists()


def test_what_is_there_is_left_alone(tmp_path):
    write_cifar(tmp_path)
    with (
        serve(ARCHIVE) as site,
        pytest.raises(DataError, match=r"something else already \(45 images.*60000\).*move it away.*--to"),
    ):
        fetch_cifar10(tmp_path, site.url, DIGEST)
    assert site.asked == []
    assert already_there(tmp_path) is None  # not the official set


def test_nowhere_to_put_it(tmp_path):
    (tmp_path / "file").write_text("")
    with serve(ARCHIVE) as site, pytest.raises(DataError, match="is a file: name the folder"):
        fetch_cifar10(tmp_path / "file", site.url, DIGEST)
    with serve(ARCHIVE) as site, pytest.raises(DataError, match="cannot write into the folder"):
        fetch_cifar10(tmp_path / "file" / "below", site.url, DIGEST)


def test_two_at_a_time(tmp_path):
    with serve(ARCHIVE) as site:
        with folders.locked(tmp_path, RuntimeError()), pytest.raises(DataError, match="another process is fetching"):
            fetch_cifar10(tmp_path, site.url, DIGEST)
        assert site.asked == []
        fetch_cifar10(tmp_path, site.url, DIGEST)


def test_what_a_killed_run_left_is_swept_away(tmp_path):
    (tmp_path / ".cifar-10-batches-bin-abc" / "cifar-10-batches-bin").mkdir(parents=True)
    with serve(ARCHIVE) as site:
        fetch_cifar10(tmp_path, site.url, DIGEST)
    assert names(tmp_path) == ["cifar-10-batches-bin"]


@pytest.mark.parametrize("brought", [False, True])
def test_a_refused_archive_stays_only_with_those_who_brought_it(tmp_path, brought):
    evil = tar_gz([("../evil", b"x")])
    if brought:
        (tmp_path / "cifar-10-binary.tar.gz").write_bytes(evil)
    with serve(evil) as site, pytest.raises(InputFileError, match="evil"):
        fetch_cifar10(tmp_path, site.url, hashlib.sha256(evil).hexdigest())
    assert names(tmp_path) == (["cifar-10-binary.tar.gz"] if brought else [])


def test_an_archive_that_may_not_be_read(tmp_path, forbid):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(ARCHIVE)
    forbid(tmp_path / "cifar-10-binary.tar.gz")
    with serve(ARCHIVE) as site, pytest.raises(InputFileError, match=r"tar\.gz: Permission denied"):
        fetch_cifar10(tmp_path, site.url, DIGEST)


def test_ctrl_c_leaves_a_part_to_go_on_from(tmp_path):
    code = "import sys; from collegium.data.fetch import fetch_cifar10; fetch_cifar10(*sys.argv[1:])"
    part = tmp_path / "cifar-10-binary.tar.gz.part"
    hold = threading.Event()
    with serve(ARCHIVE, plan=[Answer(cut=20_000, hold=hold)]) as site:
        command = [sys.executable, "-c", code, str(tmp_path), site.url, DIGEST]
        with interruptible(command, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and not (part.exists() and part.stat().st_size):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.wait() != 0
        hold.set()
        assert 0 < part.stat().st_size <= 20_000
        assert names(tmp_path) == [part.name, part.name + ".json"]
        came = part.stat().st_size
        fetch_cifar10(tmp_path, site.url, DIGEST)
        assert site.asked[-1]["Range"] == f"bytes={came}-"
    assert names(tmp_path) == ["cifar-10-batches-bin"]
