"""Small data sets in the layouts of the real ones, made afresh for a test."""

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CIFAR_FILES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]


def real_data(folder: str) -> Path:
    """The folder of real data, or the test is skipped."""
    root = os.environ.get("COLLEGIUM_DATA", "")
    if not root or not (Path(root) / folder).is_dir():
        pytest.skip(f"COLLEGIUM_DATA does not lead to {folder}")
    return Path(root)


def cifar_file(labels, seed=0) -> bytes:
    """Records of the official layout: a label, then 3072 bytes."""
    rng = np.random.default_rng(seed)
    return b"".join(bytes([label]) + rng.bytes(3072) for label in labels)


def write_cifar(root: Path, labels=(3, 5, 5, 3, 0)) -> Path:
    """Six files with one more record each: unequal lengths, as in a part of the official set."""
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for i, name in enumerate(CIFAR_FILES):
        (folder / name).write_bytes(cifar_file([*labels, *[3] * i], seed=i))
    return folder


def write_png(path: Path, pixels, mode: str) -> None:
    """A PNG file with these bytes as its pixels."""
    Image.frombytes(mode, pixels.shape[1::-1], np.ascontiguousarray(pixels).tobytes()).save(path)


def write_views(root: Path, size=6, classes=("dresser", "night_stand"), train=3, test=2, seed=0) -> Path:
    """Views of random grey and alpha."""
    rng = np.random.default_rng(seed)
    folder = root / "modelnet-views"
    for name in classes:
        for split, n in (("train", train), ("test", test)):
            for i in range(n):
                place = folder / name / split / f"{name}_{i:04}"
                place.mkdir(parents=True)
                for k in range(12):
                    write_png(place / f"{k:02}.png", rng.integers(0, 256, (size, size, 2), np.uint8), "LA")
    return folder


def tar_gz(entries) -> bytes:
    """An archive of (name or TarInfo, content) pairs."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in entries:
            entry = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if not isinstance(name, tarfile.TarInfo):
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content) if content else None)
    return gzip.compress(raw.getvalue(), compresslevel=1)


def cifar_entries(labels=(3, 5)):
    """What the official archive holds, in small."""
    files = [(f"cifar-10-batches-bin/{name}", cifar_file(labels, seed=i)) for i, name in enumerate(CIFAR_FILES)]
    folder = tarfile.TarInfo("cifar-10-batches-bin")
    folder.type = tarfile.DIRTYPE
    return [(folder, b""), *files, ("cifar-10-batches-bin/batches.meta.txt", b"airplane\n")]


def zipped(files) -> bytes:
    """A .zip archive of files by name."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return raw.getvalue()


def robot_files(n=400, seed=0) -> dict[str, bytes]:
    """A robot that does one thing for ten readings, then the next; lines end as in the official file."""
    rng = np.random.default_rng(seed)
    doing = ("Move-Forward", "Slight-Right-Turn", "Sharp-Right-Turn", "Slight-Left-Turn")
    lines = [",".join([*(f"{x:.3f}" for x in rng.uniform(0.4, 5, 24)), doing[i // 10 % 4]]) for i in range(n)]
    return {"sensor_readings_24.data": "".join(f"{line}\r\n" for line in lines).encode()}


def office_files(sizes=(30, 12, 20), seed=0) -> dict[str, bytes]:
    """Three files in the official layout: the row number has no name, and one file does not quote its dates."""
    rng = np.random.default_rng(seed)
    head = '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"\n'
    files = {}
    for name, n in zip(("datatraining.txt", "datatest.txt", "datatest2.txt"), sizes, strict=True):
        quote = "" if name == "datatest2.txt" else '"'
        rows = []
        for i in range(n):
            date = f"{quote}2015-02-0{n % 7 + 1} 12:{i % 60:02}:00{quote}"
            rows.append(f'"{i + 140}",{date},{",".join(f"{x:.4f}" for x in rng.uniform(0, 900, 5))},{i % 3 == 0:d}\n')
        files[name] = (head + "".join(rows)).encode()
    return files


def numeral_files(csv=False, each=200, seed=0) -> dict[str, bytes]:
    """Six files with the official numbers of rows, two to seven columns, blanks or commas between them."""
    rng = np.random.default_rng(seed)
    files = {}
    for columns, name in enumerate(("fou", "fac", "kar", "pix", "zer", "mor"), 2):
        values = np.round(rng.normal(size=(10 * each, columns)), 3)
        if csv:
            head = ",".join(map(str, [*range(columns), 0])) + "\r\n"
            rows = [",".join([*map(str, row), str(i // each)]) + "\r\n" for i, row in enumerate(values.tolist())]
            files[f"mfeat-{name}.csv"] = (head + "".join(rows)).encode()
        else:
            rows = ["".join(f"  {x}" for x in row) + "\n" for row in values.tolist()]
            files[f"mfeat-{name}"] = "".join(rows).encode()
    return files
