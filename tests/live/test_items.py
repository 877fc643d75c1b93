"""Request bodies: what is right is read exactly, and what is wrong is one sentence with a status."""

import io
import json
import pickle
import struct
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from collegium._serving.limits import JPEG, JSON, NPY, PNG, Limits, Refusal
from collegium.live.http.items import parse, parse_name

LIMITS = Limits(items=100, bytes=1 << 16, pixels=10_000)


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), **options)
    return file.getvalue()


def npy_header(text, data=b""):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


def image(array_or_mode, form="PNG"):
    file = io.BytesIO()
    picture = Image.new(array_or_mode, (5, 3)) if isinstance(array_or_mode, str) else Image.fromarray(array_or_mode)
    picture.save(file, form)
    return file.getvalue()


def refusal(kind, query, body, limits=LIMITS):
    with pytest.raises(Refusal) as caught:
        parse(kind, query, body, limits)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [
        (JSON, b"", b'{"items": [{"id": 3, "score": 0.5}, {"id": 4, "score": -1}]}'),
        (JSON, b"", b'{"ids": [3, 4], "scores": [0.5, -1.0]}'),
        (JSON, b"", b'{"ids": ["3", "4"], "scores": [5e-1, -1]}'),
        ("Application/JSON; charset=utf-8", b"", b' {"scores": [0.5, -1], "ids": [3, 4]}\n'),
        (NPY, b"first=3&scores=1", npy([0.5, -1.0])),
        (NPY, b"ids=3,4&scores=true", npy(np.array([0.5, -1], ">f4"))),
    ],
)
def test_all_ways_to_send_scores_are_one(kind, query, body):
    batch = parse(kind, query, body, LIMITS)
    assert batch.names == [3, 4]
    assert batch.scores.dtype == np.float64
    assert batch.scores.tolist() == [0.5, -1.0]
    assert (batch.views, batch.trace, batch.wait, batch.alone) == (None, False, True, False)


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [
        (JSON, b"", b'{"items": [{"id": "a", "view": [1, 2]}, {"id": "b", "view": [3, 4]}]}'),
        (JSON, b"", b'{"ids": ["a", "b"], "views": [[1, 2], [3, 4]]}'),
        (NPY, b"ids=a,b", npy([[1, 2], [3, 4]])),
        (NPY, b"ids=a%2Cb", npy(np.asfortranarray([[1, 2], [3, 4]]))),
    ],
)
def test_all_ways_to_send_views_are_one(kind, query, body):
    batch = parse(kind, query, body, LIMITS)
    assert batch.names == ["a", "b"]
    assert batch.views.tolist() == [[1, 2], [3, 4]]
    assert batch.scores is None
    assert batch.views.flags.writeable  # PyTorch insists


def test_one_item_alone():
    batch = parse(JSON, b"wait=0", b'{"id": "x", "score": 2, "trace": true}', LIMITS)
    assert (batch.names, batch.scores.tolist(), batch.trace, batch.wait, batch.alone) == (
        ["x"],
        [2.0],
        True,
        False,
        True,
    )
    assert parse(JSON, b"trace=0", b'{"id": "x", "score": 2, "trace": true}', LIMITS).trace is False
    assert parse(NPY, b"id=x&scores=1", npy(2.5), LIMITS).scores.tolist() == [2.5]
    assert parse(NPY, b"id=x", npy([1, 2, 3]), LIMITS).views.shape == (1, 3)
    assert parse(NPY, b"id=x", npy(np.zeros((1, 3))), LIMITS).views.shape == (1, 1, 3)
    assert parse(JSON, b"", b'{"id": 0, "view": [[[1], [2]]]}', LIMITS).views.shape == (1, 1, 2, 1)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("12", 12),
        ("0", 0),
        ("007", "007"),
        ("-1", "-1"),
        ("٣", "٣"),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", "18446744073709551616"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("x" * 200, "x" * 200),
    ],
)
def test_digits_alone_are_a_number_wherever_they_stand(text, name):
    assert parse_name(text) == name
    body = json.dumps({"ids": [text, "other"], "scores": [1, 2]}).encode()
    assert parse(JSON, b"", body, LIMITS).names == [name, "other"]


