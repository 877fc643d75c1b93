import hashlib
import json
import os
import threading

import numpy as np
import pytest

from collegium.data._download import FRUITLESS, Remote, download
from collegium.errors import DataError, InputFileError
from serving import Answer, serve

BODY = np.random.default_rng(0).bytes(1_000_003)
OTHER = np.random.default_rng(1).bytes(1_000_003)


def digest(body):
    return hashlib.sha256(body).hexdigest()


def get(site, path, body=BODY, size=None, **settings):
    download(Remote(site.url, digest(body), size), path, **({"pause": 0.001, "timeout": 10} | settings))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "archive.tar.gz"


def leftovers(path):
    return sorted(one.name for one in path.parent.iterdir())


def ranges(site):
    return [asked.get("Range") for asked in site.asked]


@pytest.mark.parametrize("size", [None, len(BODY)])
@pytest.mark.parametrize("length", [True, False])
def test_a_plain_download(path, size, length):
    with serve(BODY, plan=[Answer(length=length)]) as site:
        get(site, path, size=size)
    assert path.read_bytes() == BODY
    assert leftovers(path) == ["archive.tar.gz"]
    assert ranges(site) == [None]


@pytest.mark.parametrize("etag", ['"first"', None])
def test_a_cut_connection_is_taken_up_where_it_broke(path, etag):
    with serve(BODY, etag=etag, plan=[Answer(cut=400_000), Answer(cut=1), Answer(cut=0), Answer(cut=300_000)]) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-", "bytes=400001-", "bytes=400001-", "bytes=700001-"]
    assert {asked.get("If-Range") for asked in site.asked[1:]} == {etag}


def test_a_cut_in_a_download_of_unknown_length_is_noticed_by_the_known_size(path):
    with serve(BODY, plan=[Answer(cut=400_000, length=False)]) as site:
        get(site, path, size=len(BODY))
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-"]


def test_a_cut_in_a_download_of_unknown_length_is_kept(path):
    with serve(BODY, plan=[Answer(cut=400_000, length=False)]) as site:
        with pytest.raises(DataError, match=r"cut off, or not the file expected: 400000 bytes .* kept: run"):
            get(site, path)
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-"]


def test_every_byte_is_progress(path):
    with serve(BODY, plan=[Answer(cut=10)] * 3 * FRUITLESS) as site:
        get(site, path, pause=0)
    assert path.read_bytes() == BODY
    assert len(site.asked) == 1 + 3 * FRUITLESS


def test_a_redirection_in_a_circle_is_one_line(path):
    circle = serve(BODY, plan=[Answer(status=301, location=True)] * 20)
    with circle as site, pytest.raises(DataError, match=r"the server answers 301 .*infinite loop$"):
        get(site, path)


def test_a_server_that_knows_no_pieces_sends_all_again(path):
    with serve(BODY, plan=[Answer(cut=400_000), Answer(ranges=False)]) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-"]


def test_giving_up_keeps_what_came_and_the_next_run_goes_on(path):
    with serve(BODY, plan=[Answer(cut=400_000), *[Answer(cut=0)] * FRUITLESS]) as site:
        with pytest.raises(DataError, match=r"broke after 400000 of 1000003 bytes.*400000 bytes are kept"):
            get(site, path)
        assert len(site.asked) == 1 + FRUITLESS
        assert (path.parent / "archive.tar.gz.part").read_bytes() == BODY[:400_000]
        assert not path.exists()
        site.asked.clear()
        get(site, path)
        assert ranges(site) == ["bytes=400000-"]
    assert path.read_bytes() == BODY
    assert leftovers(path) == ["archive.tar.gz"]


@pytest.mark.parametrize("honest", [True, False])
def test_a_file_that_changed_meanwhile_is_not_spliced(path, honest):
    with serve(BODY, plan=[Answer(cut=400_000), *[Answer(cut=0)] * FRUITLESS]) as site:
        with pytest.raises(DataError, match="kept"):
            get(site, path)
        site.body, site.etag = OTHER, '"second"'
        site.plan = [Answer(keeps_range=not honest)]
        with pytest.raises(InputFileError, match="not the file expected"):
            get(site, path, size=len(BODY))
        assert leftovers(path) == []
        site.plan = [Answer(cut=400_000), *[Answer(cut=0)] * FRUITLESS]
        site.body = BODY
        with pytest.raises(DataError, match="kept"):
            get(site, path)
        site.body, site.etag = OTHER, '"third"'
        site.plan = [Answer(keeps_range=not honest)]
        get(site, path, OTHER)
    assert path.read_bytes() == OTHER


@pytest.mark.parametrize("honest", [True, False])
def test_a_file_that_changes_while_it_comes_is_begun_again(path, honest):
    change = Answer(swap=(OTHER, '"second"'), keeps_range=not honest)
    with serve(BODY, plan=[Answer(cut=400_000), change]) as site:
        get(site, path, OTHER)
    assert path.read_bytes() == OTHER
    assert len(site.asked) == (2 if honest else 3)


