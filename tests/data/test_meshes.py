import numpy as np
import pytest

from collegium.data._meshes import Mesh, prepare, read_off, to_unit_sphere, weld
from collegium.errors import InputFileError

TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n2 0 0\n0 2 0\n0 0 2\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"


def read(tmp_path, content):
    path = tmp_path / "thing.off"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_off(path)


def mesh(vertices, faces):
    corners = [corner for face in faces for corner in face]
    return Mesh(np.array(vertices, float), np.array(corners, np.int32), np.array([len(face) for face in faces]))


@pytest.mark.parametrize(
    "content",
    [
        TETRAHEDRON,
        TETRAHEDRON.replace("OFF\n", "OFF"),
        TETRAHEDRON.replace("OFF\n", "OFF "),
        TETRAHEDRON.replace("4 4 6", "4 4"),
        TETRAHEDRON.replace("\n", "\r\n"),
        "# a thing\n\n" + TETRAHEDRON.replace("4 4 6\n", "# counts\n4 4 6 # so many\n\n"),
        TETRAHEDRON.replace("3 0 1 2\n", "3 0 1 2 255 128 0\n"),
        TETRAHEDRON.rstrip("\n"),
    ],
    ids=["plain", "glued", "one line", "no edges", "windows", "comments", "colours", "no last newline"],
)
def test_spellings_of_one_mesh(tmp_path, content):
    found = read(tmp_path, content)
    np.testing.assert_array_equal(found.vertices, [[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]])
    assert [face.tolist() for face in found.faces] == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


def test_faces_of_different_sizes(tmp_path):
    found = read(tmp_path, "OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n3 0 1 2\n")
    assert [face.tolist() for face in found.faces] == [[0, 1, 2, 3], [0, 1, 2]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "does not begin with OFF"),
        ("COFF\n4 4 6\n", "does not begin with OFF"),
        ("OFFBINARY\n", "does not begin with OFF"),
        (b"\x89PNG\r\n\x1a\n", "no plain text"),
        ("OFF", "numbers of vertices, faces and edges must follow"),
        ("OFF\nfour 4 6\n", "numbers of vertices, faces and edges must follow"),
        ("OFF-4 4 6\n", "numbers of vertices, faces and edges must follow"),
        ("OFF\n0 0 0\n", "is empty: it has 0 vertices and 0 faces"),
        ("OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n", "is empty: it has 3 vertices and 0 faces"),
        (TETRAHEDRON[:-9], "promises 4 vertices and 4 faces, but 7 lines follow"),
        (TETRAHEDRON + "3 0 1 2\n", "promises 4 vertices and 4 faces, but 9 lines follow"),
        (TETRAHEDRON[:-3], r"line 10: a face is a count and that many corners; got '3 1 2'"),
        (TETRAHEDRON.replace("0 2 0", "0 2"), "line 5: a vertex is three finite numbers; got '0 2'"),
        (TETRAHEDRON.replace("0 2 0", "0 nan 0"), "line 5: a vertex is three finite numbers; got '0 nan 0'"),
        (TETRAHEDRON.replace("0 2 0", "0 1e999 0"), "line 5: a vertex is three finite numbers"),
        (TETRAHEDRON.replace("0 2 0", "0 two 0"), "line 5: a vertex is three finite numbers; got '0 two 0'"),
        (TETRAHEDRON.replace("3 1 2 3", "3 1 2 4"), "line 10: there is no vertex 4, the last of 4 is 3"),
        (TETRAHEDRON.replace("3 1 2 3", "3 1 2 -1"), "line 10: there is no vertex -1"),
        (TETRAHEDRON.replace("3 1 2 3", "3 1 2 x"), "line 10: a face is a count"),
        (TETRAHEDRON.replace("3 1 2 3", "0"), "line 10: a face is a count"),
        (TETRAHEDRON.replace("3 1 2 3", "-3 1 2 3"), "line 10: a face is a count"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path, content, complaint):
    with pytest.raises(InputFileError, match=complaint) as refused:
        read(tmp_path, content)
    assert str(tmp_path / "thing.off") in str(refused.value)


def test_line_numbers_are_those_of_the_file(tmp_path):
    with pytest.raises(InputFileError, match="line 8:"):
        read(tmp_path, "# one\n# two\n" + TETRAHEDRON.replace("0 2 0", "# here\n0 2"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match="No such file"):
        read_off(tmp_path / "absent.off")


def test_the_unit_sphere_is_that_of_what_faces_use():
    found = to_unit_sphere(mesh([[100, 100, 100], [1, 1, 1], [3, 1, 1], [1, 5, 1]], [[1, 2, 3]])).vertices[1:]
    np.testing.assert_allclose(found.min(axis=0) + found.max(axis=0), 0, atol=1e-15)
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(found[1] - found[0], np.array([2, 0, 0]) / np.sqrt(5), atol=1e-15)


@pytest.mark.parametrize(
    ("vertices", "faces", "complaint"),
    [
        ([[1, 1, 1]] * 3, [[0, 1, 2]], "stand in one place"),
        ([[0, 0, 0], [1, 0, 0], [1e-7, 0, 0]], [[0, 1, 2]], "none of its faces has an area"),
        ([[0, 0, 0], [1, 0, 0]], [[0, 1]], "none of its faces has an area"),
        ([[-1e308, 0, 0], [1e308, 0, 0], [0, 1, 0]], [[0, 1, 2]], "too far apart"),
    ],
)
def test_meshes_that_show_nothing(vertices, faces, complaint):
    with pytest.raises(ValueError, match=complaint):
        prepare(mesh(vertices, faces))


def test_vertices_on_either_side_of_a_grid_line_are_one():
    """Rounding to a grid of 1e-5 would part the first two and join the next two."""
    step = 1e-5
    x = np.array([0.5 * step - 1e-9, 0.5 * step + 1e-9, 100.51 * step, 101.52 * step])
    vertices = [*([a, 0, 0] for a in x), [0, 1, 0], [0, 0, 1]]
    found = weld(mesh(vertices, [[0, 4, 5], [1, 4, 5], [2, 4, 5], [3, 4, 5]]))
    assert len(found.vertices) == 5
    assert len(found.sizes) == 3


@pytest.mark.parametrize("other", [[0, 1, 2], [1, 2, 0], [2, 1, 0], [3, 4, 5], [5, 4, 3], [3, 1, 5], [0, 0, 1, 2]])
def test_the_same_face_again_is_dropped(other):
    corner = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    found = weld(mesh([*corner, *(corner + 3e-6)], [[0, 1, 2], other]))
    assert found.sizes.tolist() == [3]
    np.testing.assert_allclose(found.vertices[found.corners], corner, atol=5e-6)


def test_faces_that_only_touch_stay():
    found = weld(mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2], [0, 1, 3, 2]]))
    assert [face.tolist() for face in found.faces] == [[0, 2, 1], [2, 3, 1], [0, 2, 3, 1]]