MISTAKES = [
    # the type of the body
    ("text/plain", b"", b"{}", 415, "Content-Type must be application/json"),
    ("", b"", b"{}", 415, "none was given"),
    # not JSON
    (JSON, b"", b"", 400, "not JSON"),
    (JSON, b"", b'{"id": 1, "score": 2', 400, "not JSON"),
    (JSON, b"", b'{"id": 1, "score": NaN}', 400, "not JSON"),
    (JSON, b"", b'{"id": "\xff", "score": 1}', 400, "not JSON"),
    (JSON, b"", b'{"id": "\\ud800", "score": 1}', 400, "not JSON"),
    (JSON, b"", b'{"id": 1, "view": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "nested too deep"),
    # JSON, but no items
    (JSON, b"", b"[]", 422, "expected object, got array"),
    (JSON, b"", b"{}", 422, 'an item is {"id"'),
    (JSON, b"", b'{"id": 1, "scor": 2}', 422, "unknown field scor"),
    (JSON, b"", b'{"id": 1, "score": 2, "items": []}', 422, 'an item is {"id"'),
    (JSON, b"", b'{"id": 1, "score": 2, "scores": [1]}', 422, "mixes two forms"),
    (JSON, b"", b'{"items": [{"id": 1, "score": 2}], "view": [1]}', 422, "mixes two forms"),
    (JSON, b"", b'{"ids": [1], "scores": [1], "score": 1}', 422, "mixes two forms"),
    (JSON, b"", b'{"items": []}', 422, "no items"),
    (JSON, b"", b'{"ids": [], "scores": []}', 422, "no items"),
    (JSON, b"", b'{"items": [{"score": 1}]}', 422, "items[0]: object missing required field id"),
    # ids
    (JSON, b"", b'{"id": 1.5, "score": 2}', 422, "an id is a whole number from 0 to 18446744073709551615"),
    (JSON, b"", b'{"id": true, "score": 2}', 422, "expected int or str, got bool"),
    (JSON, b"", b'{"id": -1, "score": 2}', 422, "an id is a whole number"),
    (JSON, b"", b'{"id": "", "score": 2}', 422, "a string of 1 to 200 characters"),
    (JSON, b"", b'{"id": "%s", "score": 2}' % (b"x" * 201), 422, "a string of 1 to 200 characters"),
    (JSON, b"", b'{"id": 18446744073709551616, "score": 2}', 422, "at most 18446744073709551615"),
    (JSON, b"", b'{"id": "a\\u0007", "score": 2}', 422, "no control characters"),
    (JSON, b"", b'{"ids": ["ok", "a\\u2028b"], "scores": [1, 2]}', 422, "no control characters"),
    (JSON, b"", b'{"ids": [1, 2, 1], "scores": [1, 2, 3]}', 422, "1 is there twice"),
    (JSON, b"", b'{"ids": [1, "1"], "scores": [1, 2]}', 422, "1 is there twice"),
    (JSON, b"", json.dumps({"ids": list(range(101)), "scores": [0] * 101}).encode(), 413, "send at most 100"),
    (NPY, b"ids=" + b"," * 200, npy(np.zeros((201, 2))), 413, "send at most 100"),
    (NPY, b"first=0", npy(np.zeros((101, 2))), 413, "send at most 100"),
    (NPY, b"first=18446744073709551615", npy(np.zeros((2, 2))), 422, "at most 18446744073709551615"),
    (NPY, b"first=x", npy(np.zeros((2, 2))), 422, "first must be a whole number"),
    (NPY, b"ids=a,,b", npy(np.zeros((3, 2))), 422, "1 to 200 characters; this one has 0"),
    (NPY, b"ids=a,b", npy(np.zeros((3, 2))), 422, "2 ids, but the length of the array's first axis is 3"),
    (NPY, b"", npy(np.zeros((3, 2))), 422, "?id=…, ?ids=a,b,c and ?first=100"),
    (NPY, b"id=1&first=2", npy(np.zeros((3, 2))), 422, "?id=…, ?ids=a,b,c and ?first=100"),
    (PNG, b"", image("L"), 422, "?id=…"),
    # numbers
    (JSON, b"", b'{"id": 1, "score": "2"}', 422, "at score: expected float, got str"),
    (JSON, b"", b'{"id": 1, "score": null}', 422, "at score: expected float, got null"),
    (JSON, b"", b'{"id": 1, "score": 1e999}', 422, "out of range"),
    (JSON, b"", b'{"items": [{"id": 1, "score": 1}, {"id": 2}]}', 422, "each item needs a score or a view"),
    (JSON, b"", b'{"items": [{"id": 1, "score": 1}, {"id": 2, "view": [1]}]}', 422, "the same of the two"),
    (JSON, b"", b'{"ids": [1, 2], "scores": [1]}', 422, "2 ids, but the length of scores is 1"),
    (JSON, b"", b'{"ids": [1, 2]}', 422, '"ids" needs "scores" or "views"'),
    (JSON, b"", b'{"ids": [1], "scores": [1], "views": [[1]]}', 422, "and not both"),
    (JSON, b"", b'{"id": 1, "view": 3}', 422, "must be a list of numbers"),
    (JSON, b"", b'{"id": 1, "view": null}', 422, "must be a list of numbers"),
    (JSON, b"", b'{"id": 1, "view": []}', 422, "must not be empty"),
    (JSON, b"", b'{"id": 1, "view": [1, true]}', 422, "at [1]: expected float, got bool"),
    (JSON, b"", b'{"id": 1, "view": [[1, 2], [3]]}', 422, "the same length"),
    (JSON, b"", b'{"id": 1, "view": [[1, 2], 3]}', 422, "expected array, got int"),
    (JSON, b"", b'{"id": 1, "view": [[[[[1]]]]]}', 422, "nested at most 4 deep"),
    (JSON, b"", b'{"items": [{"id": 1, "view": [1]}, {"id": 2, "view": [1, 2]}]}', 422, "item 1 (2,)"),
    (JSON, b"", b'{"ids": [1, 2], "views": [1, 2]}', 422, "a list of lists"),
    # arrays
    (NPY, b"id=1", b"PK\x03\x04" + bytes(20), 400, "not an NPY file"),
    (NPY, b"id=1", npy([1.0, 2.0])[:-1], 400, "claims 16 bytes of numbers, but there are 15"),
    (NPY, b"id=1", npy([1.0, 2.0]) + b"\0", 400, "claims 16 bytes of numbers, but there are 17"),
    (NPY, b"id=1", npy([1.0])[:40], 400, "cut off"),
    (NPY, b"id=1", npy_header("{'descr': '<f8', 'fortran_order': False}"), 400, "does not name"),
    (NPY, b"id=1", npy_header("{'descr': '<f8', 'descr': '<f8', 'shape': (1,), }"), 400, "does not name"),
    (NPY, b"id=1", npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)*9, }"), 400, "does not name"),
    (NPY, b"id=1", npy_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}"), 400, "does not name"),
    (NPY, b"id=1", npy(np.array(["a"])), 422, "real numbers"),
    (NPY, b"id=1", npy(np.array([1j])), 422, "real numbers"),
    (NPY, b"id=1", npy(np.zeros((2, 0))), 422, "empty"),
    (NPY, b"id=1", npy([np.nan, 1]), 422, "NaN or infinite"),
    (NPY, b"id=1&scores=1", npy(np.inf), 422, "NaN or infinite"),
    (
        NPY,
        b"first=1&scores=1",
        npy(np.zeros((2, 2))),
        422,
        "two classes a score is one number; the array has shape (2, 2)",
    ),
    (NPY, b"first=1", npy(np.zeros(2)), 422, "&scores=1"),
    (NPY, b"first=1", npy(1.0), 422, "a single number"),
    # pictures
    (PNG, b"id=1", b"GIF89a", 400, "damaged, or no PNG"),
    (PNG, b"id=1", image("L", "JPEG"), 400, "damaged, or no PNG"),
    (JPEG, b"id=1", image("L")[:-20], 400, "damaged, or no JPEG"),
    (PNG, b"id=1", image(np.zeros((200, 200), np.uint8))[:-40], 413, "200 × 200 pixels; it may have 10000"),
    (PNG, b"id=1", image(np.arange(2500, dtype=np.uint16).reshape(50, 50))[:-99], 400, "damaged"),
    # options
    (JSON, b"id=1", b'{"id": 1, "score": 2}', 422, "unknown option 'id'"),
    (JSON, b"trace", b'{"id": 1, "score": 2}', 422, "?name=value"),
    (JSON, b"trace=1&trace=1", b'{"id": 1, "score": 2}', 422, "twice"),
    (JSON, b"trace=yes", b'{"id": 1, "score": 2}', 422, "must be 1 or 0"),
    (JSON, b"trace=%ff", b'{"id": 1, "score": 2}', 422, "?name=value"),
    (JSON, b"&".join([b"a=1"] * 30), b'{"id": 1, "score": 2}', 422, "?name=value"),
    (PNG, b"id=1&path=/etc/passwd", image("L"), 422, "unknown option 'path'"),
]


