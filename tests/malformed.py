"""Malformed files: damage of every kind, in every file that a script reads, through every script.

A script must refuse them: exit code 2, a printable line on stderr with the file's name, nothing
written. The files that the scripts read stand in script_inputs.py.
"""

import csv
import gzip
import io
import json
import math
import os
import re
import shutil
import signal
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common import schema
from common.schema import TEXT

import numpy as np
from run_scripts import Done
from script_inputs import InputColumn, InputFile

# A function that writes or makes a malformed file at the path that it is given.
PutFile = Callable[[Path], object]
# A name and a content for each malformed file.
Cases = Iterator[tuple[str, bytes]]

TIME_LIMIT_SECONDS = 60


def malform(input_file: InputFile, content: bytes) -> dict[str, PutFile]:
    """Return ways to damage an input file whose valid content is `content`.

    The key names the damage. The value is a function with one argument, a path where no file lies.
    It writes the damaged file to this path.
    """
    damaged = dict(damage_bytes(input_file.kind, content))
    # Zips and Parquet files are not damaged here: `test_zips.py` and `test_probabilities.py` test
    # them.
    if input_file.kind == "csv":
        damaged |= dict(damage_csv(input_file, content))
    elif input_file.kind == "txt":
        damaged |= dict(damage_json_lines(content))
    elif input_file.kind == "xml":
        damaged |= dict(damage_xml(content))
    elif input_file.kind == "npy":
        damaged |= dict(damage_array(content))
    ways: dict[str, PutFile] = {
        name: partial(Path.write_bytes, data=data) for name, data in damaged.items()
    }
    ways["a folder"] = Path.mkdir
    if not input_file.may_be_missing:
        # Put no file at the path.
        ways["missing"] = lambda path: None
    if hasattr(os, "mkfifo"):
        # A script that opened the pipe would wait for ever.
        ways["a pipe"] = os.mkfifo
        ways["a link to nothing"] = lambda path: path.symlink_to("nowhere")
    return ways


def damage_bytes(kind: str, content: bytes) -> Cases:
    """Yield malformed contents that can be made with almost no knowledge of the file's format."""
    yield "empty", b""
    yield "zeros", bytes(len(content))
    yield "a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))
    yield "a page", b"<html><body>404</body></html>"
    if kind in ("csv", "txt"):
        # Scripts read text files in UTF-8, in UTF-16 and packed by gzip, but not in UTF-32.
        yield "UTF-32", content.decode().encode("UTF-32")
    else:
        # Scripts read no other files packed by gzip.
        yield "packed by gzip", gzip.compress(content)
    # A CSV that is cut off between two rows is well formed; `damage_csv` cuts within a row.
    if kind != "csv":
        for share in (0.05, 0.5, 0.95, 0.99):
            yield f"cut off at {share:.0%}", content[: int(share * len(content))]


# ---- CSV ---------------------------------------------------------------------------------------

# Cells that are not valid in any column of numbers. No column allows negative or very large
# numbers.
BAD_NUMBERS = {
    "a word": b"abc",
    "hexadecimal": b"0x2",
    "underscore": b"1_0",
    "NaN": b"NaN",
    "infinity": b"inf",
    "#N/A": b"#N/A",
    "too large an exponent": b"1e400",
    "5,000 digits": b"9" * 5000,
    "two numbers": b"1 2",
    "wide digits": "１".encode(),
    "a comma within": b'"1,0"',
    "a NUL byte": b"1\x00",
    "half a UTF-8 character": b"1\xe2\x82",
    "control characters": b"\x1b[31m\x07\x08\x0b1\x7f",
    "a line end in quotes": b'"1\n2"',
    "six million characters": b"y" * 6_000_000,
    "a quotation mark": b'1"',
    "negative": b"-1",
    "beyond 32 bits": b"2147483648",
    "beyond 64 bits": b"18446744073709551617",
}
EMPTY_CELLS = {"nothing": b"", "blanks": b" \t", "quotes": b'""'}
# Cells that no column of text may hold.
BAD_TEXTS = {"no UTF-8": b"\xff\xfe", "a NUL byte": b"a\x00"}
NESTED_LISTS = "[" * 200_000
# Cells that are valid in a column of any text, but not in a column that allows only certain texts.
UNEXPECTED_TEXTS = {
    "a word": BAD_NUMBERS["a word"],
    "control characters": BAD_NUMBERS["control characters"],
    "six million characters": BAD_NUMBERS["six million characters"],
    "5,000 digits in a list": b'"[' + b"9" * 5000 + b']"',
    "nested deeply": f'"{NESTED_LISTS}"'.encode(),
}


