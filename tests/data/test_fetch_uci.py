import pytest

from collegium import data
from collegium.data.fetch import already_there, fetch_uci
from collegium.data.inventory import UCI
from collegium.errors import DataError, InputFileError
from serving import Answer, serve
from tiny_data import zipped

FOLDERS = {"wall_robot": "wall-robot", "occupancy": "occupancy", "multiple_features": "multiple-features"}


def names(folder):
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("length", [True, False])
def test_from_the_server_to_the_data_set(name, length, uci, tmp_path):
    packed = zipped({"about.txt": b"x", **uci[name]})
    with serve(packed, plan=[Answer(cut=3000), Answer(length=length)]) as site:
        folder = fetch_uci(name, tmp_path / "new", site.url, pause=0.001)
    assert folder == tmp_path / "new" / FOLDERS[name]
    assert names(tmp_path / "new") == [FOLDERS[name]]
    assert names(folder) == sorted(uci[name])
    assert str(folder) in getattr(data, name)(root=tmp_path / "new")[0].source
    assert already_there(tmp_path / "new", name).complete


@pytest.mark.parametrize("name", FOLDERS)
def test_the_official_address(name):
    source, _ = UCI[name]
    number = {"wall_robot": 194, "occupancy": 357, "multiple_features": 72}[name]
    assert source.url.startswith(f"https://archive.ics.uci.edu/static/public/{number}/")
    assert source.url.endswith(".zip")


def test_files_with_another_checksum_are_not_kept(uci, tmp_path):
    files = uci["occupancy"] | {"datatest.txt": uci["occupancy"]["datatest.txt"][:-2]}
    with serve(zipped(files)) as site, pytest.raises(InputFileError, match=r"datatest\.txt is damaged or another file"):
        fetch_uci("occupancy", tmp_path, site.url)
    assert names(tmp_path) == []


def test_an_archive_that_was_cut_off_unnoticed_is_not_kept_either(uci, tmp_path):
    packed = zipped(uci["occupancy"])
    with serve(packed, plan=[Answer(cut=800, length=False)]) as site:
        with pytest.raises(InputFileError, match="not a whole"):
            fetch_uci("occupancy", tmp_path, site.url)
        assert names(tmp_path) == []
        fetch_uci("occupancy", tmp_path, site.url)
    assert names(tmp_path) == ["occupancy"]


def test_a_checksum_of_the_archive_counts_where_it_is_given(uci, tmp_path):
    with serve(zipped(uci["occupancy"])) as site, pytest.raises(InputFileError, match="with SHA-256"):
        fetch_uci("occupancy", tmp_path, site.url, "0" * 64)
    assert names(tmp_path) == []


def test_an_archive_brought_by_hand_needs_no_network(uci, tmp_path):
    (tmp_path / "occupancy+detection.zip").write_bytes(zipped(uci["occupancy"]))
    with serve(b"") as site:
        fetch_uci("occupancy", tmp_path, site.url)
    assert site.asked == []
    assert names(tmp_path) == ["occupancy"]


def test_a_damaged_one_brought_by_hand_stays_with_its_owner(uci, tmp_path):
    (tmp_path / "occupancy+detection.zip").write_bytes(zipped(uci["occupancy"])[:-9])
    with serve(b"") as site, pytest.raises(InputFileError, match="not a whole"):
        fetch_uci("occupancy", tmp_path, site.url)
    assert names(tmp_path) == ["occupancy+detection.zip"]


def test_what_is_there_is_left_alone(uci, put):
    root = put("wall-robot", {"sensor_readings_24.data": b"else"})
    with (
        serve(b"") as site,
        pytest.raises(DataError, match=r"holds something else already \(not whole\): move it away"),
    ):
        fetch_uci("wall_robot", root, site.url)
    assert site.asked == []