@pytest.mark.parametrize(("kind", "query", "body", "status", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_every_mistake_is_a_sentence_with_a_status(kind, query, body, status, words):
    problem = refusal(kind, query, body)
    assert words in str(problem)
    assert problem.status == status


SCORES = [[1.0, 2.0, 3.0], [-1.5, 0.0, 1e300]]


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [
        (JSON, b"", b'{"ids": [5, 6], "scores": [[1, 2, 3], [-1.5, 0, 1e300]]}'),
        (JSON, b"", b'{"items": [{"id": 5, "score": [1, 2, 3]}, {"id": 6, "score": [-1.5, 0, 1e300]}]}'),
        (NPY, b"first=5&scores=1", npy(SCORES)),
        (NPY, b"ids=5,6&scores=1", npy(np.asfortranarray(SCORES))),
    ],
)
def test_a_score_has_one_number_for_each_class(kind, query, body):
    batch = parse(kind, query, body, LIMITS, classes=3)
    assert batch.names == [5, 6]
    np.testing.assert_array_equal(batch.scores, SCORES)


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [(JSON, b"", b'{"id": 5, "score": [1, 2, 3]}'), (NPY, b"id=5&scores=1", npy([1.0, 2.0, 3.0]))],
)
def test_also_that_of_one_item(kind, query, body):
    batch = parse(kind, query, body, LIMITS, classes=3)
    assert (batch.names, batch.alone) == ([5], True)
    np.testing.assert_array_equal(batch.scores, [[1, 2, 3]])


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [
        (JSON, b"", b'{"id": 5, "score": 1}'),
        (JSON, b"", b'{"id": 5, "score": [1, 2]}'),
        (JSON, b"", b'{"id": 5, "score": [1, 2, 3, 4]}'),
        (JSON, b"", b'{"ids": [5, 6], "scores": [1, 2]}'),
        (JSON, b"", b'{"items": [{"id": 5, "score": [1, 2, "3"]}]}'),
        (NPY, b"first=5&scores=1", npy([1.0, 2.0])),
        (NPY, b"id=5&scores=1", npy([1.0])),
        (NPY, b"id=5&scores=1", npy(1.0)),
        (NPY, b"first=5&scores=1", npy(np.zeros((2, 4)))),
        (NPY, b"first=5&scores=1", npy(np.zeros((2, 3, 1)))),
    ],
)
def test_and_no_other_count(kind, query, body):
    with pytest.raises(Refusal, match="in a network of 3 classes a score is a list of 3 numbers") as problem:
        parse(kind, query, body, LIMITS, classes=3)
    assert problem.value.status == 422


