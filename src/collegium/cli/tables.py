"""Reading and writing the tables of the command line: CSV, TSV, NPY and Parquet, refused by name when they are not."""

import csv
import gzip
import re
import zlib
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.errors import BackendError, InputFileError

ITEM_NAMES = ("item", "id")
LABEL_NAMES = ("label", "y")
_PARQUET = "Parquet files need an extra: pip install 'collegium[tables]'"
ENDINGS = (".csv", ".npy", ".parquet")
"""What is written."""
READABLE = (".csv", ".tsv", ".npy", ".parquet", ".csv.gz", ".tsv.gz")
_GAPS = ("", "na", "n/a", "nan", "null", "none", "?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?")


class Table(NamedTuple):
    """Columns with their names (None where the file has none)."""

    names: list[str] | None
    columns: list[NDArray[Any]] | NDArray[Any]  # an array where all have one type
    path: Path

    def pop(self, names: tuple[str, ...]) -> tuple[NDArray[Any] | None, "Table"]:
        """The first column of one of these names, whatever its case, and the table without it."""
        own = self.names or []
        for i, name in enumerate(own):
            if name.lower() in names:
                rest = [column for j, column in enumerate(self.columns) if j != i]
                return self.columns[i], Table(own[:i] + own[i + 1 :], rest, self.path)
        return None, self


def read_matrix(path: Path) -> Any:
    """A matrix: CSV, NPY, Parquet, or scipy.sparse's NPZ."""
    if path.suffix.lower() == ".npz":
        from scipy import sparse

        try:
            return sparse.load_npz(path)
        except Exception:
            raise InputFileError(f"{path} is not a matrix saved by scipy.sparse.save_npz") from None
    return numbers(read_table(path))


def read_table(path: Path) -> Table:
    """A table from a CSV or TSV (with or without a header, perhaps packed by gzip), NPY or Parquet file."""
    readers = {".npy": _read_npy, ".parquet": _read_parquet}
    if not path.is_file():
        raise InputFileError(f"{path}: {'not a file, but a folder' if path.is_dir() else 'no such file'}")
    if ending(path) not in READABLE:
        raise InputFileError(
            f"{path}: cannot read {path.suffix or 'a file without an ending'}; use {', '.join(READABLE)}"
        )
    try:
        return readers.get(ending(path), _read_csv)(path)
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None


def ending(path: Path) -> str:
    """What a file's name says it is: .csv, .csv.gz, …"""
    return "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def stem(path: Path) -> str:
    """A file's name without that."""
    return path.name[: len(path.name) - len(ending(path))]


def _read_csv(path: Path) -> Table:
    try:
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as packed:
            text = StringIO(_decoded(packed.read(), path), newline="")
        separator = _separator(next((line for line in text if line.strip()), ""), ending(path))
        text.seek(0)
        reader = csv.reader(text, delimiter=separator)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error:
        raise InputFileError(f"{path} is not a text file: is it really a CSV?") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputFileError(f"{path} is not a whole file packed by gzip") from None
    if not rows:
        raise InputFileError(f"{path} is empty")
    if len(rows) > 1 and len(rows[1][1]) == len(rows[0][1]) + 1:  # as R writes it: row names have no name
        rows[0] = (rows[0][0], ["", *rows[0][1]])
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise InputFileError(f"{path}: line {number} has {len(row)} cells, the first has {width}")
    if separator != ",":
        rows = [(number, [_with_point(cell) for cell in row]) for number, row in rows]
    names = _header(rows[0][1])
    body = [row for _, row in (rows if names is None else rows[1:])]
    return Table(names, [column([row[i] for row in body]) for i in range(width)], path)


def _decoded(packed: bytes, path: Path) -> str:
    """Text in UTF-8, or in UTF-16 if it begins by saying so, as Excel's "Unicode text" does."""
    is_wide = packed.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return packed.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as problem:
        if b"\0" in packed:
            raise InputFileError(f"{path} is not a text file: is it really a CSV?") from None
        line = packed[: problem.start].count(b"\n") + 1
        raise InputFileError(
            f"{path}: line {line} is not in UTF-8. Save it as CSV UTF-8, or convert it: iconv -f latin1 -t utf-8"
        ) from None


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def _separator(first: str, kind: str) -> str:
    """What stands between cells: the most frequent sign of the first line, unless commas are in its numbers."""
    if kind.startswith(".tsv"):
        return "\t"
    for sign in "\t;":
        cells = [cell.strip() for cell in first.split(sign)]
        if len(cells) > 1 and any(map(_DECIMAL_COMMA.fullmatch, cells)):
            return sign
    return max(",;\t", key=first.count)


