import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from children import interruptible
from collegium.data import render as rendering
from collegium.data._png import read_grey
from collegium.data.render import RenderSettings, plan, render
from collegium.errors import BackendError, DataError, InputFileError
from fake_blender import broken_blender, fake_blender

SMALL = RenderSettings(views=3, size=8, samples=1)
OTHER = RenderSettings(views=3, elevation=20, size=8, samples=2)
SQUARE = "OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n"


@pytest.fixture(autouse=True)
def fake(monkeypatch, tmp_path):
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(fake_blender(tmp_path)))


@pytest.fixture
def meshes(tmp_path):
    """Call it with names of objects to have their meshes in a folder."""

    def write(*names, folder="meshes/chair/train", content=SQUARE):
        for name in names:
            path = tmp_path / folder / f"{name}.off"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path / "meshes"

    return write


def times(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.png")}


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


@pytest.mark.parametrize("source", ["meshes", "meshes/chair", "meshes/chair/train", "meshes/chair/train/a.off"])
def test_splits_lie_in_their_class_wherever_one_begins(tmp_path, meshes, source):
    meshes("a")
    assert plan(tmp_path / source, Path("out")) == {Path("out/chair/train/a"): tmp_path / "meshes/chair/train/a.off"}


def test_other_layouts_are_mirrored(tmp_path, meshes):
    source = meshes("a", folder="meshes/one/two")
    meshes("b.c", folder="meshes")
    assert list(plan(source, Path("out"))) == [Path("out/b.c"), Path("out/one/two/a")]
    assert list(plan(source / "b.c.off", Path("out"))) == [Path("out/b.c")]


def test_what_is_no_mesh_is_passed_over(tmp_path, meshes):
    source = meshes("a", "._a")
    meshes("a", folder="meshes/__MACOSX/chair/train")
    meshes("a", folder="meshes/.hidden")
    (source / "README").touch()
    (source / "chair" / "test").mkdir()
    (source / "chair" / "test" / "B.OFF").write_text(SQUARE)
    (source / "chair" / "again").symlink_to(source)  # round and round
    assert sorted(map(str, plan(source, Path()))) == ["chair/test/B", "chair/train/a"]


def test_linked_classes_are_followed(tmp_path, meshes):
    source = meshes("a")
    meshes("b", folder="elsewhere/train")
    (source / "desk").symlink_to(tmp_path / "elsewhere")
    assert sorted(map(str, plan(source, Path()))) == ["chair/train/a", "desk/train/b"]


def test_sources_that_cannot_be_planned(tmp_path, meshes):
    with pytest.raises(DataError, match="there is no folder"):
        plan(tmp_path / "absent", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no \.off files"):
        plan(tmp_path / "empty", tmp_path)
    (tmp_path / "thing.stl").touch()
    with pytest.raises(DataError, match=r"neither a folder nor an \.off file"):
        plan(tmp_path / "thing.stl", tmp_path)
    source = meshes("a", folder="meshes/x/chair/train")
    meshes("a", folder="meshes/y/chair/train")
    with pytest.raises(DataError, match=r"would both be rendered into .*chair/train/a"):
        plan(source, tmp_path)


def test_every_view_is_whole_and_nothing_else_is_left(tmp_path, meshes):
    outcome = render(meshes("a", "b", "c"), tmp_path / "out", SMALL)
    assert (outcome.objects, outcome.rendered, outcome.problems) == (3, 9, ())
    views = {f"chair/train/{name}/{k:02}.png" for name in "abc" for k in range(3)}
    assert set(times(tmp_path / "out")) == views
    assert sorted(os.listdir(tmp_path / "out")) == ["chair", "rendering.json"]
    for name in views:
        with Image.open(tmp_path / "out" / name) as image:
            assert (image.mode, image.size) == ("LA", (8, 8))
            assert (np.asarray(image)[..., 1] == 200).all()


def processes(folder: Path) -> list[tuple[int, int]]:
    """The process ids of the fake Blenders, and how many threads each was given."""
    return [(int(pid), int(threads)) for pid, threads in map(str.split, (folder / "pids").read_text().splitlines())]


@pytest.mark.parametrize(("workers", "objects"), [(1, 4), (2, 4), (5, 4), (2, 1)])
def test_so_many_processes_but_no_more_than_objects(tmp_path, meshes, monkeypatch, workers, objects):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    render(meshes(*("slow", "b", "c", "d")[:objects]), tmp_path / "out", SMALL, workers=workers)
    started = processes(tmp_path)
    most = min(workers, objects)
    assert 1 <= len(started) <= most
    assert {threads for _, threads in started} == {6 // most}
    until(lambda: not any(is_running(pid) for pid, _ in started))


def test_only_what_is_missing_or_damaged_is_rendered_again(tmp_path, meshes):
    source, out = meshes("a", "b"), tmp_path / "out"
    render(source, out, SMALL)
    before = times(out)
    (out / "chair/train/a/01.png").unlink()
    whole = (out / "chair/train/b/02.png").read_bytes()
    (out / "chair/train/b/02.png").write_bytes(whole[:-1])
    (out / "chair/train/b/00.png").write_bytes(whole.replace(b"\0\0\0\x08\0\0\0\x08", b"\0\0\0\x09\0\0\0\x08"))
    outcome = render(source, out, SMALL)
    assert (outcome.objects, outcome.rendered) == (2, 3)
    after = times(out)
    assert {name for name in after if after[name] != before.get(name)} == {
        "chair/train/a/01.png",
        "chair/train/b/00.png",
        "chair/train/b/02.png",
    }
    for name in after:
        read_grey(out / name, 8, 0)


def test_nothing_to_do_needs_no_blender(tmp_path, meshes, monkeypatch):
    source = meshes("a")
    render(source, tmp_path / "out", SMALL)
    monkeypatch.setenv("COLLEGIUM_BLENDER", "/absent")
    assert render(source, tmp_path / "out", SMALL).rendered == 0


def test_overwrite(tmp_path, meshes):
    source, out = meshes("a"), tmp_path / "out"
    render(source, out, SMALL)
    before = times(out)
    assert render(source, out, SMALL, overwrite=True).rendered == 3
    assert all(times(out)[name] > before[name] for name in before)


def test_views_of_other_settings_are_not_mixed(tmp_path, meshes):
    source, out = meshes("a"), tmp_path / "out"
    render(source, out, SMALL)
    with pytest.raises(DataError, match=r"was rendered with elevation 30.0, samples 1: choose another .* --overwrite"):
        render(source, out, OTHER)
    (out / "rendering.json").write_text('{"views": "many"}')
    with pytest.raises(InputFileError, match=r"rendering\.json is damaged"):
        render(source, out, SMALL)


def test_other_settings_may_overwrite_everything_but_not_a_part(tmp_path, meshes):
    source, out = meshes("a", "b"), tmp_path / "out"
    render(source, out, SMALL)
    with pytest.raises(DataError, match=r"remove .*chair/train/b, which is not among these meshes"):
        render(source / "chair/train/a.off", out, OTHER, overwrite=True)
    assert render(source, out, OTHER, overwrite=True).rendered == 6
    assert render(source, out, OTHER).rendered == 0
    assert json.loads((out / "rendering.json").read_text()) == asdict(OTHER)


def test_a_part_is_overwritten_and_the_rest_left_alone(tmp_path, meshes):
    source, out = meshes("a", "b"), tmp_path / "out"
    render(source, out, SMALL)
    before = times(out)
    assert render(source / "chair/train/a.off", out, SMALL, overwrite=True).rendered == 3
    after = times(out)
    assert {name[:13] for name in after if after[name] != before[name]} == {"chair/train/a"}
    assert render(source, out, SMALL).rendered == 0


def test_an_interrupted_overwriting_is_gone_on_with(tmp_path, meshes):
    source, out = meshes("a", "full"), tmp_path / "out"
    (source / "chair/train/full.off").rename(source / "chair/train/z.off")
    render(source, out, SMALL)
    (source / "chair/train/z.off").rename(source / "chair/train/full.off")
    (out / "chair/train/z").rename(out / "chair/train/full")
    before = times(out)
    with pytest.raises(InputFileError, match="No space left"):
        render(source, out, OTHER, overwrite=True, workers=1)
    assert times(out)["chair/train/full/00.png"] == before["chair/train/full/00.png"]  # nothing was taken away
    (source / "chair/train/full.off").rename(source / "chair/train/z.off")
    (out / "chair/train/full").rename(out / "chair/train/z")
    assert render(source, out, OTHER, overwrite=True).rendered == 3
    assert render(source, out, OTHER, overwrite=True).rendered == 6


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_lost_or_promised_where_there_is_no_blender(tmp_path, meshes, monkeypatch, overwrite):
    source, out = meshes("a"), tmp_path / "out"
    blender = os.environ["COLLEGIUM_BLENDER"]
    monkeypatch.setenv("COLLEGIUM_BLENDER", "/absent")
    with pytest.raises(BackendError):
        render(source, out, OTHER, overwrite=overwrite)
    monkeypatch.setenv("COLLEGIUM_BLENDER", blender)
    assert render(source, out, SMALL).rendered == 3  # those of the attempt bind nobody
    before = times(out)
    monkeypatch.setenv("COLLEGIUM_BLENDER", "/absent")
    with pytest.raises(BackendError):
        render(source, out, SMALL, overwrite=True)
    assert times(out) == before


def test_views_nobody_knows_the_settings_of(tmp_path, meshes):
    source, out = meshes("a", "b"), tmp_path / "out"
    render(source / "chair/train/a.off", out, SMALL)
    (out / "rendering.json").unlink()
    before = times(out)
    for other, says in (
        (RenderSettings(views=3, size=9, samples=1), "size 8"),
        (RenderSettings(views=4, size=8), "views 3"),
    ):
        with pytest.raises(DataError, match=f"was rendered with {says}: choose another"):
            render(source, out, other)
    assert times(out) == before
    assert render(source, out, SMALL).rendered == 3
    assert not (out / "rendering.json").exists()  # nobody knows
    assert render(source, out, OTHER, overwrite=True).rendered == 6
    assert json.loads((out / "rendering.json").read_text()) == asdict(OTHER)


def test_a_whole_view_of_another_size_is_not_missing(tmp_path, meshes):
    source, out = meshes("a"), tmp_path / "out"
    render(source, out, SMALL)
    foreign = out / "chair/train/a/01.png"
    Image.new("L", (9, 9)).save(foreign)
    content = foreign.read_bytes()
    with pytest.raises(InputFileError, match=r"01\.png is 9×9 pixels, not 8×8: it was not rendered here"):
        render(source, out, SMALL)
    assert foreign.read_bytes() == content


def test_blender_is_not_imported_here(tmp_path):
    (tmp_path / "bpy.py").write_text("raise ImportError('libXi.so.6: cannot open shared object file')")
    code = "import collegium.cli.app, collegium.data.render, sys; sys.exit('bpy' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_bad_meshes_are_named_and_the_others_rendered(tmp_path, meshes):
    meshes("a", "b")
    meshes("cut", content=SQUARE[:-10])
    source = meshes("flat", content=SQUARE.replace("1 1 0\n", "0 0 0\n").replace("0 1 0\n", "0 0 0\n"))
    outcome = render(source, tmp_path / "out", SMALL)
    assert (outcome.objects, outcome.rendered) == (2, 6)
    cut, flat = outcome.problems
    assert "chair/train/cut.off is truncated" in cut
    assert "chair/train/flat.off cannot be rendered: none of its faces has an area" in flat
    assert sorted(os.listdir(tmp_path / "out/chair/train")) == ["a", "b"]


@pytest.mark.parametrize(("fate", "cause"), [("dies", "Segments are at fault"), ("killed", "killed by signal 9")])
def test_a_dying_blender_takes_only_its_object_along(tmp_path, meshes, fate, cause):
    outcome = render(meshes("a", fate, "z1", "z2"), tmp_path / "out", SMALL, workers=1)
    assert outcome.objects == 3
    assert outcome.rendered == 10
    [problem] = outcome.problems
    assert problem == f"{tmp_path}/meshes/chair/train/{fate}.off was not rendered, Blender died of it twice: {cause}"
    assert (tmp_path / f"out/chair/train/{fate}/00.png").exists()


def test_a_blender_that_somebody_kills_is_replaced(tmp_path, meshes):
    outcome = render(meshes("a", "once", "z"), tmp_path / "out", SMALL, workers=1)
    assert (outcome.objects, outcome.rendered, outcome.problems) == (3, 9, ())
    assert len(processes(tmp_path)) == 2


def test_a_blender_that_always_dies_is_given_up(tmp_path, meshes):
    with pytest.raises(BackendError, match="died of 5 objects in a row: Segments are at fault"):
        render(meshes(*(f"dies{i}" for i in range(9))), tmp_path / "out", SMALL, workers=1)
    assert len(list((tmp_path / "out/chair/train").iterdir())) == 5


def test_a_full_disk_ends_it(tmp_path, meshes):
    with pytest.raises(InputFileError, match=r"cannot write .*/full/00\.png: No space left on device"):
        render(meshes("full", "slow1", "slow2", "slow3"), tmp_path / "out", SMALL)
    assert sorted(os.listdir(tmp_path / "out")) in (["chair", "rendering.json"], ["rendering.json"])


def test_a_blender_that_does_not_start(tmp_path, meshes, monkeypatch):
    broken = broken_blender(tmp_path, "ImportError: libSM.so.6: cannot open shared object file")
    monkeypatch.setattr(rendering, "environment", lambda tell: broken)
    with pytest.raises(BackendError, match=r"Blender does not start: the shared library libSM\.so\.6 is missing"):
        render(meshes("a", "b"), tmp_path / "out", SMALL)


def test_a_target_that_cannot_be_written(tmp_path, meshes):
    (tmp_path / "file").touch()
    with pytest.raises(InputFileError, match=r"cannot write into .*/file: File exists"):
        render(meshes("a"), tmp_path / "file", SMALL)


@pytest.mark.parametrize(
    "wrong", [{"views": 0}, {"views": 101}, {"size": 4}, {"samples": 0}, {"elevation": 91}, {"elevation": float("nan")}]
)
def test_impossible_settings(wrong):
    with pytest.raises(DataError, match="must be a"):
        RenderSettings(**wrong)


def start(source: Path, out: Path) -> AbstractContextManager[subprocess.Popen]:
    code = (
        "import sys; from collegium.data.render import RenderSettings, render;"
        "render(sys.argv[1], sys.argv[2], RenderSettings(views=3, size=8, samples=1))"
    )
    return interruptible([sys.executable, "-c", code, source, out], stderr=subprocess.PIPE)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_whole_files_and_no_process(tmp_path, meshes, end):
    source, out = meshes(*(f"slow{i}" for i in range(100))), tmp_path / "out"  # for 15 seconds, on any machine
    with start(source, out) as run:
        until(lambda: len(times(out)) >= 4)
        with pytest.raises(DataError, match="another process is rendering"):
            render(source, out, SMALL)
        run.send_signal(end)
        assert run.wait(120) != 0
    until(lambda: not any(is_running(pid) for pid, _ in processes(tmp_path)))
    before = times(out)
    assert 4 <= len(before) < 300
    for name in before:
        read_grey(out / name, 8, 0)
    (out / ".rendering").mkdir(exist_ok=True)
    (out / ".rendering" / "123").write_bytes(b"half a view")
    for path in source.rglob("*.off"):
        path.rename(path.with_name(path.name.replace("slow", "quick")))
    for folder in (out / "chair/train").iterdir():
        folder.rename(folder.with_name(folder.name.replace("slow", "quick")))
    assert render(source, out, SMALL).rendered == 300 - len(before)
    assert sorted(os.listdir(out)) == ["chair", "rendering.json"]
    after = times(out)
    assert all(after[name.replace("slow", "quick")] == time for name, time in before.items())
