import os
import sys

import pytest

from fake_blender import broken_blender, fake_blender

SQUARE = "OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n"
SMALL = ("--size", "8", "--samples", "1")


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(fake_blender(tmp_path)))


@pytest.fixture
def meshes(tmp_path):
    folder = tmp_path / "meshes" / "chair" / "train"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.off").write_text(SQUARE)
    return tmp_path / "meshes"


def test_render_then_nothing_is_left_to_do(cli, meshes, tmp_path):
    out = tmp_path / "views"
    assert (
        cli("data", "render", meshes, "--to", out, *SMALL).out
        == f"{out}: 2 objects have all 12 views; 24 views are new\n"
    )
    assert sorted(os.listdir(out / "chair/train/a")) == [f"{k:02}.png" for k in range(12)]
    (out / "chair/train/a/07.png").unlink()
    assert "2 objects have all 12 views; one view is new" in cli("data", "render", meshes, "--to", out, *SMALL).out
    assert "12 views; 0 views are new" in cli("data", "render", meshes, "--to", out, *SMALL).out
    assert "12 views; 24 views are new" in cli("data", "render", meshes, "--to", out, *SMALL, "--overwrite").out


def test_views_elevation_and_one_mesh(cli, meshes, tmp_path):
    arguments = ("--to", tmp_path / "out", "--views", "2", "--elevation", "-10", "--workers", "1", *SMALL)
    shown = cli("data", "render", meshes / "chair/train/a.off", *arguments).out
    assert "one object has all 2 views; 2 views are new" in shown
    assert sorted(os.listdir(tmp_path / "out/chair/train/a")) == ["00.png", "01.png"]
    assert (
        "was rendered with views 2, elevation -10.0"
        in cli("data", "render", meshes, "--to", tmp_path / "out", code=2).err
    )


def test_a_bad_mesh_is_named_after_the_others_are_done(cli, meshes, tmp_path):
    for i in range(7):
        (meshes / f"chair/train/bad{i}.off").write_text(SQUARE[:-10])
    answer = cli("data", "render", meshes, "--to", tmp_path / "out", *SMALL, code=2)
    assert "2 objects have all 12 views; 24 views are new" in answer.out
    *each, last = answer.err.splitlines()
    assert [line.partition(" is truncated")[0][-8:] for line in each] == [f"bad{i}.off" for i in range(7)]
    assert last == "collegium: 7 meshes were not rendered: see above"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--views", "0"), "the number of views must be a whole number between 1 and 100; got 0"),
        (("--elevation", "100"), "the elevation in degrees must be"),
        (("--size", "1"), "the size of the views must be"),
        (("--samples", "0"), "the number of samples per pixel must be"),
        (("--workers", "0"), "the number of workers must be"),
    ],
)
def test_impossible_settings(cli, meshes, tmp_path, arguments, complaint):
    answer = cli("data", "render", meshes, "--to", tmp_path / "out", *arguments, code=2)
    assert answer.err.startswith(f"collegium: {complaint}")
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_library_is_one_sentence(cli, meshes, tmp_path, monkeypatch):
    said = "ImportError: libXrender.so.1: cannot open shared object file: No such file or directory"
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(broken_blender(tmp_path, said)))
    answer = cli("data", "render", meshes, "--to", tmp_path / "out", code=2)
    assert "libXrender.so.1 is missing; on Debian or Ubuntu: apt install" in answer.err
    assert answer.err.count("\n") == 1


def test_fetching_blender_is_announced(cli, meshes, tmp_path, monkeypatch):
    environment = sys.modules["collegium.data.environment"]
    monkeypatch.setattr(environment, "find_environment", lambda: None)
    monkeypatch.setattr(environment, "make_environment", lambda: tmp_path / "fake-blender")
    answer = cli("data", "render", meshes, "--to", tmp_path / "out", *SMALL)
    assert "fetching about 400 MB" in answer.err
    assert "24 views are new" in answer.out