def bad_cells(input_column: InputColumn) -> dict[str, bytes]:
    """Return cells that a column may not hold; the key says what is wrong with the cell."""
    column = input_column.column
    cells = {} if column.may_be_empty else dict(EMPTY_CELLS)
    if column.dtype == TEXT:
        cells |= BAD_TEXTS
        if not input_column.may_hold_any_text:
            cells |= UNEXPECTED_TEXTS
        return cells
    cells |= BAD_NUMBERS
    if not column.is_boolean:
        cells["True"] = b"True"
    if column.whole:
        cells["a fraction"] = b"1.5"
    # `cells` already holds a negative number and a number beyond 32 bits, from BAD_NUMBERS.
    if column.high < schema.INT32_MAX:
        cells["above the range"] = str(column.high + 1).encode()
    if column.low > 0:
        cells["below the range"] = str(column.low - 1).encode()
    if input_column.is_read_by_int:
        # The script reads this column by `int`. Leave out the cells that `int` accepts, which are
        # valid.
        cells = {name: cell for name, cell in cells.items() if not _is_read_by_int(cell)}
    return cells


def _is_read_by_int(cell: bytes) -> bool:
    """Return whether Python's `int` accepts the text of a cell."""
    try:
        int(cell.decode("utf-8", "surrogateescape"))
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class CsvLines:
    """A well-formed CSV, cut into the parts from which damaged files are put together.

    Damage is done to one row: the file is `before`, this row and `after`.
    """

    # Names of all columns in the file.
    names: list[str]
    # The first line with its line end; empty if the file has no header.
    header: bytes
    # All other lines together.
    body: bytes
    # All of the file before the row that is to be damaged, and all of it after this row.
    before: bytes
    after: bytes
    # The cells of the row that is to be damaged; here, they are still valid.
    row: list[str]
    # The first row below the header, as a line with its line end.
    first_line: bytes

    @property
    def line(self) -> bytes:
        """The row that is to be damaged, still valid, as a line without its line end."""
        return write_row(self.row).removesuffix(b"\n")

    def with_line(self, line: bytes) -> bytes:
        """Return the file with `line` in place of the row to be damaged; `line` has no line end."""
        return self.before + line + b"\n" + self.after


def cut_csv(input_file: InputFile, content: bytes) -> CsvLines:
    """Cut a well-formed CSV into its parts, and choose the row that is to be damaged."""
    text = content.decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if input_file.has_header:
        names = rows.pop(0)
        header = write_row(names)
    else:
        names = [input_column.column.name for input_column in input_file.columns]
        header = b""
    lines = [write_row(row) for row in rows]
    # Damage a row late in the file: by then, a reader may have accepted many rows.
    position = len(lines) * 3 // 4
    return CsvLines(
        names=names,
        header=header,
        body=b"".join(lines),
        before=header + b"".join(lines[:position]),
        after=b"".join(lines[position + 1 :]),
        row=rows[position],
        first_line=lines[0],
    )


