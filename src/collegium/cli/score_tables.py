"""Scores as the command line takes them: a table for two classes, a long table or a file per agent for any number."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from collegium.cli.tables import (
    ITEM_NAMES,
    LABEL_NAMES,
    READABLE,
    Table,
    column,
    ending,
    is_number,
    numbers,
    read_table,
)
from collegium.cli.tables import stem as stem_of
from collegium.errors import InputFileError, LabelError

Doubles = NDArray[np.float64]
SCORES_HELP = (
    "Scores, a row per item and a column per agent (CSV or TSV, also .gz, NPY, Parquet), empty where an agent has no "
    "view; or a long table with columns item, agent, score and, of several classes, class; of these also a folder with "
    "a file per agent and a column per class, or an NPY array (items, agents, classes); or the test items of a score "
    "record (.npz)."
)
LABELS_HELP = "True classes; a column named label is found by itself, and a score record has its own."
CLASSES_HELP = "Of two classes, which label is +1 and which is -1; of several, their order."
_LONG = ("item", "agent", "class", "score")


class Scores(NamedTuple):
    values: Doubles
    """Shape (n, K), or (n, K, C) of C > 2 classes, each item's and agent's entries summing to zero."""
    labels: NDArray[Any] | None
    items: list[Any] | None
    agents: tuple[str, ...]
    """What the agents are called; empty where they have no names."""
    classes: tuple[Any, ...] = ()
    """Of two classes +1 and -1, or of several in the order of the entries; empty where nobody said."""
    parts: NDArray[Any] | None = None
    """Which items are train, val and test, if a column `part` says so."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(f"{name:g}" if isinstance(name, float) else str(name) for name in self.classes)


class _Entries(NamedTuple):
    """Scores of every class, before two of them become one number."""

    values: Doubles  # (n, K, C)
    labels: NDArray[Any] | None
    items: NDArray[Any] | None
    agents: tuple[str, ...]
    classes: list[Any] | None
    path: Path
    parts: NDArray[Any] | None = None


def read_scores(path: Path, labels: str | None = None, classes: str | None = None) -> Scores:
    """Scores with what is known of items, agents, labels and classes.

    A column `item` names the items; one called `label` or `y` is never a score. `labels` names another column with the
    classes, or a file with one label per item. `classes` are written A,B,…
    """
    read = _read(path, labels, classes)
    if twice := [name for name in read.agents if read.agents.count(name) > 1]:
        raise InputFileError(f"{path} has scores of two agents named {twice[0]!r}: give each a name of its own")
    if read.labels is not None and (gaps := [i for i, label in enumerate(read.labels.tolist()) if _no_label(label)]):
        first = gaps[0] if read.items is None else read.items[gaps[0]]
        raise LabelError(
            f"{len(gaps)} of {len(read.labels)} items have no label (first: item {first}): label them, leave them out, "
            "or leave out all labels"
        )
    return read


def _no_label(label: Any) -> bool:
    """Whether a cell says that nobody knows the class; `none` and the like may be classes."""
    return label is None or label != label or (isinstance(label, str) and label in ("", "NA", "NaN", "nan"))


def _read(path: Path, labels: str | None, classes: str | None) -> Scores:
    if path.is_dir():
        return _of_entries(_read_folder(path, labels), classes)
    if path.suffix.lower() == ".npz":
        return _of_record(path, labels, classes)
    if path.suffix.lower() == ".npy" and (cube := _cube(path)) is not None:
        found = None if labels is None else _labels_from_file(Path(labels), Table(None, [], path), None)
        return _of_entries(_Entries(cube, found, None, (), None, path), classes)
    table = read_table(path)
    if table.names is not None and ending(path)[:4] in (".csv", ".tsv") and not len(table.columns[0]):
        raise InputFileError(f"{path} has a line of names, {', '.join(table.names[:3])} …, but no scores")
    if table.names is not None and {"item", "agent", "score"} <= {name.lower() for name in table.names}:
        return _of_entries(_read_long(table, labels), classes)
    items, table = table.pop(ITEM_NAMES)
    parts, table = table.pop(("part",))
    found, table = _own_labels(table, labels)
    if labels is not None and found is None:
        found = _labels_from_file(Path(labels), table, items)
    if items is None:
        items, table = _row_names(table)
    values = numbers(table, gaps=True)
    names = tuple(table.names or ())
    if np.isinf(values).any():
        i, k = np.argwhere(np.isinf(values))[0]
        item, agent = i if items is None else items[i], names[k] if names else k
        raise InputFileError(f"{path}: item {item}, agent {agent} has {values[i, k]}; scores are finite")
    _hint_probabilities(values, names)
    _fill(values, names, _gaps(values[:, :, None]))
    return Scores(values, found, _listed(items), names, _two_classes(classes, found), parts)