def test_what_is_quoted_cannot_steer_a_terminal():
    problem = refusal(NPY, b"id=1", npy_header("{'descr': '|u\x1b', 'fortran_order': False, 'shape': (1,), }", b"\0"))
    assert str(problem).isprintable()
    assert refusal(JSON, b"", b'{"\\u001b[2J": 1}').args[0].isprintable()


def test_a_header_that_claims_terabytes_allocates_nothing():
    body = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 999999999999), }", bytes(64))
    assert "claims" in str(refusal(NPY, b"id=1", body))
    body = b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(64)
    assert "cut off" in str(refusal(NPY, b"id=1", body))


def test_headers_made_to_keep_a_parser_busy_do_not():
    begun = time.thread_time()
    for filler in (" ", "\t,", "'descr': '<f8', ", "(" * 7, "0,"):
        text = ("{" + filler * 4096)[:4096]
        assert refusal(NPY, b"id=1", npy_header(text)).status == 400
        assert refusal(NPY, b"id=1", npy_header("{'shape': (" + text[12:])).status == 400
    spaces = b'{"id": 1, "view": [' + b" " * 5_000_000 + b"]}"
    assert "empty" in str(refusal(JSON, b"", spaces))
    assert time.thread_time() - begun < 2


def test_nothing_is_ever_unpickled(tmp_path):
    """An object array runs its payload when it is loaded: here it would leave a file."""
    mark = tmp_path / "mark"

    class Trap:
        def __reduce__(self):
            return (open, (str(mark), "w"))

    body = npy(np.array([Trap()], dtype=object))
    np.load(io.BytesIO(body), allow_pickle=True)[0].close()
    assert mark.exists()  # the trap works
    mark.unlink()
    assert refusal(NPY, b"id=1", body).status == 422
    assert refusal(NPY, b"id=1", pickle.dumps(Trap())).status == 400
    assert not mark.exists()