def write_row(row: Sequence[str]) -> bytes:
    """Return a row of a CSV as a line with its line end."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue().encode()


def damage_csv(input_file: InputFile, content: bytes) -> Cases:
    """Yield a name and a content for each way to damage a CSV."""
    lines = cut_csv(input_file, content)
    # A submission of the debiasing challenge has 50 columns of items, which are all alike. To save
    # time, only the first columns are damaged.
    for input_column in input_file.columns[:9]:
        yield from damage_cells(input_column, lines)
        if input_file.has_header:
            yield from damage_column_names(input_column, lines)
    yield from damage_rows(input_file, lines)
    if input_file.has_header:
        yield from damage_header(lines)
    else:
        yield "a header", write_row(lines.names) + lines.body


def damage_cells(input_column: InputColumn, lines: CsvLines) -> Cases:
    """Yield CSVs in which one cell of a column is not valid."""
    name = input_column.column.name
    row = list(lines.row)
    # A bad cell may be invalid UTF-8, which csv cannot write. So write a placeholder, and replace
    # it by the bad cell.
    row[lines.names.index(name)] = "<here>"
    line = write_row(row).removesuffix(b"\n")
    for case, cell in bad_cells(input_column).items():
        yield f"{name}: {case}", lines.with_line(line.replace(b"<here>", cell))


def damage_column_names(input_column: InputColumn, lines: CsvLines) -> Cases:
    """Yield a CSV in which a column has another name, and one in which it occurs twice."""
    if input_column.is_optional:
        return
    name = input_column.column.name
    if not input_column.may_have_any_name:
        renamed = [f"{other}?" if other == name else other for other in lines.names]
        yield f"{name}: column renamed", write_row(renamed) + lines.body
    twice = write_row([*lines.names, name]) + lines.body.replace(b"\n", b",1\n")
    yield f"{name}: column twice", twice


def damage_rows(input_file: InputFile, lines: CsvLines) -> Cases:
    """Yield CSVs whose rows are too long or short, repeated, joined, cut off or badly quoted.

    Some damage concerns one row, `lines.row`. Then `lines.before` is everything before this row,
    and `lines.with_line` puts a damaged line in its place.
    """
    whole = lines.header + lines.body
    has_several_columns = len(lines.names) > 1
    yield "a cell too many", lines.with_line(lines.line + b",1")
    yield "a long row that is no UTF-8", lines.with_line(lines.line + b",\xff" * 9)
    yield "an open quotation mark", lines.with_line(b'"' + lines.line)
    # A file without a header would be empty. It gets a blank line, because the case "empty" already
    # tests a file without any bytes.
    yield "no rows", lines.header or b"\n"
    yield "all in one row", whole.replace(b"\n", b",")
    # A file with a single column has no commas: there, semicolons replace the line ends.
    separator = b"," if has_several_columns else b"\n"
    yield "semicolons", whole.replace(separator, b";")
    if has_several_columns:
        yield "a cell too few", lines.with_line(write_row(lines.row[:-1]).strip())
        first_cell, *_ = lines.line.split(b",")
        yield "cut off in a row", lines.before + first_cell
    if not input_file.may_repeat_rows:
        yield "a row twice", whole + lines.first_line
    # The metadata of questions end in a text, and the metadata of answers end in a cell that may be
    # empty. Such a cell looks valid even if its end is missing, so scripts require a line end at
    # the end of these files. `[:-2]` removes the line end and the last character of the last cell.
    columns = {input_column.column for input_column in input_file.columns}
    if "metadata" in input_file.path and columns & {schema.SUBJECT_LIST, schema.CONFIDENCE}:
        yield "cut off in the last cell", whole[:-2]


def damage_header(lines: CsvLines) -> Cases:
    """Yield a CSV without its header, and with damaged headers."""
    whole = lines.header + lines.body
    yield "no header", lines.body
    yield "a blank line first", b"\n" + whole
    yield "a long header", b"x" * 100_000 + b"," + whole
    yield "a header of control characters", b"\x1b[2J\x00," * 50 + b"\n" + lines.body
    yield "an open quotation mark in the header", b'"' + whole


# ---- JSON --------------------------------------------------------------------------------------

OTHER_VALUES: dict[str, object] = {
    "null": None,
    "a number": 7,
    "negative": -1,
    "a fraction": 0.5,
    "true": True,
    "a huge number": 10**400,
    "NaN": math.nan,
    "infinity": math.inf,
    "a text": 'x"><script>',
    "control characters": "\x1b[2J",
    "an open quotation mark": "python 'x",
    "half a character": "[MASK] \ud800",
    "a list": [],
    "a list of numbers": [1],
    "a list of half a character": ["\udfff"],
    "an object": {},
}
# These keys of OTHER_VALUES have values that are valid in a field of any text.
TEXTS = {"a text", "control characters", "an open quotation mark"}


def damage_json_lines(content: bytes) -> Cases:
    """Yield a name and a content for each way to damage a file of queries.

    The file belongs to the challenge "cloze", and has a JSON object in each line.
    """
    lines = content.splitlines()
    # Damage the query in the middle of the file.
    position = len(lines) // 2
    query = json.loads(lines[position])
    # Some changes leave the query valid. For each field, a set lists the names of such changes,
    # which are keys of OTHER_VALUES or "missing". The value of `qid` may be any text. The values of
    # `domain` and `NeedReasoning` only classify the query: they may be text, a whole number, a
    # boolean or nothing.
    classes = {"missing", "null", "a number", "negative", "a huge number", "true", *TEXTS}
    valid_changes = {"qid": TEXTS, "domain": classes, "NeedReasoning": classes}
    for name, damaged_line in damage_object(query, valid_changes):
        damaged_lines = list(lines)
        damaged_lines[position] = damaged_line
        yield name, b"\n".join(damaged_lines)
    yield "a line twice", b"\n".join([*lines, lines[0]])
    yield "only blank lines", b"\n\n\n"


def damage_record(content: bytes) -> Cases:
    """Yield malformed lines for results.jsonl, the record of scores, made from a valid line.

    `content` is the valid line, a JSON object. Each of its fields gets each value of OTHER_VALUES
    that is not valid in this field.
    """
    result = json.loads(content)
    # Some fields of the record hold a text, others hold a number or null. `texts` and `numbers`
    # name the values of OTHER_VALUES that are valid in such fields.
    texts = {*TEXTS, "half a character"}
    numbers = {"null", "a number", "a fraction", "negative"}
    # For each field, the names of the values that are valid in it. The name "missing" means that
    # the field may be missing.
    valid_changes = {
        "rules": texts,
        "model": texts,
        "command": texts,
        "submission": texts,
        "script": texts,
        "revision": {"null", *texts},
        "task": {"a number"},
        "seed": {"a number", "null"},
        "score": {"a fraction"},
        "seconds": numbers,
        "parts": {"an object"},
        "options": {"an object"},
    }
    # The values of the fields `options` and `parts` are objects. Their keys are fields of their
    # own, for which changes are valid, too.
    for name in result["options"]:
        valid_changes[name] = {"missing", *texts, "true", "a list", "a list of half a character"}
    for name in result["parts"]:
        valid_changes[name] = {"missing", *numbers}
    yield from damage_object(result, valid_changes)


def damage_object(record: dict[str, Any], valid_changes: dict[str, set[str]]) -> Cases:
    """Yield malformed variants of a line that holds a valid JSON object, `record`.

    `change_values` changes the value of each key in several ways, which have names. For some keys,
    `valid_changes` lists the names of those changes after which the object is still valid; these
    variants are left out.
    """
    for name, changed in change_values(record, valid_changes):
        yield name, json.dumps(changed).encode()
    line = json.dumps(record)
    without_brace = line.removesuffix("}")

    def with_field(value: str) -> bytes:
        """Return the line with one more field "x", whose value is the JSON text `value`."""
        return f'{without_brace}, "x": {value}}}'.encode()

    yield "a number of 5,000 digits", with_field("9" * 5000)
    yield "a list", b"[1, 2]"
    yield "nested deeply within", with_field(NESTED_LISTS)
    yield "a NUL byte", b"\0"
    yield "half a line", line[: len(line) // 2].encode()
    yield "two objects", (line + line).encode()
    yield "noise", b"\xff\xfe\x00\x01"


def change_values(
    record: dict[str, Any], valid_changes: dict[str, set[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Change one value of an object in many ways; yield the name and the result of each change.

    A change removes a key, or gives the key one of OTHER_VALUES. If the value of the key is itself
    an object, a change may also change one value of this inner object. `valid_changes` lists, for
    some keys of both objects, the names of changes that leave the object valid; these changes are
    left out.
    """
    for key, value in record.items():
        # For each change of this key, the name of the change and the changed object.
        changed = {name: {**record, key: other} for name, other in OTHER_VALUES.items()}
        without_key = dict(record)
        del without_key[key]
        changed["missing"] = without_key
        if isinstance(value, dict):
            for name, changed_value in change_values(value, valid_changes):
                changed[name] = {**record, key: changed_value}
        names_of_valid = valid_changes.get(key, set())
        for name, changed_record in changed.items():
            if name not in names_of_valid:
                yield f"{key}: {name}", changed_record