def _of_record(path: Path, labels: str | None, classes: str | None) -> Scores:
    """The centred statistics of a record's test items."""
    from collegium.agents import Scores as Record

    if labels is not None or classes is not None:
        raise InputFileError(f"{path} is a score record and has its own labels: leave out --labels and --classes")
    record = Record.load(path)
    values, y, names = record.statistics("test"), record.y_test, record.class_names
    if names == ("+1", "-1"):  # they have no others
        return Scores(values, y, None, record.agent_names)
    return Scores(
        values, np.array(names)[np.where(y == 1, 0, 1) if values.ndim == 2 else y], None, record.agent_names, names
    )


def _row_names(table: Table) -> tuple[NDArray[Any] | None, Table]:
    """A first column of words, all different and each beginning with a letter, names the items."""
    first = table.columns[0] if len(table.columns) > 1 else np.empty(0)
    words = [str(cell) for cell in first.tolist() if str(cell)[:1].isalpha() and not is_number(str(cell))]
    if first.dtype.kind != "U" or len(set(words)) < len(first):
        return None, table
    return first, Table(None if table.names is None else table.names[1:], list(table.columns[1:]), table.path)


def _gaps(values: Doubles) -> NDArray[np.bool_]:
    """Which agents have no score of which items, shape (n, K), of entries (n, K, C)."""
    return np.asarray(np.isnan(values).all(axis=2))


def _fill(values: Doubles, agents: Sequence[str], gaps: NDArray[np.bool_]) -> None:
    """Where an agent has no score it has no evidence: 0."""
    if not gaps.any():
        return
    values[gaps] = 0.0
    names = agents or [f"agent {k}" for k in range(len(gaps[0]))]
    each = [f"{name}: {count}" for name, count in zip(names, gaps.sum(axis=0).tolist(), strict=True) if count]
    shown = ", ".join(each[:8]) + (", …" if len(each) > 8 else "")
    typer.echo(f"{gaps.sum()} of {gaps.size} scores are missing ({shown}): there an agent starts from 0", err=True)
    if unseen := int(gaps.all(axis=1).sum()):
        typer.echo(f"{unseen} items have no score at all: nobody knows anything of them", err=True)


def read_classes(written: str | None, labels: NDArray[Any] | None) -> list[Any] | None:
    """The classes as written, numbers if the labels are numbers."""
    if written is None:
        return None
    names = [name.strip() for name in written.split(",")]
    numeric = labels is not None and labels.dtype.kind in "fiu"
    try:
        return [float(name) for name in names] if numeric else names
    except ValueError:
        raise LabelError(f"--classes {written}: the labels are numbers, so the classes must be numbers") from None


def _two_classes(written: str | None, labels: NDArray[Any] | None) -> tuple[Any, ...]:
    """Which labels are +1 and -1 where scores are one number: as written, or the larger and the smaller."""
    given = read_classes(written, labels)
    if labels is None or not len(labels):
        return tuple(given or ())
    try:
        found = sorted(set(labels.tolist()), reverse=True)
    except TypeError:
        found = []  # `to_signs` says what is wrong with them
    if len(found) == 1 and not given:
        raise LabelError(f"all items are {found[0]}: say which two classes there are, --classes A,B, the first is +1")
    return tuple(given or (found if len(found) == 2 else ()))