@settings(deadline=None)
@given(hnp.arrays(st.sampled_from(["?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u8", "<f2", ">f4", "<f8"]),
                  hnp.array_shapes(min_dims=2, max_dims=5, max_side=4),
                  elements={"allow_nan": False, "allow_infinity": False}), st.booleans())  # fmt: skip
def test_arrays_come_as_numpy_saved_them(array, turned):
    array = np.asfortranarray(array) if turned else array
    batch = parse(NPY, b"first=7", npy(array), LIMITS)
    assert batch.names == list(range(7, 7 + len(array)))
    assert batch.views.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(batch.views, array)


def test_any_byte_but_zero_is_true():
    body = npy([True, False, True]).replace(b"\x01\x00\x01", b"\x02\x00\xff")
    assert parse(NPY, b"id=1", body, LIMITS).views.view(np.uint8).tolist() == [[1, 0, 1]]


@pytest.mark.parametrize(
    ("mode", "shape", "dtype"),
    [
        ("1", (3, 5), np.uint8),
        ("L", (3, 5), np.uint8),
        ("LA", (3, 5), np.uint8),
        ("I;16", (3, 5), np.uint16),
        ("RGB", (3, 5, 3), np.uint8),
        ("RGBA", (3, 5, 3), np.uint8),
        ("P", (3, 5, 3), np.uint8),
    ],
)
def test_pictures_are_grey_or_colour(mode, shape, dtype):
    batch = parse(PNG, b"id=7", image(mode), LIMITS)
    assert batch.names == [7]
    assert batch.alone
    assert batch.views.shape == (1, *shape)
    assert batch.views.dtype == dtype


