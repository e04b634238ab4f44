"""The rules for the leaderboards of a bundle; see `platform_rules`."""

from collections.abc import Mapping

from bundle import Column
from bundle_entry import Entry, choice_of, entries_of, shown, text_of, whole_of

RULES = ("Add", "Add_And_Delete", "Add_And_Delete_Multiple", "Force_Last",
         "Force_Latest_Multiple", "Force_Best")  # fmt: skip
_MAX_TITLE, _MAX_KEY = 64, 36


def read_leaderboard(entry: Entry) -> tuple[tuple[Column, ...], Column]:
    """All are checked, the first one counts (base_unpacker.py, _save_competition)."""
    if "leaderboards" not in entry.content and "leaderboard" in entry.content:
        raise entry.fault("leaderboard is not a key that is read, expected leaderboards")
    boards = [_read_board(board) for board in entries_of(entry, "leaderboards", at_least_one=True)]
    if len(boards) > 1:
        entry.warn(f"leaderboards holds {len(boards)}, of which only the first is used")
    return boards[0]


def _read_board(entry: Entry) -> tuple[tuple[Column, ...], Column]:
    """A leaderboard (api/serializers/leaderboards.py; leaderboards/models.py)."""
    text_of(entry, "title", _MAX_TITLE)
    text_of(entry, "key", _MAX_KEY)
    choice_of(entry, "submission_rule", RULES, "Add")
    entries = entries_of(entry, "columns", at_least_one=True)
    columns = [_read_column(column) for column in entries]
    for name in ("index", "key"):
        seen: list[int | str] = []
        for column, place in zip(columns, entries, strict=True):
            value = getattr(column, name)
            if value in seen:
                raise place.fault(
                    f"{name} is {shown(value)}, as of another column, expected different ones"
                )
            seen.append(value)
    by_index = {column.index: column for column in columns}
    for place in entries:
        _check_computation(place, by_index)
    primary = whole_of(entry, "primary_index", 0)
    if primary not in by_index:
        raise entry.fault(
            f"primary_index is {primary}, expected an index of a column: "
            f"{', '.join(map(str, by_index))}"
        )
    return tuple(by_index[index] for index in sorted(by_index)), by_index[primary]


def _read_column(entry: Entry) -> Column:
    """A column (api/serializers/leaderboards.py; leaderboards/models.py, Column)."""
    if "precision" not in entry.content:
        entry.warn("precision is not set, so that 2 decimal places are shown")
    return Column(
        whole_of(entry, "index"),
        text_of(entry, "key", _MAX_KEY),
        text_of(entry, "title", _MAX_KEY),
        choice_of(entry, "sorting", ("desc", "asc"), "desc") == "desc",
        whole_of(entry, "precision", 2),
        bool(entry.content.get("computation")),
    )


def _check_computation(entry: Entry, columns: Mapping[int, Column]) -> None:
    """Of which columns a column is computed (api/serializers/leaderboards.py, ColumnSerializer)."""
    indexes = entry.content.get("computation_indexes")
    if "computation" in entry.content:
        choice_of(entry, "computation", ("avg", "sum", "min", "max"), "")
        if "computation_indexes" not in entry.content:
            raise entry.fault("computation_indexes is missing, expected indexes of other columns")
    elif indexes:
        raise entry.fault("computation is missing, expected one for the computation_indexes")
    if not indexes:
        return
    expected = "expected a list of indexes of other columns, in quotes"
    if not isinstance(indexes, list) or not all(isinstance(index, str) for index in indexes):
        raise entry.fault(f"computation_indexes is {shown(indexes)}, {expected}")
    for index in indexes:
        own = index == str(entry.content["index"])
        if own or not index.isdecimal() or int(index) not in columns:
            raise entry.fault(f"computation_indexes names {shown(index)}, {expected}")
