"""With the real Blender, where one is found: none is ever fetched by a test."""

import os
import shutil

import numpy as np
import pytest
from PIL import Image

from collegium.data import environment
from collegium.data.render import RenderSettings, render
from collegium.errors import CollegiumError
from tiny_data import real_data


@pytest.fixture(scope="session")
def found():
    try:
        return environment.find_environment()
    except CollegiumError as reason:
        return reason


@pytest.fixture(autouse=True)
def blender(found, monkeypatch):
    if found is None or isinstance(found, CollegiumError):
        pytest.skip(str(found or "no Blender here: collegium data fetch blender gets it"))
    monkeypatch.setenv("COLLEGIUM_BLENDER", str(found))


def box(low, high):
    """The corners of a box, and its walls."""
    corners = [
        [(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)
    ]
    return corners, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def write_off(path, vertices, faces):
    lines = [f"OFF\n{len(vertices)} {len(faces)} 0"]
    lines += [" ".join(map(repr, map(float, vertex))) for vertex in vertices]
    lines += [" ".join(map(str, [len(face), *face])) for face in faces]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return path


def shown(folder, k):
    return np.asarray(Image.open(folder / f"{k:02}.png")).astype(float) / 255


def overlap(one, other):
    return np.minimum(one, other).sum() / np.maximum(one, other).sum()


def outline(solids, azimuth, elevation, size, fine=6):
    """How much of each pixel is covered, by projecting the corners of convex solids through a pinhole."""
    everything = np.concatenate(solids)
    middle = (everything.min(axis=0) + everything.max(axis=0)) / 2
    radius = np.linalg.norm(everything - middle, axis=1).max()
    a, e = np.radians([azimuth, elevation])
    back = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])  # from the middle to the camera
    right = np.array([-np.sin(a), np.cos(a), 0])
    up = np.cross(back, right)
    at = (np.arange(size * fine) + 0.5) / (size * fine) * 2 - 1
    x, y = np.meshgrid(at, -at)
    covered = np.zeros(x.shape, bool)
    for solid in solids:
        seen = (solid - middle) / radius - 3.1 * back
        flat = np.stack([seen @ right, seen @ up], 1) / -(seen @ back)[:, None] / np.tan(np.radians(20))
        inside = np.ones(x.shape, bool)
        for p in flat:
            for q in flat:
                side = (q[0] - p[0]) * (flat[:, 1] - p[1]) - (q[1] - p[1]) * (flat[:, 0] - p[0])
                if (p != q).any() and (side >= -1e-12).all():  # an edge of the hull
                    inside &= (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]) >= 0
        covered |= inside
    return covered.reshape(size, fine, size, fine).mean(axis=(1, 3))


@pytest.mark.parametrize(("views", "elevation"), [(4, 30.0), (5, -15.0)])
def test_outlines_are_those_of_a_pinhole_camera(tmp_path, views, elevation):
    """A lopsided L, which looks the same from no two sides."""
    foot, leg = box((0, 0, 0), (4, 1, 1)), box((0, 0, 1), (1, 2, 3))
    solids = [np.array(foot[0], float), np.array(leg[0], float)]
    faces = foot[1] + [[8 + corner for corner in face] for face in leg[1]]
    source = write_off(tmp_path / "L.off", foot[0] + leg[0], faces)
    render(source, tmp_path / "out", RenderSettings(views, elevation, 64, 16))
    expected = [outline(solids, 360 * k / views, elevation, 64) for k in range(views)]
    for k in range(views):
        alpha = shown(tmp_path / "out" / "L", k)[..., 1]
        agreement = [overlap(alpha, other) for other in expected]
        assert agreement[k] > 0.97, agreement  # 16 samples blur the edge of some 150 of 1300 pixels
        assert max(agreement[:k] + agreement[k + 1 :]) < 0.9
        mirrored = overlap(alpha[:, ::-1], expected[k])
        assert mirrored < 0.95


def test_coincident_walls_do_not_render_black(tmp_path):
    corners, walls = box((0, 0, 0), (1, 1, 1))
    doubled = corners + [[x + 1e-7, y, z - 1e-7] for x, y, z in corners]
    faces = walls + [[8 + corner for corner in reversed(wall)] for wall in walls]
    for name, vertices, polygons in (("single", corners, walls), ("doubled", doubled, faces)):
        write_off(tmp_path / "cubes" / f"{name}.off", vertices, polygons)
    render(tmp_path / "cubes", tmp_path / "out", RenderSettings(4, 30.0, 32, 4))
    for k in range(4):
        single, doubled = (shown(tmp_path / "out" / name, k) for name in ("single", "doubled"))
        assert doubled[..., 0][doubled[..., 1] == 1].min() > 0.3
        assert np.abs(single - doubled).max() < 0.02


def test_two_views_again_are_the_same_two_views(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(home))
    source = write_off(tmp_path / "box.off", *box((0, 0, 0), (1, 2, 3)))
    settings = RenderSettings(3, 30.0, 16, 2)
    render(source, tmp_path / "out", settings)
    folder = tmp_path / "out" / "box"
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    for k in (0, 2):
        (folder / f"{k:02}.png").unlink()
    assert render(source, tmp_path / "out", settings).rendered == 2
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    assert {name: content for name, (_, content) in after.items()} == {n: c for n, (_, c) in before.items()}
    assert [name for name in sorted(after) if after[name][0] != before[name][0]] == ["00.png", "02.png"]
    assert os.listdir(home) == []  # Blender likes to leave things about


@pytest.mark.data
def test_the_views_of_the_benchmarks_are_met(tmp_path):
    """Three views of a real mesh, put beside nine that were rendered long ago."""
    known = real_data("modelnet-views") / "modelnet-views"
    name, again = "dresser/train/dresser_0002", (1, 5, 8)
    folder = tmp_path / "views" / name
    folder.mkdir(parents=True)
    for k in set(range(12)) - set(again):
        shutil.copy(known / name / f"{k:02}.png", folder)
    mesh = real_data("modelnet-off") / "modelnet-off" / f"{name}.off"
    assert render(mesh, tmp_path / "views").rendered == len(again)
    for k in again:
        ours, theirs = shown(folder, k), shown(known / name, k)
        assert overlap(ours[..., 1], theirs[..., 1]) > 0.999
        solid = (ours[..., 1] == 1) & (theirs[..., 1] == 1)
        assert np.abs(ours - theirs)[..., 0][solid].mean() < 2 / 255
    assert len(os.listdir(folder)) == 12
