import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from collegium.data._archive import unpack
from collegium.errors import DataError, InputFileError
from tiny_data import tar_gz, zipped

MEMBERS = {"a.bin": 100, "b.bin": 100, "notes.txt": 50}
GOOD = [("set/a.bin", b"A" * 100), ("set/b.bin", b"B")]


def entry(name, kind, size=0, link=""):
    one = tarfile.TarInfo(name)
    one.type, one.size, one.linkname = kind, size, link
    return one, b"x" * size


@pytest.fixture
def place(tmp_path):
    (tmp_path / "to").mkdir()
    return tmp_path / "to"


def run(place, content, **settings):
    archive = place.parent / "some.tar.gz"
    archive.write_bytes(content)
    unpack(archive, MEMBERS, place / "set", optional=frozenset({"notes.txt"}), **settings)


def test_what_is_expected_is_unpacked(place):
    run(place, tar_gz([entry("set", tarfile.DIRTYPE), *GOOD, ("set/notes.txt", b"hello")]))
    assert {one.name: one.read_bytes() for one in (place / "set").iterdir()} == {
        "a.bin": b"A" * 100,
        "b.bin": b"B",
        "notes.txt": b"hello",
    }
    assert [one.name for one in place.iterdir()] == ["set"]


def test_names_that_begin_here_are_the_same_names(place):
    here = [entry(".", tarfile.DIRTYPE), entry("./set", tarfile.DIRTYPE)]
    run(place, tar_gz([*here, *((f"./{name}", content) for name, content in GOOD)]))
    assert sorted(one.name for one in (place / "set").iterdir()) == ["a.bin", "b.bin"]


EVIL = {
    "./../evil": ("./../evil", b"x"),
    "../evil": ("../evil", b"x"),
    "set/../../evil": ("set/../../evil", b"x"),
    "set/../a.bin": ("set/../a.bin", b"x"),
    "/tmp/evil": ("/tmp/evil", b"x"),
    "/set/a.bin": ("/set/a.bin", b"x"),
    "a.bin": ("a.bin", b"x"),
    "other/a.bin": ("other/a.bin", b"x"),
    "set/c.bin": ("set/c.bin", b"x"),
    "set/deep/a.bin": ("set/deep/a.bin", b"x"),
    "set/a.bin/": entry("set/a.bin", tarfile.DIRTYPE),
    "set/": ("set/", b""),
    "elsewhere": entry("elsewhere", tarfile.DIRTYPE),
    "set": entry("set", tarfile.SYMTYPE, link="/etc"),
    "set/b.bin -> passwd": entry("set/b.bin", tarfile.SYMTYPE, link="/etc/passwd"),
    "set/b.bin = passwd": entry("set/b.bin", tarfile.LNKTYPE, link="/etc/passwd"),
    "set/b.bin fifo": entry("set/b.bin", tarfile.FIFOTYPE),
    "set/b.bin device": entry("set/b.bin", tarfile.CHRTYPE),
    "set/b.bin too long": ("set/b.bin", b"x" * 101),
}


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("first", [True, False])
def test_anything_else_is_refused_by_name(place, name, first):
    evil = EVIL[name]
    good = [one for one in GOOD if not name.startswith(one[0])]
    entries = [evil, *good] if first else [*good, evil]
    shown = evil[0] if isinstance(evil[0], str) else evil[0].name
    with pytest.raises(InputFileError, match=rf"some\.tar\.gz has .*{shown.rstrip('/')}.*refused"):
        run(place, tar_gz(entries))
    assert list(place.iterdir()) == []
    assert sorted(one.name for one in place.parent.iterdir()) == ["some.tar.gz", "to"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_is_called_a_link(place, kind):
    with pytest.raises(InputFileError, match=r"a link in it, 'set/b\.bin' to '/etc/passwd': refused"):
        run(place, tar_gz([GOOD[0], entry("set/b.bin", kind, link="/etc/passwd")]))


def test_the_same_name_twice(place):
    with pytest.raises(InputFileError, match=r"'set/a\.bin' twice"):
        run(place, tar_gz([*GOOD, ("set/a.bin", b"other")]))
    assert list(place.iterdir()) == []


def test_a_missing_member(place):
    with pytest.raises(InputFileError, match=r"some\.tar\.gz lacks b\.bin"):
        run(place, tar_gz(GOOD[:1]))
    assert list(place.iterdir()) == []


def test_a_bomb_in_a_header(place):
    """Extended headers are read whole: 8 MB of them pack into 8 kB."""
    big = tarfile.TarInfo("set/a.bin")
    big.pax_headers = {"comment": "x" * (8 << 20)}
    with pytest.raises(InputFileError, match="unfolds into far more"):
        run(place, tar_gz([(big, b"")]))
    assert list(place.iterdir()) == []


NOISE = np.random.default_rng(0).bytes(100)
WHOLE = tar_gz([("set/a.bin", NOISE), ("set/b.bin", NOISE[::-1])])


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", gzip.compress(b"x" * 2000, mtime=0), WHOLE[: len(WHOLE) // 3], WHOLE[: len(WHOLE) // 2]],
)
def test_a_damaged_archive(place, content):
    with pytest.raises(InputFileError, match=r"some\.tar\.gz"):
        run(place, content)
    assert list(place.iterdir()) == []