# ---- XML and arrays ----------------------------------------------------------------------------


def damage_xml(content: bytes) -> Cases:
    """Yield a name and a content for each way to damage an XML file that holds a question.

    The file belongs to the challenge "student_response". `related_challenges/test_contract.py`
    tests well-formed XML that is no valid question.
    """
    body = re.sub(r"<\?xml.*?\?>", "", content.decode())
    # A parser must not trust the encoding that a file declares. Here, the encoding does not exist,
    # is not the encoding of the file, or is known to Python but not to XML.
    for encoding in ("nothing", "shift_jis", "utf-7", "rot13", "utf-32", "\x00"):
        declaration = f'<?xml version="1.0" encoding="{encoding}"?>'
        yield f"encoding {encoding!r}", (declaration + body).encode()
    # The first id becomes empty: its old value moves to a new attribute, `name`.
    yield "empty id", body.replace(" id=", ' id="" name=', 1).encode()
    # The entity e0 stands for "ha", e1 for ten times e0, e2 for ten times e1, and so on. So e11
    # stands for 10¹¹ times "ha".
    entities = ['<!ENTITY e0 "ha">']
    for number in range(1, 12):
        tenfold = f"&e{number - 1};" * 10
        entities.append(f'<!ENTITY e{number} "{tenfold}">')
    bomb = f"<!DOCTYPE question [{''.join(entities)}]>{body}"
    yield "a bomb of entities", bomb.replace("<questionText>", "<questionText>&e11;").encode()