def _of_entries(found: _Entries, written: str | None) -> Scores:
    """Entries of all classes in order: their log-odds if there are two, centred if there are more."""
    values, C = found.values, found.values.shape[2]
    known = found.labels, _listed(found.items), found.agents
    if C == 1:
        _hint_probabilities(values[:, :, 0], found.agents)
        _fill(values, found.agents, _gaps(values))
        return Scores(values[:, :, 0], *known, _two_classes(written, found.labels), found.parts)
    given = None if written is None else column([name.strip() for name in written.split(",")]).tolist()
    names = found.classes if found.classes is not None else given or list(range(C))
    order = given or sorted(names, reverse=C == 2)
    if len(names) != C or sorted(map(str, order)) != sorted(map(str, names)) or len(set(names)) < C:
        of = "" if found.classes is None else f", {', '.join(map(str, names))}"
        raise LabelError(f"--classes {written}: {found.path} has scores of {C} classes{of}")
    place = {str(name): c for c, name in enumerate(names)}
    values, names = values[:, :, [place[str(name)] for name in order]], list(order)
    _check_probabilities(values, found.path)
    gaps = _gaps(values)
    _complete(values, found.agents, names)
    _fill(values, found.agents, gaps & ~gaps.all(axis=0))
    _check_entries(values, found, names)
    if C == 2:
        return Scores(values[:, :, 0] - values[:, :, 1], *known, tuple(names), found.parts)
    means = values.mean(axis=2, keepdims=True)
    if (np.abs(means) > 1e-9 * np.abs(values).max(axis=2, keepdims=True, initial=1.0)).any():
        typer.echo("each item's and agent's scores were centred: their mean over the classes is taken off", err=True)
    return Scores(values - means, *known, tuple(names), found.parts)


def _check_entries(values: Doubles, found: _Entries, classes: Sequence[Any]) -> None:
    if not np.isfinite(values).all():
        i, k, c = np.argwhere(~np.isfinite(values))[0]
        item = i if found.items is None else found.items[i]
        agent = found.agents[k] if found.agents else k
        raise InputFileError(
            f"{found.path}: item {item}, agent {agent}, class {classes[c]} has {values[i, k, c]}; scores are finite "
            "(probabilities of 0 have no logarithm: clip them)"
        )


def _check_probabilities(values: Doubles, path: Path) -> None:
    sums = np.nansum(values, axis=2)[~np.isnan(values).all(axis=2)]
    if sums.size and not (values < 0).any() and any(np.allclose(sums, one, rtol=0.03) for one in (1, 100)):
        raise InputFileError(f"{path} holds probabilities: scores are their logarithms")


def _hint_probabilities(values: Doubles, agents: Sequence[str]) -> None:
    """Scores of two classes are positive for one and negative for the other; probabilities are never negative."""
    for what, one, log_odds in (("1", 1.0, "log(p / (1 - p))"), ("100", 100.0, "log(p / (100 - p))")):
        suspects = [k for k, column in enumerate(values.T) if _all_between(column[~np.isnan(column)], one)]
        if not suspects:
            continue
        names = ", ".join(str(agents[k]) if agents else f"agent {k}" for k in suspects[:5])
        who = "all scores" if len(suspects) == values.shape[1] else f"all scores of {names}"
        who += ", …" if 5 < len(suspects) < values.shape[1] else ""
        typer.echo(
            f"{who} lie between 0 and {what}, so {'every agent' if who == 'all scores' else 'such an agent'} decides "
            f"for the same class whatever it sees: if they are probabilities p of it, scores are {log_odds}",
            err=True,
        )


def _all_between(column: Doubles, one: float) -> bool:
    """Whether an agent's scores look like probabilities, up to 1, or percentages, up to 100, on both sides of half."""
    if len(column) < 4 or column.min() < 0 or column.max() > one or column.min() == column.max():
        return False
    is_rare = one == 1 and len(column) >= 50  # of a rare class hardly any is above a half
    return bool(is_rare or column.min() < one / 2 < column.max())


def _complete(values: Doubles, agents: Sequence[str], classes: Sequence[Any]) -> None:
    """An agent without scores of a class has no evidence for it: 0, where its other scores are centred among them."""
    absent = np.asarray(np.isnan(values).all(axis=0) & (len(values) > 0))
    for k in np.flatnonzero(absent.any(axis=1)).tolist():
        known = ~absent[k]
        values[:, k, known] -= values[:, k, known].mean(axis=1, keepdims=True) if known.any() else 0.0
        values[:, k, ~known] = 0.0
        name = agents[k] if agents else k
        of = ", ".join(str(one) for one, is_absent in zip(classes, absent[k], strict=True) if is_absent)
        typer.echo(f"agent {name} has no scores of {of}: its evidence for that is 0", err=True)


