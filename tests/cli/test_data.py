import hashlib
import json

import pytest

from serving import serve
from tiny_data import cifar_entries, real_data, tar_gz, write_cifar, write_views

ARCHIVE = tar_gz(cifar_entries())
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def unset(monkeypatch):
    monkeypatch.delenv("COLLEGIUM_DATA", raising=False)


def test_list_when_there_is_nothing(cli, unset, tmp_path):
    shown = cli("data", "list").out
    assert "1797" in shown
    assert f"cifar10 was not found in {tmp_path}/share/collegium. Get it with collegium data fetch cifar10" in shown
    assert "collegium data render" in shown
    assert f"cache: {tmp_path}/cache (0 MB" in shown


def test_list_what_there_is(cli, unset, tmp_path, monkeypatch):
    write_cifar(tmp_path)
    write_views(tmp_path)
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path))
    shown = cli("data", "list").out
    for words in ("20 × cat", "3 × dresser, 3 × night_stand", "45 of 60000 images", str(tmp_path)):
        assert words in shown.replace("\n", "")
    assert "not found" not in shown
    digits, cifar, views = json.loads(cli("data", "list", "--json").out)
    assert digits["found"]
    assert digits["folder"] is None
    assert cifar["counts"]["test"] == {"airplane": 1, "cat": 7, "dog": 2}
    assert cifar["folder"] == str(tmp_path / "cifar-10-batches-bin")
    assert views["largest_n0"] == 6
    assert not json.loads(cli("data", "list", "--json", "--data", tmp_path / "cache").out)[1]["found"]


def test_check_says_what_is_good(cli, unset, tmp_path):
    write_cifar(tmp_path)
    write_views(tmp_path, size=224, train=2, test=1)
    shown = cli("data", "check", "--data", tmp_path).out
    assert "a part of the official set: 45 of 60000 images" in shown
    assert "train: 5 × airplane, 20 × cat, 10 × dog" in shown
    assert "N_0 = 20 (cat and dog)" in shown
    assert "N_0 = 4 (dresser and night_stand)" in shown


def test_check_names_what_is_bad(cli, unset, tmp_path):
    folder = write_cifar(tmp_path)
    for i in (1, 2, 3):
        (folder / f"data_batch_{i}.bin").write_bytes(b"short")
    answer = cli("data", "check", "cifar10", "--data", tmp_path, code=2)
    assert answer.err.startswith("collegium: ")
    assert all(f"data_batch_{i}.bin has 5 bytes" in answer.err for i in (1, 2, 3))
    assert "test: 1 × airplane, 7 × cat, 2 × dog" in answer.out


def test_check_names_only_the_first_of_many(cli, unset, tmp_path):
    views = write_views(tmp_path, size=4, train=1, test=1)
    answer = cli("data", "check", "modelnet", "--data", tmp_path, code=2)
    assert f"{views}/dresser/train/dresser_0000/00.png is 4×4 pixels" in answer.err
    assert "and 43 more" in answer.err
    assert "05.png" not in answer.err


def test_check_of_what_is_missing(cli, unset, tmp_path):
    assert "cifar10 was not found" in cli("data", "check").out
    assert "fetch cifar10" in cli("data", "check", "cifar10", code=2).err
    assert "no data set 'mnist'" in cli("data", "check", "mnist", code=2).err


def test_fetch(cli, unset, tmp_path, monkeypatch):
    with serve(ARCHIVE) as site:
        new = tmp_path / "new"
        command = ("data", "fetch", "cifar10", "--to", new, "--url", site.url, "--sha256", DIGEST)
        shown = cli(*command).out
        assert f"{new}/cifar-10-batches-bin: a part of the official set: 12 of 60000 images" in shown
        assert f"export COLLEGIUM_DATA={new}" in shown
        assert "nothing to do" in cli(*command).out
        assert len(site.asked) == 1
        monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "set"))
        shown = cli("data", "fetch", "cifar10", "--url", site.url, "--sha256", DIGEST).out
        assert str(tmp_path / "set/cifar-10-batches-bin") in shown
        assert "export" not in shown
    assert "45" not in shown
    assert "cat" in cli("data", "check", "cifar10").out


def test_fetch_refuses(cli, unset, tmp_path):
    with serve(ARCHIVE) as site:
        wrong = cli("data", "fetch", "cifar10", "--to", tmp_path, "--url", site.url, "--sha256", "0" * 64, code=2)
        assert f"with SHA-256 {DIGEST}" in wrong.err
        evil = tar_gz([("../evil", b"x")])
        site.body = evil
        digest = hashlib.sha256(evil).hexdigest()
        answer = cli("data", "fetch", "cifar10", "--to", tmp_path, "--url", site.url, "--sha256", digest, code=2)
        assert "'../evil'" in answer.err
    assert not (tmp_path.parent / "evil").exists()
    assert "comes with scikit-learn" in cli("data", "fetch", "digits", code=2).err
    assert "collegium data render" in cli("data", "fetch", "modelnet", code=2).err
    assert "no data set 'mnist'" in cli("data", "fetch", "mnist", code=2).err
    assert "address" in cli("data", "fetch", "cifar10", "--to", tmp_path, "--url", "file:///etc/passwd", code=2).err


@pytest.mark.data
def test_real_data(cli):
    real_data("cifar-10-batches-bin")
    shown = cli("data", "check", "cifar10").out
    assert "a part of the official set: 12000 of 60000 images" in shown
    assert "N_0 = 10000 (cat and dog)" in shown
    assert "something else already" in cli("data", "fetch", "cifar10", code=2).err
