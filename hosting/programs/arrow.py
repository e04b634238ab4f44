"""What the kit's evaluation needs of `pyarrow`, in NumPy: columns with missing values, and tables.

Names and behaviour are pyarrow's; `stand_ins.py` says why this exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

NativeFile = BinaryIO


class ArrowException(Exception):  # noqa: N818
    """Something that pyarrow would not read either."""


ArrowInvalid = ArrowException


@dataclass(frozen=True)
class DataType:
    """Type of a column: ``string``, or a type of NumPy's."""

    name: str

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type of the array that holds it."""
        return object if self.name == "string" else self.name


def string() -> DataType:
    """Return the type of text."""
    return DataType("string")


def float64() -> DataType:
    """Return the type of numbers."""
    return DataType("float64")


def timestamp(unit: str) -> DataType:
    """Return the type of points in time."""
    return DataType(f"datetime64[{unit}]")


def type_for_alias(name: str) -> DataType:
    """Return the type of a name, such as ``int8``."""
    return DataType(name)


types = SimpleNamespace(
    is_integer=lambda of: np.dtype(of.dtype).kind in "iu",
    is_floating=lambda of: np.dtype(of.dtype).kind == "f",
)


@dataclass(frozen=True)
class Scalar:
    """A single value."""

    value: Any

    def as_py(self) -> Any:
        """Return it as Python's own."""
        return self.value


@dataclass(frozen=True)
class ChunkedArray:
    """A column: its values, which of them are there, and its type."""

    data: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    type: DataType

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.data)

    def __getitem__(self, row: int) -> Scalar:
        """Return a value."""
        return Scalar(self.data[row] if self.valid[row] else None)

    def __iter__(self) -> Iterator[Scalar]:
        """Go through the values."""
        return (self[row] for row in range(len(self)))

    @property
    def null_count(self) -> int:
        """How many values are missing."""
        return len(self) - int(np.count_nonzero(self.valid))

    def combine_chunks(self) -> "ChunkedArray":
        """Return the column, which is in one piece."""
        return self

    unify_dictionaries = combine_chunks

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return an array that may be written to; missing values become NaN, NaT or None."""
        if self.valid.all():
            return self.data
        if self.type.name == "string":
            missing: Any = None
        elif self.data.dtype.kind == "M":
            missing = np.datetime64("NaT")
        else:
            missing = np.nan
        data = self.data.astype(np.float64) if self.data.dtype.kind in "biu" else self.data.copy()
        data[~self.valid] = missing
        return data

    def to_pylist(self) -> list[Any]:
        """Return the values as a list."""
        return [value.as_py() for value in self]

    def take(self, rows: "ChunkedArray") -> "ChunkedArray":
        """Return the values of some rows; missing where the row is."""
        if not len(self):
            return nulls(len(rows), self.type)
        place = np.where(rows.valid, rows.data, 0).astype(np.intp)
        return ChunkedArray(self.data[place], self.valid[place] & rows.valid, self.type)

    def dictionary_encode(self) -> "DictionaryArray":
        """Return every different value once, and which of them each row has."""
        number: dict[Any, int] = {}
        rows = self.valid.tolist()
        places = [
            number.setdefault(value, len(number)) if is_there else 0
            for value, is_there in zip(self.data.tolist(), rows, strict=True)
        ]
        return DictionaryArray(
            array(list(number), self.type),
            ChunkedArray(np.array(places, np.int64), self.valid, DataType("int64")),
        )


@dataclass(frozen=True)
class DictionaryArray:
    """Different values, and which of them each row has."""

    dictionary: ChunkedArray
    indices: ChunkedArray

    def unify_dictionaries(self) -> "DictionaryArray":
        """Return itself, which is in one piece."""
        return self

    combine_chunks = unify_dictionaries


def array(
    values: Sequence[Any] | npt.NDArray[Any],
    type: DataType | None = None,
    mask: npt.NDArray[np.bool_] | None = None,
) -> ChunkedArray:
    """Make a column; None and what the mask marks are missing."""
    if isinstance(values, np.ndarray):
        valid = np.ones(len(values), bool) if mask is None else ~mask
        return ChunkedArray(values, valid, type or DataType(values.dtype.name))
    assert type is not None
    valid = np.array([value is not None for value in values], bool)
    filled = [_BLANK.get(type.name, 0) if value is None else value for value in values]
    data = np.empty(len(filled), type.dtype)
    data[:] = filled
    return ChunkedArray(data, valid, type)


_BLANK: dict[str, Any] = {"string": "", "datetime64[ms]": np.datetime64("NaT")}


def chunked_array(parts: Sequence[ChunkedArray]) -> ChunkedArray:
    """Join columns of one type."""
    if len(parts) == 1:
        return parts[0]
    data = np.concatenate([part.data for part in parts])
    return ChunkedArray(data, np.concatenate([part.valid for part in parts]), parts[0].type)


def nulls(n: int, type: DataType) -> ChunkedArray:
    """Make a column of missing values."""
    return array([None] * n, type)


@dataclass(frozen=True)
class Table:
    """Columns of one length, by their names."""

    columns: Mapping[str, ChunkedArray]
    num_rows: int

    @property
    def column_names(self) -> list[str]:
        """Their names, in order."""
        return list(self.columns)

    def __getitem__(self, name: str) -> ChunkedArray:
        """Return a column."""
        return self.columns[name]

    def set_column(self, index: int, name: str, values: ChunkedArray) -> "Table":
        """Return the table with a column replaced."""
        assert self.column_names[index] == name
        return Table({**self.columns, name: values}, self.num_rows)

    def append_column(self, name: str, values: ChunkedArray) -> "Table":
        """Return the table with a column more."""
        return Table({**self.columns, name: values}, self.num_rows)

    def select(self, names: Sequence[str]) -> "Table":
        """Return some columns."""
        return Table({name: self.columns[name] for name in names}, self.num_rows)

    def take(self, rows: ChunkedArray) -> "Table":
        """Return some rows; rows of missing values where the row's number is missing."""
        columns = {name: values.take(rows) for name, values in self.columns.items()}
        return Table(columns, len(rows))


def OSFile(path: str, mode: str) -> BinaryIO:  # noqa: N802
    """Open a file for reading bytes."""
    assert mode == "rb"
    return Path(path).open("rb")


BufferReader = BytesIO


def py_buffer(content: bytes) -> bytes:
    """Return bytes as what `BufferReader` reads."""
    return content


def default_memory_pool() -> SimpleNamespace:
    """Return what manages the memory, which NumPy does by itself."""
    return SimpleNamespace(release_unused=lambda: None)
