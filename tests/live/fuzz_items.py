"""A coverage-guided fuzzer for the item parser: whatever comes, it is a batch that holds together or one sentence.

Run by hand, for so many inputs:  python tests/live/fuzz_items.py -atheris_runs=1000000 [corpus folder]
"""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image


def seeds() -> list[bytes]:
    """Requests as they should be, so that the fuzzer begins behind the first door."""

    def npy(array) -> bytes:
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    def image(form: str, mode: str) -> bytes:
        file = io.BytesIO()
        Image.new(mode, (4, 3)).save(file, form)
        return file.getvalue()

    requests = [
        (0, b"", b'{"id": 7, "score": -0.5, "trace": true}'),
        (0, b"trace=1&wait=0", b'{"id": "a", "view": [[1, 2], [3e-2, 4]]}'),
        (0, b"", b'{"items": [{"id": 1, "score": 1}, {"id": "b", "score": 2}], "wait": false}'),
        (0, b"", b'{"items": [{"id": 1, "view": [1]}, {"id": "12", "view": [2]}]}'),
        (0, b"", b'{"ids": [1, "\\u00fc"], "scores": [0.25, -3]}'),
        (0, b"", b'{"ids": [1, 18446744073709551615], "views": [[1, 2], [3, 4]]}'),
        (1, b"first=100&scores=1", npy(np.linspace(-1, 1, 5))),
        (1, b"ids=a,b,c", npy(np.zeros((3, 2), np.uint8))),
        (1, b"id=x", npy(np.asfortranarray(np.ones((2, 3), ">f4")))),
        (1, b"id=1", npy(np.array([True, False]))),
        *[(2, b"id=%d" % k, image("PNG", mode)) for k, mode in enumerate(["L", "RGB", "RGBA", "P", "1", "I;16", "LA"])],
        *[(3, b"id=p", image("JPEG", mode)) for mode in ["L", "RGB", "CMYK"]],
    ]
    return [bytes([kind, len(query)]) + query + body for kind, query, body in requests]


def main() -> None:
    import atheris  # here, since pytest reads this file too, to look for doctests

    with atheris.instrument_imports(include=["collegium.live.http.items"]):
        from collegium.live.http.items import JPEG, JSON, NPY, PNG, Batch, Limits, Refusal, parse

    limits = Limits(items=50, bytes=1 << 16, pixels=10_000)

    def check(batch: Batch) -> None:
        n = len(batch.names)
        assert 1 <= n <= limits.items
        assert len(set(batch.names)) == n
        for name in batch.names:
            assert 0 <= name < 2**64 if isinstance(name, int) else 1 <= len(name) <= 200
        assert (batch.scores is None) != (batch.views is None)
        if batch.scores is not None:
            assert batch.scores.shape == (n,)
            assert batch.scores.dtype == np.float64
            assert np.isfinite(batch.scores).all()
        else:
            assert len(batch.views) == n
            assert batch.views.ndim >= 2
            assert np.isfinite(batch.views).all()
        assert not batch.alone or n == 1

    def one_input(data: bytes) -> None:
        """First a byte for the type of the body and one for the length of the query, then the query, then the body."""
        if len(data) < 2:
            return
        query, body = data[2 : 2 + data[1]], data[2 + data[1] :]
        try:
            batch = parse((JSON, NPY, PNG, JPEG)[data[0] % 4], query, body, limits)
        except Refusal as problem:
            refusal = problem
        else:
            check(batch)
            return
        assert refusal.status in (400, 413, 415, 422)
        assert 10 < len(str(refusal)) <= 600
        assert str(refusal).isprintable(), str(refusal)

    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds()):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
            one_input(seed)
        atheris.Setup([*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
