"""Reading and writing the tables of the command line: CSV, NPY and Parquet, refused by name when they are not."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.errors import BackendError, InputFileError

_ITEM_NAMES = ("item", "id")
_LABEL_NAMES = ("label", "y")


class Table(NamedTuple):
    """Columns with their names (None where the file has none)."""

    names: list[str] | None
    columns: list[NDArray[Any]] | NDArray[Any]  # an array where all have one type
    path: Path

    def pop(self, names: tuple[str, ...]) -> tuple[NDArray[Any] | None, "Table"]:
        """The first column of one of these names, and the table without it."""
        for name in names:
            if self.names is not None and name in self.names:
                i = self.names.index(name)
                others = [column for j, column in enumerate(self.columns) if j != i]
                return self.columns[i], Table(self.names[:i] + self.names[i + 1 :], others, self.path)
        return None, self


class Scores(NamedTuple):
    values: NDArray[np.float64]
    labels: NDArray[Any] | None
    items: NDArray[Any] | None


def read_scores(path: Path, labels: str | None) -> Scores:
    """Scores, one column per agent; a column `item` names the items, `label` (or the one named) is the class.

    `labels` may also be a file with one label per item.
    """
    table = read_table(path)
    items, table = table.pop(_ITEM_NAMES)
    found: NDArray[Any] | None
    if labels is None:
        found, table = table.pop(_LABEL_NAMES)
    else:
        found, table = table.pop((labels,))
        if found is None:
            found = _labels_from_file(Path(labels), table)
    return Scores(_numbers(table), found, items)


def _labels_from_file(path: Path, scores: Table) -> NDArray[Any]:
    if not path.exists():
        named = f"its columns are {', '.join(scores.names)}" if scores.names else "its columns have no names"
        raise InputFileError(f"--labels {path}: no such file, and no column of {scores.path.name} ({named})")
    table = read_table(path)
    found, rest = table.pop(_LABEL_NAMES)
    if found is None and len(rest.columns) == 1:
        found = rest.columns[0]
    if found is None:
        raise InputFileError(f"{path} must have one column, or one named label; it has {len(rest.columns)}")
    return found


def read_matrix(path: Path) -> Any:
    """A matrix: CSV, NPY, Parquet, or scipy.sparse's NPZ."""
    if path.suffix == ".npz":
        from scipy import sparse

        try:
            return sparse.load_npz(path)
        except Exception:
            raise InputFileError(f"{path} is not a matrix saved by scipy.sparse.save_npz") from None
    return _numbers(read_table(path))


def read_table(path: Path) -> Table:
    """A table from a CSV (with or without a header), NPY or Parquet file."""
    if not path.is_file():
        raise InputFileError(f"{path}: no such file")
    readers = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise InputFileError(
            f"{path}: cannot read {path.suffix or 'a file without an ending'}; use {', '.join(readers)}"
        )
    try:
        return readers[path.suffix](path)
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None


def _read_csv(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputFileError(f"{path} is not a text file: is it really a CSV?") from None
    first = text.lstrip().partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputFileError(f"{path} is empty")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise InputFileError(f"{path}: row {number} has {len(row)} cells, the first has {width}")
    names = [cell.strip() for cell in rows[0]] if _is_header(rows[0]) else None
    body = rows if names is None else rows[1:]
    return Table(names, [_column([row[i] for row in body]) for i in range(width)], path)


def _read_npy(path: Path) -> Table:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        raise InputFileError(f"{path} is not a whole NPY file of plain numbers") from None
    if array.ndim not in (1, 2):
        raise InputFileError(f"{path} holds an array of shape {array.shape}, not a table")
    return Table(None, array.T if array.ndim == 2 else array[None, :], path)


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import lib, parquet
    except ImportError:
        raise BackendError(
            "Parquet files need an extra: pip install 'collegium[tables]'. CSV and NPY need nothing."
        ) from None
    try:
        table = parquet.read_table(path)
    except lib.ArrowException:
        raise InputFileError(f"{path} is not a whole Parquet file") from None
    return Table(table.column_names, [column.to_numpy() for column in table.columns], path)


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write named columns as CSV, NPY (values only) or Parquet, whichever the name says."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        elif path.suffix == ".npy":
            np.save(path, np.column_stack(list(columns.values())))
        elif path.suffix == ".parquet":
            try:
                from pyarrow import parquet, table
            except ImportError:
                raise BackendError("Parquet files need an extra: pip install 'collegium[tables]'") from None
            parquet.write_table(table(columns), path)
        else:
            raise InputFileError(f"cannot write {path}: the name must end in .csv, .npy or .parquet")
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def _numbers(table: Table) -> NDArray[np.float64]:
    if isinstance(table.columns, np.ndarray) and table.columns.dtype.kind in "fiub":
        return np.ascontiguousarray(table.columns.T, np.float64)
    for i, column in enumerate(table.columns):
        if column.dtype.kind not in "fiub":
            row = next((r for r, cell in enumerate(column.tolist()) if not _is_number(str(cell))), 0)
            name = f"column {table.names[i]!r}" if table.names else f"column {i}"
            raise InputFileError(
                f"{table.path}: {column.tolist()[row]!r} in {name}, row {row} of the data, is not a number"
            )
    return (
        np.column_stack([column.astype(np.float64) for column in table.columns]) if table.columns else np.empty((0, 0))
    )


def _column(cells: list[str]) -> NDArray[Any]:
    stripped = [cell.strip() for cell in cells]
    if stripped and all(cell.lstrip("+-").isdigit() for cell in stripped):
        return np.array([int(cell) for cell in stripped])
    if all(_is_number(cell) for cell in stripped):
        return np.array([float(cell) for cell in stripped])
    return np.array(stripped)


def _is_header(row: list[str]) -> bool:
    """Names throughout, or one that means something here; a row with a gap or a slip among numbers is data."""
    cells = [cell.strip() for cell in row]
    known = {*_ITEM_NAMES, *_LABEL_NAMES}
    return all(cell and not _is_number(cell) for cell in cells) or not known.isdisjoint(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