def test_a_file_that_becomes_shorter_while_it_comes(path):
    with serve(BODY * 2, etag=None, plan=[Answer(cut=1_200_000), Answer(swap=(BODY, None))]) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=1200000-", None]


def test_a_part_of_nobody_knows_what_is_tried_and_then_dropped(path):
    part = path.parent / "archive.tar.gz.part"
    part.write_bytes(OTHER[:123_456])
    with serve(BODY) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == ["bytes=123456-", None]


def test_a_part_is_taken_up_at_another_address(path):
    part = path.parent / "archive.tar.gz.part"
    part.write_bytes(BODY[:123_456])
    note = {"url": "http://elsewhere.example/a.tar.gz", "sha256": digest(BODY), "validator": '"theirs"'}
    (path.parent / "archive.tar.gz.part.json").write_text(json.dumps(note))
    with serve(BODY) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == ["bytes=123456-"]
    assert "If-Range" not in site.asked[0]


@pytest.mark.parametrize("note", ["{", "[]", "{}"])
def test_a_damaged_note_is_no_obstacle(path, note):
    (path.parent / "archive.tar.gz.part").write_bytes(BODY[:5])
    (path.parent / "archive.tar.gz.part.json").write_text(note)
    with serve(BODY) as site:
        get(site, path)
    assert path.read_bytes() == BODY


@pytest.mark.parametrize("size", [None, len(BODY)])
def test_a_part_that_is_whole_already(path, size):
    (path.parent / "archive.tar.gz.part").write_bytes(BODY)
    with serve(BODY) as site:
        get(site, path, size=size)
    assert path.read_bytes() == BODY
    assert len(site.asked) == (1 if size is None else 0)  # 416 tells that nothing is missing


def test_a_part_longer_than_the_file(path):
    (path.parent / "archive.tar.gz.part").write_bytes(BODY + b"more")
    with serve(BODY) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == ["bytes=1000007-", None]


def test_another_piece_than_asked_for_is_not_used(path):
    with serve(BODY, plan=[Answer(cut=400_000), Answer(shift=7)]) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-", None]


def test_garbage_is_deleted_and_refused(path):
    with serve(OTHER) as site, pytest.raises(InputFileError, match=rf"{digest(OTHER)}, not {digest(BODY)}"):
        get(site, path)
    assert leftovers(path) == []
    assert len(site.asked) == 1


@pytest.mark.parametrize("body", [BODY[:-1], BODY + b"x"])
def test_another_length_is_refused_before_it_comes(path, body):
    with serve(body) as site, pytest.raises(InputFileError, match=f"has {len(body)} bytes, not the 1000003 expected"):
        get(site, path, size=len(BODY))
    assert leftovers(path) == []


def test_an_endless_file_is_not_swallowed(path):
    endless = serve(BODY * 2, plan=[Answer(length=False)])
    with endless as site, pytest.raises(InputFileError, match="sends more than the 1000003 bytes"):
        get(site, path, size=len(BODY))
    assert leftovers(path) == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_with_a_passing_trouble(path, status):
    with serve(BODY, plan=[Answer(status=status), Answer(cut=400_000), Answer(status=status)]) as site:
        get(site, path)
    assert path.read_bytes() == BODY
    assert len(site.asked) == 4


@pytest.mark.parametrize("status", [403, 404, 410, 204])
def test_a_server_that_does_not_have_it(path, status):
    with serve(BODY, plan=[Answer(status=status)]) as site, pytest.raises(DataError, match=f"answers {status}"):
        get(site, path)
    assert len(site.asked) == 1
    assert leftovers(path) == []


def test_a_server_that_is_not_there(path):
    with serve(BODY) as site:
        pass
    with pytest.raises(DataError, match=r"cannot download http://127.*refused"):
        get(site, path)


def test_a_server_that_falls_silent(path):
    silence = threading.Event()
    with serve(BODY, plan=[Answer(cut=400_000, hold=silence)]) as site:
        get(site, path, timeout=2)
        silence.set()
    assert path.read_bytes() == BODY
    assert ranges(site) == [None, "bytes=400000-"]


def test_a_disk_that_is_full(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with serve(BODY) as site, pytest.raises(DataError, match=r"cannot write .*archive\.tar\.gz: No space left"):
        get(site, path)
    assert (path.parent / "archive.tar.gz.part").exists()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://host/file",
        "host/file",
        "https://",
        "http://a b/c",
        "",
        "http://[x/",
        "http://host:no/a",
        "http://höst/a",
    ],
)
def test_addresses_that_are_none(url):
    with pytest.raises(DataError, match="is not the address of a file"):
        Remote(url, "0" * 64)


def test_checksums_that_are_none():
    with pytest.raises(DataError, match="64 hexadecimal digits"):
        Remote("http://host/file", "abc")
    assert Remote("http://host/file", "AB" * 32).sha256 == "ab" * 32