def test_a_picture_is_what_was_drawn():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 4, 3), dtype=np.uint8)
    np.testing.assert_array_equal(parse(PNG, b"id=a", image(pixels), LIMITS).views[0], pixels)
    deep = pixels[..., 0].astype(np.uint16) * 257
    np.testing.assert_array_equal(parse(PNG, b"id=a", image(deep), LIMITS).views[0], deep)
    grey = np.full((8, 8), 77, np.uint8)
    np.testing.assert_array_equal(parse(JPEG, b"id=a", image(grey, "JPEG"), LIMITS).views[0], grey)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(side, *chunks):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(1 << 20), 9))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [200, 10_000, 60_000])
def test_a_decompression_bomb_is_refused_by_its_size(side):
    problem = refusal(PNG, b"id=1", png(side))
    assert problem.status == 413
    assert "pixels" in str(problem)


def test_a_bomb_in_a_picture_s_text_is_not_unpacked():
    assert parse(PNG, b"id=1", png(9), LIMITS).views.shape == (1, 9, 9)
    text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(1 << 24), 9))
    assert refusal(PNG, b"id=1", png(9, text)).status == 400


WORDS = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=200)
NAMES = st.lists(st.integers(0, 2**64 - 1) | WORDS, min_size=1, max_size=20, unique_by=str)


@settings(deadline=None)
@given(NAMES, st.data())
def test_names_and_scores_come_through_exactly(names, data):
    finite = st.floats(allow_nan=False, allow_infinity=False)
    scores = data.draw(st.lists(finite, min_size=len(names), max_size=len(names)))
    items = [{"id": name, "score": score} for name, score in zip(names, scores, strict=True)]
    for content in ({"ids": names, "scores": scores}, {"items": items}):
        batch = parse(JSON, b"", json.dumps(content).encode(), LIMITS)
        assert [str(name) for name in batch.names] == [str(name) for name in names]
        assert batch.scores.tobytes() == np.array(scores).tobytes()


def check_only_sentences(kind, query, body):
    try:
        batch = parse(kind, query, body, LIMITS)
    except Refusal as problem:
        status, sentence = problem.status, str(problem)
    else:
        n = len(batch.names)
        assert 1 <= n == len(set(batch.names)) <= LIMITS.items
        values = batch.scores if batch.views is None else batch.views
        assert len(values) == n
        assert np.isfinite(values).all()
        assert (values.ndim == 1) == (batch.views is None)
        return
    assert status in (400, 413, 415, 422)
    assert sentence.isprintable()
    assert 10 < len(sentence) <= 600


@settings(deadline=None)
@given(st.sampled_from([JSON, NPY, PNG, JPEG, "", "text/html"]), st.binary(max_size=60), st.binary(max_size=300))
def test_any_bytes_make_items_or_a_sentence(kind, query, body):
    check_only_sentences(kind, query, body)


GOOD = [
    (JSON, b"", b'{"items": [{"id": 3, "score": 0.5}, {"id": "x", "score": -1}], "trace": true}'),
    (JSON, b"trace=1", b'{"ids": [3, "b"], "views": [[[1, 2.5]], [[3, 4]]]}'),
    (NPY, b"ids=a,b", npy(np.ones((2, 3), "f4"))),
    (NPY, b"first=9&scores=1", npy(np.ones(4))),
    (PNG, b"id=q", image("RGB")),
    (JPEG, b"id=q", image("RGB", "JPEG")),
]


@settings(deadline=None)
@given(st.sampled_from(GOOD), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=4))))
def test_requests_that_are_nearly_right(good, edits):
    kind, query, body = good
    for place, cut, put in edits:
        if place % 5 == 0:
            place %= len(query) + 1
            query = query[:place] + put + query[place + cut :]
        else:
            place %= len(body) + 1
            body = body[:place] + put + body[place + cut :]
    check_only_sentences(kind, query, body)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["id", "score", "view", "items", "ids", "scores", "views", "trace", "wait"]), JSON_VALUES
    )
)
def test_json_of_any_shape(content):
    check_only_sentences(JSON, b"", json.dumps(content).encode())
