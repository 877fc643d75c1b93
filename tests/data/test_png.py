import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from collegium.data._png import composite, read_grey
from collegium.errors import InputFileError
from tiny_data import write_png

RNG = np.random.default_rng(3)


def pixels(channels, size=5):
    return RNG.integers(0, 256, (size, size, channels), np.uint8)


@pytest.mark.parametrize("background", [0, 37, 255])
def test_every_grey_through_every_transparency(background):
    grey, alpha = (axis.astype(np.uint8) for axis in np.mgrid[:256, :256])
    exact = [[round((g * a + background * (255 - a)) / 255) for a in range(256)] for g in range(256)]
    np.testing.assert_array_equal(composite(grey, alpha, background), exact)  # 255 is odd: there are no ties


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)])
def test_every_kind_of_file(tmp_path, mode, channels):
    own = pixels(channels)
    write_png(tmp_path / "a.png", own, mode)
    number = own.astype(float)
    grey = number[..., 0] if channels < 3 else number[..., :3] @ [0.299, 0.587, 0.114]
    alpha = number[..., -1] / 255 if channels in (2, 4) else 1.0
    found = read_grey(tmp_path / "a.png", 5, background=200)
    assert found.dtype == np.uint8
    # Colours are rounded to a whole grey first, and the sum is rounded again.
    assert np.abs(found - (grey * alpha + 200 * (1 - alpha))).max() <= (0.5 if channels < 3 else 1.01)


def test_one_colour_declared_transparent(tmp_path):
    own = np.zeros((5, 5), np.uint8)
    own[0] = 90
    Image.fromarray(own).save(tmp_path / "a.png", transparency=0)
    np.testing.assert_array_equal(read_grey(tmp_path / "a.png", 5, 255), np.where(own, own, 255))


def test_truncated_anywhere(tmp_path):
    path = tmp_path / "a.png"
    write_png(path, pixels(2), "LA")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputFileError, match=r"a\.png is (truncated|not a PNG file)"):
            read_grey(path, 5, 255)
    path.write_bytes(whole)
    assert read_grey(path, 5, 255).shape == (5, 5)


def test_any_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.png"
    write_png(path, pixels(2), "LA")
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        with pytest.raises(InputFileError, match=r"a\.png"):
            read_grey(path, 5, 255)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks):
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in chunks)


HEAD = (b"IHDR", struct.pack(">IIBBBBB", 5, 5, 8, 4, 0, 0, 0))
BODY = (b"IDAT", zlib.compress(bytes(5 * 11)))
END = (b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a PNG"),
        (b"\xff\xd8\xff\xe0 a photograph", "not a PNG"),
        (png(HEAD, BODY), "truncated or damaged"),
        (png(BODY, END), "truncated or damaged"),
        (png(HEAD, BODY, END) + b"more", "truncated"),
        (png(HEAD, BODY, END, END), "truncated or damaged"),
        (png(HEAD, (b"IDAT", zlib.compress(bytes(5 * 11))[:-9]), END), "does not hold 5×5 pixels"),
        (png(HEAD, (b"IDAT", zlib.compress(bytes(4 * 11))), END), "does not hold 5×5 pixels"),
        (png(HEAD, (b"IDAT", zlib.compress(bytes(6 * 11))), END), "does not hold 5×5 pixels"),
        (png(HEAD, (b"IDAT", b"\x78\x9cgarbage"), END), "does not hold 5×5 pixels"),
        (png(HEAD, END), "does not hold 5×5 pixels"),
        (png(HEAD, (b"IDAT", zlib.compress(b"\x09" * 55)), END), "cannot be decoded"),  # there is no filter 9
        (png((b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 4, 0, 0, 0)), BODY, END), "pixels, not 5×5"),
        (png((b"IHDR", struct.pack(">IIBBBBB", 5, 5, 16, 0, 0, 0, 0)), BODY, END), "8 bits"),
        (png((b"IHDR", struct.pack(">IIBBBBB", 5, 5, 8, 4, 0, 0, 1)), BODY, END), "plain image"),
        (png((b"IHDR", struct.pack(">IIBBBBB", 5, 5, 8, 3, 0, 0, 0)), BODY, END), "8 bits"),
    ],
)
def test_foreign_and_odd_files(tmp_path, content, says):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(InputFileError, match=rf"a\.png.*{says}"):
        read_grey(tmp_path / "a.png", 5, 255)


def test_the_odd_files_above_are_only_a_little_odd(tmp_path):
    (tmp_path / "a.png").write_bytes(png(HEAD, BODY, END))
    np.testing.assert_array_equal(read_grey(tmp_path / "a.png", 5, 7), np.full((5, 5), 7))


def test_a_folder_instead_of_a_file(tmp_path):
    with pytest.raises(InputFileError, match="directory"):
        read_grey(tmp_path, 5, 255)
