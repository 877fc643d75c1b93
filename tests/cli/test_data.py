import hashlib
import json
import os
import subprocess
import sys

import pytest

from collegium.data._uci import checksum
from collegium.data.inventory import UCI
from serving import serve
from tiny_data import cifar_entries, office_files, real_data, tar_gz, write_cifar, write_views, zipped

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
    for words in ("20 × cat", "3 × dresser, 3 × night_stand", "45 images; the official set has 60000", str(tmp_path)):
        assert words in shown.replace("\n", "")
    assert "cifar10 was not found" not in shown
    digits, cifar, views, *_ = json.loads(cli("data", "list", "--json").out)
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
    assert "45 images; the official set has 60000" in shown
    assert "train: 5 × airplane, 20 × cat, 10 × dog" in shown
    assert "N_0 = 20 (cat and dog)" in shown
    assert "N_0 = 4 (dresser and night_stand)" in shown


def test_check_names_what_is_bad(cli, unset, tmp_path):
    folder = write_cifar(tmp_path)
    for i in (1, 2, 3):
        (folder / f"data_batch_{i}.bin").write_bytes(b"short")
    answer = cli("data", "check", "cifar10", "--data", tmp_path, code=2)
    *each, last = answer.err.splitlines()
    assert [line.partition(" has 5 bytes")[0] for line in each] == [f"{folder}/data_batch_{i}.bin" for i in (1, 2, 3)]
    assert last == "collegium: 3 things are wrong with cifar10: move what is damaged away and get it again"
    assert "test: 1 × airplane, 7 × cat, 2 × dog" in answer.out
    assert "data_batch" not in answer.out


def test_check_names_all_of_many_in_json_too(cli, unset, tmp_path):
    views = write_views(tmp_path, size=4, train=1, test=1)
    answer = cli("data", "check", "modelnet", "--data", tmp_path, "--json", code=2)
    [facts] = json.loads(answer.out)
    assert len(facts["problems"]) == 48
    assert facts["problems"][0] == f"{views}/dresser/train/dresser_0000/00.png is 4×4 pixels, not 224×224"
    assert answer.err.splitlines()[:-1] == facts["problems"]


def test_list_shows_the_whole_name_of_what_is_bad(unset, tmp_path):
    folder = write_cifar(tmp_path)
    (folder / "test_batch.bin").write_bytes(b"short")
    for columns in ("80", "200"):
        script = "from collegium.cli.app import main; main()"
        environment = os.environ | {"COLUMNS": columns}
        command = [sys.executable, "-c", script, "data", "list", "--data", tmp_path]
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        remark = "".join(line.split("│")[4].strip() for line in shown.splitlines() if line.count("│") == 5)
        assert "test_batch.binhas5bytes" in remark.replace(" ", "")


def test_check_of_what_is_missing(cli, unset, tmp_path):
    assert "cifar10 was not found" in cli("data", "check").out
    assert "fetch cifar10" in cli("data", "check", "cifar10", code=2).err
    assert "no data set 'mnist'" in cli("data", "check", "mnist", code=2).err


def test_fetch(cli, unset, tmp_path, monkeypatch):
    with serve(ARCHIVE) as site:
        new = tmp_path / "new ü"
        monkeypatch.chdir(tmp_path)
        command = ("data", "fetch", "cifar10", "--to", new.name, "--url", site.url, "--sha256", DIGEST)
        shown = cli(*command).out
        assert f"{new.name}/cifar-10-batches-bin: 12 images; the official set has 60000" in shown
        assert f"export COLLEGIUM_DATA='{new}'" in shown
        assert "12 images; the official set has 60000): move it away" in cli(*command, code=2).err
        assert len(site.asked) == 1
        monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "set"))
        shown = cli("data", "fetch", "cifar10", "--url", site.url, "--sha256", DIGEST).out
        assert str(tmp_path / "set/cifar-10-batches-bin") in shown
        assert "export" not in shown
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