def _read_long(table: Table, labels: str | None) -> _Entries:
    """One row for every item, agent and class; none, or none with a score, where an agent has no view of an item."""
    popped = {}
    for name in _LONG:
        popped[name], table = table.pop((name,))
    columns = {name: found for name, found in popped.items() if found is not None}
    is_binary = "class" not in columns
    columns.setdefault("class", np.zeros(len(columns["score"]), np.int64))
    scores = numbers(Table(["score"], [columns["score"]], table.path), gaps=True)[:, 0]
    names = {name: list(dict.fromkeys(columns[name].tolist())) for name in _LONG[:3]}
    names["agent"].sort(key=lambda name: _natural(str(name)))  # as the files of a folder, whatever the order of rows
    rows = tuple(_places(columns[name], names[name]) for name in _LONG[:3])
    shape = tuple(len(names[name]) for name in _LONG[:3])
    times = np.bincount(np.ravel_multi_index(rows, shape), minlength=int(np.prod(shape))).reshape(shape)
    wrong = (times != 1) & (times > 0).any(axis=0)  # a class of which an agent has no score at all, it does not know
    wrong &= (times > 0).any(axis=2, keepdims=True)  # and an item of which it has none, it does not see
    if wrong.any():
        i, k, c = np.argwhere(wrong)[0]
        item, agent, of = names["item"][i], names["agent"][k], "" if is_binary else f" of class {names['class'][c]}"
        how = "no score" if not times[i, k, c] else f"{times[i, k, c]} scores"
        raise InputFileError(f"{table.path}: item {item}, agent {agent} has {how}{of}; it needs one")
    values = np.full(shape, np.nan)
    values[rows] = scores
    items, path = np.array(names["item"]), table.path

    def per_item(cells: NDArray[Any] | None, what: str) -> NDArray[Any] | None:
        """One cell for every item, from cells that are the same in all its rows."""
        if cells is None:
            return None
        found = np.empty(shape[0], cells.dtype)
        found[rows[0]] = cells
        if (unlike := np.flatnonzero(found[rows[0]] != cells)).size:
            raise InputFileError(f"{path}: item {columns['item'][unlike[0]]} has different {what} in its rows")
        return found

    parts, table = table.pop(("part",))
    of_rows, table = _own_labels(table, labels)
    found = per_item(of_rows, "labels")
    if found is None and labels is not None:
        found = _labels_from_file(Path(labels), table, items)
    agents = tuple(map(str, names["agent"]))
    classes = None if is_binary else names["class"]
    return _Entries(values, found, items, agents, classes, path, per_item(parts, "parts"))


def _read_folder(folder: Path, labels: str | None) -> _Entries:
    """One file per agent, in the order of their names, one column per class; perhaps a file of labels."""
    files = [path for path in folder.iterdir() if ending(path) in READABLE and not path.name.startswith(".")]
    listed = [path for path in files if stem_of(path).lower() == "labels"]
    files = sorted((path for path in files if path not in listed), key=lambda path: _natural(stem_of(path)))
    if not files:
        raise InputFileError(f"{folder} has no file of scores ({', '.join(READABLE)}), one per agent")
    pages: list[tuple[Doubles, list[Any] | None]] = []
    items = found = None
    for path in files:
        named, table = read_table(path).pop(ITEM_NAMES)
        own, table = _own_labels(table, labels)
        page, names = numbers(table, gaps=True), None if table.names is None else column(table.names).tolist()
        if not pages:
            items, found = named, own
        elif (names is None) != (pages[0][1] is None) or (names is None and page.shape[1] != pages[0][0].shape[1]):
            raise InputFileError(f"{path} and {files[0].name} must name their columns alike: one per class in each")
        elif len(page) != len(pages[0][0]) or not _alike(named, items):
            raise InputFileError(f"{path} and {files[0].name} must have the same items, row by row")
        elif own is not None and found is not None and not _alike(own, found):
            raise InputFileError(f"{path} and {files[0].name} have different labels")
        pages.append((page, names))
        found = own if found is None else found
    classes, values = _joined(pages, files)
    table = Table(None, [], folder)
    if labels is not None and found is None:
        found = _labels_from_file(Path(labels), table, items)
    elif listed and found is None:
        found = _labels_from_file(listed[0], table, items)
    return _Entries(values, found, items, tuple(map(stem_of, files)), classes, folder)