def test_what_the_check_refuses_does_not_appear(place):
    def check(folder):
        assert (folder / "a.bin").read_bytes() == b"A" * 100
        raise InputFileError("not this one")

    with pytest.raises(InputFileError, match="not this one"):
        run(place, tar_gz(GOOD), check=check)
    assert list(place.iterdir()) == []


def test_an_interruption_leaves_nothing(place):
    def check(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(place, tar_gz(GOOD), check=check)
    assert list(place.iterdir()) == []


def test_what_is_there_is_not_touched(place):
    (place / "set").mkdir()
    (place / "set/mine").write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        run(place, tar_gz(GOOD))
    assert [one.name for one in place.iterdir()] == ["set"]
    assert [one.name for one in (place / "set").iterdir()] == ["mine"]


def test_nowhere_to_write(place):
    place.rmdir()
    with pytest.raises(DataError, match=r"cannot write into .*: No such file"):
        run(place, tar_gz(GOOD))


FILES = {"readme": b"hello", "in/here/a.bin": b"A" * 100, "b.bin": b"B", "../evil": b"x", "c.bin": b"C" * 999}


def test_from_a_zip_only_what_is_expected_is_taken_by_its_own_name(place):
    run(place, zipped(FILES))
    assert {one.name: one.read_bytes() for one in (place / "set").iterdir()} == {"a.bin": b"A" * 100, "b.bin": b"B"}
    assert [one.name for one in place.iterdir()] == ["set"]
    assert not (place.parent / "evil").exists()


def test_a_file_in_a_zip_that_is_longer_than_it_may_be(place):
    with pytest.raises(InputFileError, match=r"'b\.bin' of more than 100 bytes: refused"):
        run(place, zipped(FILES | {"b.bin": b"B" * 101}))
    assert list(place.iterdir()) == []


def test_a_zip_that_is_not_whole(place):
    good = zipped(FILES)
    damaged = good.replace(good[good.index(b"b.bin") + 5 :][:3], b"???", 1)
    for content in (good[:-30], damaged):
        with pytest.raises(InputFileError, match=r"not a whole \.(zip|tar\.gz) archive"):
            run(place, content)
    with pytest.raises(InputFileError, match=r"lacks a\.bin: it is not the archive expected"):
        run(place, zipped({"b.bin": b"B"}))
    assert list(place.iterdir()) == []


def test_a_zip_that_is_locked_or_packed_in_another_way(place):
    locked = bytearray(zipped({"a.bin": b"A", "b.bin": b"B"}))
    for start in (locked.index(b"PK\3\4") + 6, locked.index(b"PK\1\2") + 8):
        locked[start] |= 1  # says that it needs a password
    odd = io.BytesIO()
    with zipfile.ZipFile(odd, "w") as packed:
        packed.writestr("a.bin", b"A")
    unknown = bytearray(odd.getvalue())
    for start in (unknown.index(b"PK\3\4") + 8, unknown.index(b"PK\1\2") + 10):
        unknown[start] = 99
    for content in (locked, unknown):
        with pytest.raises(InputFileError, match=r"not a whole \.zip archive that can be read"):
            run(place, bytes(content))


def test_the_first_of_two_files_of_one_name_in_a_zip_is_taken(place):
    run(place, zipped({"a.bin": b"first", "b.bin": b"B", "old/a.bin": b"second"}))
    assert (place / "set/a.bin").read_bytes() == b"first"