def test_fetch_of_a_set_of_the_uci_repository(cli, unset, tmp_path, monkeypatch):
    files = office_files()
    source, _ = UCI["occupancy"]
    for file, content in files.items():
        monkeypatch.setitem(source.layouts[0], file, checksum(content))
    assert "data fetch occupancy" in cli("data", "check", "occupancy", code=2).err
    with serve(zipped(files)) as site:
        command = ("data", "fetch", "occupancy", "--to", tmp_path / "new", "--url", site.url)
        shown = cli(*command).out
        assert "new/occupancy: 62 items of 5 agents, all checksums as they should be" in shown
        assert f"export COLLEGIUM_DATA={tmp_path}/new" in shown
        assert "is there already, nothing to do: 62 items" in cli(*command).out
        assert len(site.asked) == 1
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "new"))
    assert "test: 11 × occupied, 21 × empty" in cli("data", "check", "occupancy").out
    facts = {one["name"]: one for one in json.loads(cli("data", "list", "--json").out)}
    assert facts["occupancy"]["counts"]["train"] == {"occupied": 10, "empty": 20}
    assert not facts["wall_robot"]["found"]
    path = tmp_path / "new/occupancy/datatest.txt"
    path.write_bytes(path.read_bytes()[:-5])
    assert f"{path} is damaged" in cli("data", "check", "occupancy", code=2).err


def test_blender_goes_where_it_belongs(cli, tmp_path):
    for option in (("--to", tmp_path), ("--url", "http://host/a"), ("--sha256", "0" * 64)):
        assert "COLLEGIUM_CACHE" in cli("data", "fetch", "blender", *option, code=2).err


@pytest.mark.data
def test_real_data(cli):
    real_data("cifar-10-batches-bin")
    shown = cli("data", "check", "cifar10").out
    assert "12000 images; the official set has 60000" in shown
    assert "N_0 = 10000 (cat and dog)" in shown
    assert "something else already" in cli("data", "fetch", "cifar10", code=2).err


def test_split_deals_the_columns_of_a_table_out(cli, tmp_path):
    table = tmp_path / "table.csv"
    lines = [f"{i % 2},{i},{2 * i + 1},{'ab'[i % 3 == 0]},{(7 * i) % 11}" for i in range(30)]
    table.write_text("\n".join(["label,x,double,word,other", *lines]))
    options = ["--agents", 2, "--to", tmp_path / "new" / "views", "--keep", "label", "--correlation", 0]
    shown = cli("data", "split", table, *options).out
    assert "agent-1.csv: x, double" in shown
    assert "agent-2.csv: word, other" in shown
    first, second = ((tmp_path / "new" / "views" / f"agent-{k}.csv").read_text().splitlines() for k in (1, 2))
    assert first[:3] == ["label,x,double", "0,0,1", "1,1,3"]
    assert second[:3] == ["label,word,other", "0,b,0", "1,a,7"]
    assert len(second) == 31
    facts = json.loads(cli("data", "split", table, *options, "--json").out)
    assert facts["correlation"] == facts["lowest"] < facts["highest"]
    refused = cli("data", "split", table, *options, "--agents", 1, code=2)
    assert "views has agent-2.csv of another split" in refused.err.replace("\n", "")


def test_split_deals_no_labels_or_items_out(cli, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["Item,a,b,label", *(f"p{i},{i},{(7 * i) % 11},{i % 2}" for i in range(30))]))
    answer = cli("data", "split", table, "--agents", 2, "--to", tmp_path / "views")
    assert "every agent has Item, label" in answer.err
    for k, own in ((1, "a"), (2, "b")):
        assert (tmp_path / "views" / f"agent-{k}.csv").read_text().startswith(f"Item,label,{own}\n")
    cli("data", "split", table, "--agents", 2, "--to", tmp_path / "other", "--keep", "Item")
    assert (
        "label" in (tmp_path / "other" / "agent-1.csv").read_text() + (tmp_path / "other" / "agent-2.csv").read_text()
    )
    assert "gone.csv cannot be read: No such file" in cli(
        "data", "split", tmp_path / "gone.csv", "--agents", 2, "--to", tmp_path / "x", code=2
    ).err.replace("\n", "")


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("", [], "is empty"),
        ("a,b\n1\n", [], "row 2 has 1 fields, the first line names 2"),
        ("a,b\n1,2\n2,3\n", ["--keep", "c"], "has no column 'c'; it has a, b"),
        ("a,b\n1,2\n2,3\n", ["--agents", "3"], "agents must be a whole number between 1 and 2; got 3"),
    ],
)
def test_split_says_what_is_wrong_with_a_table(cli, tmp_path, content, options, sentence):
    (tmp_path / "t.csv").write_text(content)
    answer = cli("data", "split", tmp_path / "t.csv", "--agents", 2, "--to", tmp_path / "out", *options, code=2)
    assert sentence in answer.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()
