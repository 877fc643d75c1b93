"""One view of one object: a PNG file, whole or refused, laid on a background of a stated grey."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputFileError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # grey, colour, both with alpha


class OtherSize(InputFileError):
    """A whole file, but with more or fewer pixels than wanted."""


def read_grey(path: Path, size: int, background: int) -> NDArray[np.uint8]:
    """The pixels of a file as (size, size) grey values; colours become grey, and transparency shows the background."""
    from PIL import Image

    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    _check(path, content, size)
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if not image.has_transparency_data:
                return np.array(image.convert("L"))
            pixels = np.asarray(image.convert("LA"))
    except Exception as problem:  # whatever a decoder stumbles over, the file is to blame
        raise InputFileError(f"{path} cannot be decoded: {problem}") from None
    return composite(pixels[..., 0], pixels[..., 1], background)


def claimed_width(path: Path) -> int | None:
    """The width that stands at the beginning of a PNG file, whatever follows; None if it is no such file."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    return int.from_bytes(head[16:]) if head.startswith(_SIGNATURE) and len(head) == 20 else None


def composite(grey: NDArray[np.uint8], alpha: NDArray[np.uint8], background: int) -> NDArray[np.uint8]:
    r"""Grey values seen through their own transparency: $(g\,\alpha + b\,(255-\alpha)) / 255$, to the nearest integer.

    >>> composite(np.uint8([100, 100, 100]), np.uint8([255, 128, 0]), 255)
    array([100, 177, 255], dtype=uint8)
    """
    opaque = alpha.astype(np.uint16)  # no sum below exceeds 255² + 127
    return ((grey * opaque + np.uint16(background) * (255 - opaque) + 127) // 255).astype(np.uint8)


def _check(path: Path, content: bytes, size: int) -> None:
    """Refuse what is not a whole PNG file of this size: decoders are content with less."""
    if not content.startswith(_SIGNATURE):
        raise InputFileError(f"{path} is not a PNG file")
    chunks = list(_chunks(path, content))
    kinds = [kind for kind, _ in chunks]
    if kinds[:1] != [b"IHDR"] or len(chunks[0][1]) != 13 or b"IEND" in kinds[:-1] or kinds[-1] != b"IEND":
        raise InputFileError(f"{path} is truncated or damaged: its beginning or its end is not that of a PNG file")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if (width, height) != (size, size):
        raise OtherSize(f"{path} is {width}×{height} pixels, not {size}×{size}")
    if depth != 8 or colour not in _CHANNELS or interlaced:
        raise InputFileError(f"{path} is not a plain image of 8 bits in grey or colour, with or without transparency")
    expected = size * (1 + size * _CHANNELS[colour])
    try:
        packed = b"".join(body for kind, body in chunks if kind == b"IDAT")
        whole = len(zlib.decompressobj().decompress(packed, expected + 1)) == expected
    except zlib.error:
        whole = False
    if not whole:
        raise InputFileError(f"{path} is damaged: it does not hold {size}×{size} pixels")


def _chunks(path: Path, content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(content):
        head = content[at : at + 8]
        length = int.from_bytes(head[:4])
        body, check = content[at + 8 : at + 8 + length], content[at + 8 + length : at + 12 + length]
        if len(check) < 4:
            raise InputFileError(f"{path} is truncated: it ends in the middle, after {len(content)} bytes")
        if zlib.crc32(head[4:] + body) != int.from_bytes(check):
            raise InputFileError(f"{path} is damaged: a checksum inside does not fit")
        yield head[4:], body
        at += 12 + length