def _joined(pages: list[tuple[Doubles, list[Any] | None]], files: list[Path]) -> tuple[list[Any] | None, Doubles]:
    """The classes of all agents, and their scores (n, K, C), NaN for a class that an agent has no column of."""
    if pages[0][1] is None:
        return None, np.stack([page for page, _ in pages], axis=1)
    classes = list(dict.fromkeys(name for _, names in pages for name in names or ()))
    values = np.full((len(pages[0][0]), len(pages), len(classes)), np.nan)
    for k, (page, names) in enumerate(pages):
        others = {name for j, (_, theirs) in enumerate(pages) if j != k for name in theirs or ()}
        if len(pages) > 1 and set(names or ()) - others and others - set(names or ()):
            raise InputFileError(f"{files[k]} has the columns {names}, others have {sorted(others)}: is one misspelt?")
        values[:, k, [classes.index(name) for name in names or ()]] = page
    return classes, values


def _cube(path: Path) -> Doubles | None:
    """The scores of an NPY file, if they have an axis of classes."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None  # `read_table` says what is wrong
    is_cube = isinstance(array, np.ndarray) and array.ndim == 3 and array.dtype.kind in "fiub"
    return array.astype(np.float64) if is_cube else None


def _own_labels(table: Table, labels: str | None) -> tuple[NDArray[Any] | None, Table]:
    """The column of labels, the one that is named or the usual one; the usual one is never a score."""
    chosen = None
    if labels is not None:
        chosen, table = table.pop((labels.lower(),))
    own, table = table.pop(LABEL_NAMES)
    return own if labels is None else chosen, table


def _labels_from_file(path: Path, scores: Table, items: NDArray[Any] | None) -> NDArray[Any]:
    if not path.exists():
        named = f"its columns are {', '.join(scores.names)}" if scores.names else "its columns have no names"
        raise InputFileError(f"--labels {path}: no such file, and no column of {scores.path.name} ({named})")
    table = read_table(path)
    if table.names is not None and len(table.columns) == 1 and table.names[0].lower() not in LABEL_NAMES:
        # a list of classes as strings: its first line is a label too
        table = Table(None, [np.array([table.names[0], *table.columns[0].tolist()])], path)
    named_items, table = table.pop(ITEM_NAMES)
    found, rest = table.pop(LABEL_NAMES)
    if found is None and len(rest.columns) == 1:
        found = rest.columns[0]
    if found is None:
        raise InputFileError(f"{path} must have one column, or one named label; it has {len(rest.columns)}")
    return found if named_items is None else _aligned(found, named_items, items, path)


def _aligned(labels: NDArray[Any], named: NDArray[Any], items: NDArray[Any] | None, path: Path) -> NDArray[Any]:
    """Labels in the order of the scores' items."""
    if items is None:
        raise InputFileError(f"{path} names its items, but the scores do not: add a column item to them")
    place = {str(item): i for i, item in enumerate(named.tolist())}
    missing = [item for item in items.tolist() if str(item) not in place]
    if missing or len(place) < len(named):
        raise InputFileError(
            f"{path} has no label for item {missing[0]!r}" if missing else f"{path} names an item more than once"
        )
    return labels[[place[str(item)] for item in items.tolist()]]


def _alike(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return (one is None) == (other is None) and (one is None or np.array_equal(one, other))  # type: ignore[arg-type]


def _places(cells: NDArray[Any], names: list[Any]) -> NDArray[np.intp]:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[cell] for cell in cells.tolist()], np.intp)


def _natural(name: str) -> list[Any]:
    """So that agent 10 comes after agent 9."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part.lower()) for part in re.split(r"(\d+)", name) if part]


def _listed(items: NDArray[Any] | None) -> list[Any] | None:
    return None if items is None else items.tolist()