def _header(row: list[str]) -> list[str] | None:
    """The names in the first row, if it holds names throughout, or one that means something here.

    A row with a gap or a slip among numbers is data; an empty first name is the index that pandas writes.
    """
    cells = list(row)
    if len(cells) > 1 and not cells[0] and all(cell and not is_number(cell) for cell in cells[1:]):
        cells[0] = ITEM_NAMES[0]
    known = {*ITEM_NAMES, *LABEL_NAMES}
    names = all(cell and not is_number(cell) for cell in cells)
    return cells if names or not known.isdisjoint(cell.lower() for cell in cells) else None


def _read_npy(path: Path) -> Table:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        array = None
    if not isinstance(array, np.ndarray):
        raise InputFileError(f"{path} is not a whole NPY file of plain numbers")
    if array.ndim not in (1, 2):
        raise InputFileError(f"{path} holds an array of shape {array.shape}, not a table")
    return Table(None, array.T if array.ndim == 2 else array[None, :], path)


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import lib, parquet
    except ImportError:
        raise BackendError(f"{_PARQUET}. CSV and NPY don't.") from None
    try:
        table = parquet.read_table(path)
    except lib.ArrowException:
        raise InputFileError(f"{path} is not a whole Parquet file") from None
    names = [ITEM_NAMES[0] if name.startswith("__index_level_") else name for name in table.column_names]
    return Table(names, [column.to_numpy() for column in table.columns], path)


def check_output(path: Path | None, endings: tuple[str, ...] = ENDINGS) -> None:
    """Refuse a file name that could not be written later, before any work is done."""
    if path is not None and path.suffix.lower() not in endings:
        raise InputFileError(f"cannot write {path}: the name must end in {', '.join(endings)}")
    if path is not None and path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise BackendError(f"{_PARQUET}. CSV and NPY don't.")


def check_writable(path: Path | None) -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    if path is not None:
        if path.is_dir():
            raise InputFileError(f"cannot write {path}: it is a folder")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=path.parent):
                pass
        except OSError as problem:
            raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from None


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write named columns as CSV, NPY (values only) or Parquet, by the name's ending."""
    check_output(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        elif path.suffix.lower() == ".npy":
            np.save(path, np.column_stack(list(columns.values())))
        else:
            from pyarrow import parquet, table

            parquet.write_table(table(columns), path)
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def numbers(table: Table, gaps: bool = False) -> NDArray[np.float64]:
    """All columns of a table as numbers, side by side; with `gaps`, NaN where a cell is empty or says that it is."""
    if isinstance(table.columns, np.ndarray) and table.columns.dtype.kind in "fiub":
        return np.ascontiguousarray(table.columns.T, np.float64)
    if gaps:
        table = table._replace(columns=[_with_gaps(one) for one in table.columns])
    for i, one in enumerate(table.columns):
        if one.dtype.kind not in "fiub" and len(one):
            cells = one.tolist()
            row = next((r for r, cell in enumerate(cells) if not is_number(str(cell))), 0)
            name = f"column {table.names[i]!r}" if table.names else f"column {i}"
            kind = "text, not a number" if is_number(str(cells[row])) else "not a number"
            raise InputFileError(f"{table.path}: {cells[row]!r} in {name}, row {row} of the data, is {kind}")
    if not len(table.columns):
        raise InputFileError(f"{table.path} has no column of scores")
    return np.column_stack([one.astype(np.float64) for one in table.columns])


def _with_gaps(cells: NDArray[Any]) -> NDArray[Any]:
    if cells.dtype.kind in "fiub" or not len(cells):
        return cells
    gap = np.array([cell is None or str(cell).strip().lower() in _GAPS for cell in cells.tolist()])
    rest = column([str(cell) for cell in cells[~gap]])
    if rest.dtype.kind not in "fiub":
        return cells
    filled = np.full(len(cells), np.nan)
    filled[~gap] = rest
    return filled


def column(cells: list[str]) -> NDArray[Any]:
    """Cells of text as whole numbers or numbers, if all are."""
    if cells and all(re.fullmatch(r"[+-]?[0-9]{1,18}", cell) for cell in cells):
        return np.array([int(cell) for cell in cells])
    if all(is_number(cell) for cell in cells):
        return np.array([float(cell) for cell in cells])
    return np.array(cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