def damage_array(content: bytes) -> Cases:
    """Yield a name and a content for each way to damage a NumPy file of UserIds."""
    user_ids = np.load(io.BytesIO(content))
    for name, array in make_other_arrays(user_ids).items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        yield name, buffer.getvalue()
    # The header holds the shape of the array, such as (7,). Replace the 7 by a number of 16 digits.
    true_shape = f"({len(user_ids)},)".encode()
    huge_shape = f"({'9' * 16},)".encode()
    yield "huge shape", content.replace(true_shape, huge_shape)
    yield "a header that calls", write_header_that_calls()
    # The first 8 bytes name the format and its version, here 9.9, which does not exist.
    yield "unknown version", b"\x93NUMPY\x09\x09" + content[8:]


def make_other_arrays(user_ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return arrays with a wrong type of values or a wrong shape, made from an array of UserIds."""
    return {
        "texts": user_ids.astype("U"),
        "floats": user_ids.astype("f8"),
        "objects": user_ids.astype("O"),
        "dates": user_ids.astype("M8[s]"),
        "booleans": user_ids.astype("?"),
        "a number": np.asarray(7),
        "one row of many columns": user_ids[None],
        "nothing": user_ids[:0],
    }


def write_header_that_calls() -> bytes:
    """Return a file in NumPy's format whose header would call a function if it were evaluated.

    A file in version 1.0 of the format begins with 8 bytes that name the format and the version.
    The length of the header follows in 2 bytes, and then the header. Blanks and a line end fill the
    header so that all this has 64 bytes.
    """
    start = b"\x93NUMPY\x01\x00"
    header_length = 64 - len(start) - 2
    header = b"{'descr': __import__('os'),".ljust(header_length - 1) + b"\n"
    return start + struct.pack("<H", header_length) + header


# ---- What must happen --------------------------------------------------------------------------


def find_fault(input_file: InputFile, put_file: PutFile, kit: Path) -> str:
    """Run a script on a malformed file; return what the script did wrong, or an empty text.

    The well-formed file is moved away first, to a name that ends in ".right", and put back at the
    end.
    """
    path = kit / input_file.path
    shutil.rmtree(kit / "out", ignore_errors=True)
    well_formed_file = path.replace(path.with_name(f"{path.name}.right"))
    try:
        put_file(path)
        before = snapshot(kit)
        # Windows has no alarms.
        if hasattr(signal, "alarm"):
            # The script runs in this process. If it hangs, the alarm raises KeyboardInterrupt.
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.alarm(TIME_LIMIT_SECONDS)
        done = input_file.run(kit)
        if not is_refused(input_file, done):
            # The script should have refused the file. The exit code and the ends of the two outputs
            # are enough to see what happened.
            return f"{done.returncode} {done.stdout[-300:]!r} {done.stderr[-900:]!r}"
        if snapshot(kit) != before:
            return "was refused, but files were written"
        return ""
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        remove(path)
        well_formed_file.replace(path)


def remove(path: Path) -> None:
    """Remove a file, a link, a pipe or an empty folder, if there is one at the path."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)


def is_refused(input_file: InputFile, done: Done) -> bool:
    """Return whether a script has refused a file with exit code 2 and a readable message.

    The message names the file, and no score is printed.
    """
    lines = done.stderr.splitlines()
    # A script named check_submission.py may print several lines, one for each fault.
    is_one_line = len(lines) == 1 or "check_submission" in input_file.script
    is_readable = all(
        line.startswith("error: ") and line.isprintable() and len(line) < 1000 for line in lines
    )
    first_line = lines[0] if lines else ""
    names_the_file = Path(input_file.path).name in first_line
    # A path such as out/scores_task_1.txt holds the word "score", but shows no score.
    output_without_paths = re.sub(r"\S*score\S*/\S*", "", done.stdout)
    prints_a_score = "score" in output_without_paths
    return (
        done.returncode == 2
        and is_one_line
        and is_readable
        and names_the_file
        and not prints_a_score
    )


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of change of each file and folder in a folder, by path."""
    statuses = {str(path): path.lstat() for path in folder.rglob("*")}
    return {path: (status.st_size, status.st_mtime_ns) for path, status in statuses.items()}
