"""Malformed files: damage of every kind, in every file that a script reads, through every script.

Run:     python tests/malformed.py                   everything, with a line for each script
         python tests/malformed.py --only cloze      scripts and files whose name holds a word

A malformed file must be refused: exit code 2, one line on stderr that names the file and that any
terminal can print, nothing written. `tests/test_malformed_files.py` runs a sample of all cases, or
all of them with KIT_MALFORMED=all.
"""

import argparse
import codecs
import csv
import gzip
import io
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    # Python puts this folder first, and tests/common/ would hide the kit's own.
    tests = Path(__file__).resolve().parent
    sys.path[:1] = [str(tests.parent), str(tests)]

from conftest import copy_kit
from run_scripts import Done, run_script

from common import schema
from common.schema import TEXT, Column

Place = Callable[[Path], object]
Cases = Iterator[tuple[str, bytes]]


# ---- What the scripts read --------------------------------------------------------------------

# Every script, and below it the files that it reads, with ./ for the data of a related challenge
# and T for task 1 and task 2. A file may be missing (?), hold a row twice (+), have no header (-).
# Of a CSV, and of that in a zip, the columns that the script reads: it does without (*), or any
# text is valid (~).
TABLE = """
task_T/local_data_split.py --output_dir out
    data/train_data/train_task_1_2.csv: answer_columns
task_T/sample_model_majority.py --output_dir out
    data/train_data/train_task_1_2.csv: learned_T
    submission_templates/submission_task_1_2.csv: question_id user_id
task_T/sample_model_item_response.py --output_dir out
    data/metadata/answer_metadata_task_1_2.csv ?: answer_id_or_empty group_id* quiz_id*
task_T/sample_model_gradient_boosting.py --output_dir out --features rates subjects students
    data/metadata/student_metadata_task_1_2.csv ?: user_id gender* date_of_birth* premium_pupil*
    data/metadata/question_metadata_task_1_2.csv ?: question_id subject_list
    data/metadata/subject_metadata.csv ?: subject_id parent_id level
task_T/local_evaluation.py --output_dir out
    data/test_input/valid_task_1_2.csv: question_id user_id predicted_T
    data/test_output/test_submission_task_T.csv: question_id user_id predicted_T
task_T/local_evaluation.py --output_dir out --submit_data test_submission_task_T.zip
    data/test_output/test_submission_task_T.zip: question_id user_id predicted_T
task_T/local_evaluation.py --output_dir out --probabilities data/test_output/p_T.parquet
    data/test_output/p_T.parquet
task_T/local_evaluation.py --output_dir out --phase public
    data/test_data/test_public_answers_task_T.csv: question_id user_id predicted_T
    data/test_data/test_private_answers_task_T.csv: question_id user_id predicted_T
    submissions/submission_task_T.csv: question_id user_id predicted_T
-m common.check_submission submissions/submission_task_T.csv
    submissions/submission_task_T.csv: question_id user_id predicted_T
    submission_templates/submission_task_1_2.csv: question_id user_id
task_3/sample_model_entropy.py --output_dir out
    data/train_data/train_task_3_4.csv: learned_2 is_correct
    submission_templates/submission_task_3.csv: question_id
task_3/sample_model_random.py --output_dir out
    submission_templates/submission_task_3.csv: question_id
task_3/sample_model_confidence.py --output_dir out
    data/train_data/train_task_3_4.csv: learned_2 answer_id
    data/metadata/answer_metadata_task_3_4.csv: answer_id_or_empty confidence group_id quiz_id
task_3/sample_model_rank_average.py --output_dir out
    data/train_data/train_task_3_4.csv: learned_2
task_3/question_report.py --output_dir out --question 1
    data/metadata/question_metadata_task_3_4.csv ?: question_id subject_list
task_3/local_evaluation.py --output_dir out
    data/test_data/quality_response_remapped_public.csv +: left right experts
    submission_templates/submission_task_3.csv: question_id
    submissions/submission_task_3.csv: question_id ranking
task_3/local_evaluation.py --output_dir out --submit_data submission_task_3.zip
    submissions/submission_task_3.zip: question_id ranking
-m common.check_submission submissions/submission_task_3.csv
    submissions/submission_task_3.csv: question_id ranking
task_4/local_data_split.py --output_dir out
    data/train_data/train_task_3_4.csv: answer_columns
task_4/trainer/train_model.py
    data/train_data/train_task_3_4.csv: learned_1
    data/metadata/question_metadata_task_3_4.csv ?+: question_id
task_4/numpy/local_evaluation.py --output_dir out --skip_curve
    data/test_input/valid_task_4.csv: learned_2 is_correct is_target
    data/test_input/train_task_4.csv ?+: question_id user_id
    data/metadata/question_metadata_task_3_4.csv ?+: question_id
    task_4/numpy/model_task_4_students.npy ?
-m common.templates --output_dir out
    data/test_data/test_public_answers_task_1.csv ?+: question_id user_id answer_id
    data/test_data/test_private_answers_task_1.csv ?+: question_id user_id answer_id
-m common.scoreboard
    data/test_output/results.jsonl
related_challenges/cloze/local_data_split.py --output_dir out
    ./train_data/KCT_train_public.txt
related_challenges/cloze/sample_model_frequent.py --output_dir out
    ./train_data/KCT_train_public.txt
    ./train_data/KCT_test_public.txt
related_challenges/cloze/sample_model_frequent.py --output_dir out --local
    ./test_input/folds.csv: id fold
related_challenges/cloze/local_evaluation.py --output_dir out
    ./train_data/KCT_train_public.txt
    ./test_output/submission.csv: id ret
related_challenges/cloze/check_submission.py FILE
    ./test_output/submission.csv: id ret
related_challenges/science_exam/sample_model_longest_option.py --output_dir out
    ./train_data/test.csv: id~ prompt~ A~ B~ C~ D~ E~
related_challenges/science_exam/local_evaluation.py --output_dir out
    ./train_data/train.csv: id~ prompt~ A~ B~ C~ D~ E~ answer
    ./test_output/submission.csv: id prediction
related_challenges/science_exam/check_submission.py FILE
    ./test_output/submission.csv: id prediction
related_challenges/student_response/local_data_split.py --output_dir out
    ./train_data/D0-3.xml ?
related_challenges/student_response/sample_model_majority.py --output_dir out
    ./train_data/D0-3.xml ?
    ./test_input/folds.csv: id fold
related_challenges/student_response/local_evaluation.py --output_dir out
    ./train_data/D0-3.xml ?
    ./test_output/submission.csv: id label
related_challenges/student_response/check_submission.py FILE
    ./test_output/submission.csv: id label
related_challenges/debiasing/local_data_split.py --output_dir out
    ./train_data/underexpose_train_click-0.csv ?+-: click
related_challenges/debiasing/sample_model_popularity.py --output_dir out
    ./train_data/underexpose_train_click-0.csv ?+-: click
    ./train_data/underexpose_test_click-0.csv +-: click
    ./train_data/underexpose_test_qtime-0.csv -: user time
related_challenges/debiasing/local_evaluation.py --output_dir out
    ./test_input/debias_track_answer.csv -: phase user item degree
    ./test_output/submission.csv -: user items
related_challenges/debiasing/check_submission.py FILE
    ./test_output/submission.csv -: user items
"""
# By the names in `common.schema`, and what files of the related challenges hold.
COLUMNS = {
    **{name.lower(): value for name, value in vars(schema).items() if isinstance(value, Column)},
    **{name: Column(name, TEXT) for name in ("id", "ret", "prediction", "label", "answer")},
    **{name: Column(name, TEXT) for name in ("prompt", *"ABCDE")},
    "is_target": schema.is_target(),
    "fold": Column("fold", high=9_999),
    "user": Column("user_id", high=9_999_999),
    "item": Column("item_id", high=9_999_999),
    "time": Column("time", "float64", 0, 1, whole=False),
    "phase": Column("phase_id", high=9),
    "degree": Column("item_degree"),
}
SEVERAL = {
    "answer_columns": "question_id user_id answer_id* is_correct correct_answer answer_value",
    "learned_1": "question_id user_id is_correct",
    "learned_2": "question_id user_id correct_answer answer_value",
    "predicted_1": "is_correct",
    "predicted_2": "answer_value",
    "experts": " ".join(schema.EXPERT_NAMES),
    "click": "user item time",
    "items": " ".join(f"item_{place}" for place in range(1, 51)),
}
COLUMNS |= {name: schema.expert_judgement(name) for name in schema.EXPERT_NAMES}
COLUMNS |= {name: Column(name, high=9_999_999) for name in SEVERAL["items"].split()}


@dataclass(frozen=True)
class Input:
    """A file that a script reads, as the table says; its kind is the ending of its name."""

    script: str
    flags: str
    file: str
    kind: str = "csv"
    columns: tuple[Column, ...] = ()
    free: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    marks: str = ""

    @property
    def name(self) -> str:
        """Which script reads which file."""
        return f"{self.script} < {self.file}"

    def run(self, kit: Path) -> Done:
        """Run the script in a kit."""
        return run_script([*self.script.split(), *self.flags.split()], kit=kit, cwd=kit)


def find_inputs() -> list[Input]:
    """Return every file that a script reads, once for each script."""
    found = []
    for block in re.split(r"\n(?=\S)", TABLE.strip()):
        for task in "12" if "_T" in block else "0":
            command, *lines = block.replace("_T", f"_{task}").splitlines()
            script, _, flags = command.partition(" --")
            found += [_input(script, flags and f"--{flags}", line) for line in lines]
    return found


def _input(script: str, flags: str, line: str) -> Input:
    left, _, words = line.strip().partition(":")
    file, _, marks = left.partition(" ")
    file = file.replace("./", f"{Path(script.split()[0]).parent}/data/")
    for name, several in SEVERAL.items():
        words = re.sub(rf"\b{name}\b", several, words)
    columns = {word.rstrip("*~"): COLUMNS[word.rstrip("*~")].name for word in words.split()}
    return Input(
        script.replace("FILE", file), flags, file, Path(file).suffix[1:],
        tuple(COLUMNS[word] for word in columns),
        tuple(columns[word[:-1]] for word in words.split() if word.endswith("~")),
        tuple(columns[word[:-1]] for word in words.split() if word.endswith("*")),
        marks,
    )  # fmt: skip


# What makes the files, after the samples of tasks and challenges.
PREPARED = """
task_T/local_data_split.py
task_T/sample_model_majority.py
task_T/sample_model_majority.py --local --probabilities data/test_output/p_T.parquet
task_3/sample_model_entropy.py
task_4/local_data_split.py
task_4/numpy/train_model.py --local
task_1/local_evaluation.py
related_challenges/cloze/local_data_split.py
related_challenges/student_response/local_data_split.py
related_challenges/debiasing/local_data_split.py
related_challenges/cloze/sample_model_frequent.py --local
related_challenges/science_exam/sample_model_longest_option.py --test_data train.csv
related_challenges/student_response/sample_model_majority.py
related_challenges/debiasing/sample_model_popularity.py --local
"""


def prepare(kit: Path) -> None:
    """Make every file that a script reads, well formed, in a kit with tiny data."""
    samples = sorted(kit.glob("related_challenges/*/generate_sample.py"))
    commands = [str(path.relative_to(kit)) for path in samples]
    for line in PREPARED.strip().splitlines():
        commands += dict.fromkeys(line.replace("_T", f"_{task}") for task in "12")
    for command in commands:
        done = run_script(command.split(), kit=kit, cwd=kit)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    ignored = shutil.ignore_patterns("__pycache__", "model_task_4*")
    shutil.copytree(kit / "task_4/numpy", kit / "task_4/trainer", ignore=ignored)
    # As the user's own files: beside a stamp, other contents are refused as those of other data.
    for kind in ("split_*.json", "template_*.json", "folds.json"):
        for stamp in kit.rglob(kind):
            stamp.unlink()


# ---- Damage -----------------------------------------------------------------------------------


def malform(input: Input, content: bytes) -> dict[str, Place]:
    """Return all damage to a file, by name: functions that put a malformed file at a path."""
    kinds: dict[str, Callable[[Input, bytes], Cases]] = {
        "csv": damage_csv,
        "zip": damage_zip,
        "txt": damage_json_lines,
        "xml": damage_xml,
        "npy": damage_array,
        "parquet": damage_probabilities,
        "jsonl": damage_record,
    }

    def writer(damaged: bytes) -> Place:
        return lambda path: path.write_bytes(damaged)

    found = {name: writer(damaged) for name, damaged in kinds[input.kind](input, content)}
    if input.kind == "jsonl":
        return found
    found |= {
        "a picture": writer(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))),
        "zeros": writer(bytes(len(content))),
        "packed by gzip": writer(gzip.compress(content)),
        "noise": writer(np.random.default_rng(0).bytes(4096)),
        "a folder": lambda path: path.mkdir(),
        "empty": writer(b""),
    }
    if "?" not in input.marks:
        found["missing"] = lambda path: None
    if hasattr(os, "mkfifo"):
        found["a pipe"] = lambda path: os.mkfifo(path)
        found["a link to nothing"] = lambda path: path.symlink_to("nowhere")
        found["links in a circle"] = lambda path: path.symlink_to(path.name)
    return found


# What no column of numbers may hold.
BAD_NUMBERS = {
    "a word": b"abc", "hexadecimal": b"0x2", "HEXADECIMAL": b"0X2", "binary": b"0b1",
    "octal": b"0o1", "underscore": b"1_0", "NaN": b"NaN", "infinity": b"inf", "None": b"None",
    "#N/A": b"#N/A", "too large an exponent": b"1e400", "5,000 digits": b"9" * 5000,
    "cut in the exponent": b"1e", "two signs": b"--1", "two numbers": b"1 2",
    "two points": b"1.2.3", "a comma within": b'"1,0"', "wide digits": "１".encode(),
    "Arabic digits": "١".encode(), "a fraction sign": "½".encode(), "a NUL byte": b"1\x00",
    "a NUL byte in front": b"\x001", "only a NUL byte": b"\x00", "no UTF-8": b"\xff",
    "half a UTF-8 character": b"1\xe2\x82", "control characters": b"\x1b[31m\x07\x08\x0b1\x7f",
    "a line end in quotes": b'"1\n2"', "direction marks": "\u202e1\u2028".encode(),
    "a million characters": b"y" * 1_000_000, "six million characters": b"y" * 6_000_000,
    "a quotation mark": b'1"', "markup": b"<script>alert(1)</script>", "negative": b"-1",
    "beyond 32 bits": b"2147483648", "beyond 64 bits": b"18446744073709551617",
}  # fmt: skip
DEEP = "[" * 200_000


def bad_cells(column: Column, free: bool) -> Cases:
    """Return contents that a column may not have, by name."""
    if not column.may_be_empty:
        yield from {"nothing": b"", "blanks": b" \t", "empty quotes": b'""'}.items()
    if column.dtype == TEXT:
        yield from {"no UTF-8": b"\xff\xfe", "a NUL byte": b"a\x00"}.items()
        if not free:
            for name in ("a word", "control characters", "a million characters", "markup"):
                yield name, BAD_NUMBERS[name]
            yield "5,000 digits in a list", b'"[' + b"9" * 5000 + b']"'
            yield "nested deeply", f'"{DEEP}"'.encode()
        return
    yield from BAD_NUMBERS.items()
    if not column.is_boolean:
        yield "True", b"True"
    if column.whole:
        yield "a fraction", b"1.5"
    if column.high < schema.INT32_MAX:
        yield "above the range", str(column.high + 1).encode()
    if column.low > 0:
        yield "below the range", str(column.low - 1).encode()


def damage_csv(input: Input, content: bytes) -> Cases:
    """Return damage to a CSV: cells, rows, header, the whole file."""
    text = content.decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    has_header = "-" not in input.marks
    header = rows.pop(0) if has_header else [column.name for column in input.columns]
    lines = [write_row(row) for row in rows]
    top = write_row(header) if has_header else b""
    body = b"".join(lines)
    # Late in the file, so that rows before it are read well.
    place = len(lines) * 3 // 4

    def with_line(line: bytes) -> bytes:
        return top + b"".join([*lines[:place], line, *lines[place + 1 :]])

    for column in input.columns if len(input.columns) < 20 else input.columns[:3]:
        at = header.index(column.name)
        for name, cell in bad_cells(column, column.name in input.free):
            cells = [quoted(value) for value in rows[place]]
            cells[at] = cell
            yield f"{column.name}: {name}", with_line(b",".join(cells) + b"\n")
        if has_header and column.name not in input.spare:
            renamed = [f"{value}?" if value == column.name else value for value in header]
            yield f"{column.name}: column renamed", write_row(renamed) + body
            cut = [[*row[:at], *row[at + 1 :]] for row in [header, *rows]]
            if len(header) > 1:
                yield f"{column.name}: column left out", b"".join(map(write_row, cut))
            twice = [[*row, row[at]] for row in [header, *rows]]
            yield f"{column.name}: column twice", b"".join(map(write_row, twice))
    line = lines[place].rstrip(b"\n")
    yield "a cell too many", with_line(line + b",1\n")
    yield "a thousand cells too many", with_line(line + b",1" * 1000 + b"\n")
    yield "a row of noise", with_line(b"\xff\xfe\x00,\n")
    yield "a long row that is no UTF-8", with_line(line + b",\xff" * 9 + b"\n")
    if len(header) > 1:
        yield "a cell too few", with_line(write_row(rows[place][:-1]))
        yield "a short row that is no UTF-8", with_line(b"\xff\n")
        first = lines[place].split(b",")[0]
        yield "cut off in a row", top + b"".join([*lines[:place], first])
        for name, separator in (("semicolons", b";"), ("tabs", b"\t"), ("pipes", b"|")):
            cells = [separator.join(map(quoted, row)) for row in [header, *rows]]
            yield name, b"\n".join([*cells, b""])
    else:
        yield "semicolons", (top + body).replace(b"\n", b";\n")
    yield "an open quotation mark", with_line(b'"' + line + b"\n")
    yield "no rows", top or b"\n"
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-32", text.encode("utf-32")
    yield "all in one row", (top + body).replace(b"\n", b",")
    if "+" not in input.marks:
        yield "a row twice", top + body + lines[0]
    # Files of which rows end with a text or an empty cell must end with a line end.
    if "metadata" in input.file and {schema.SUBJECT_LIST, schema.CONFIDENCE} & {*input.columns}:
        yield "cut off in the last cell", (top + body)[:-2]
    if not has_header:
        yield "a header", write_row(header) + body
        return
    yield "no header", body
    yield "a blank line first", b"\n" + top + body
    yield "a long header", b"x" * 100_000 + b"," + top + body
    yield "a header of control characters", b"\x1b[2J\x00," * 50 + b"\n" + body
    yield "a header that is no UTF-8", b"\xff" + top + body
    yield "an open quotation mark in the header", b'"' + top + body


def write_row(row: Sequence[str]) -> bytes:
    """Write a row of a CSV."""
    return b",".join(map(quoted, row)) + b"\n"


def quoted(value: str) -> bytes:
    """Write a cell, in quotes if it needs them."""
    if re.search('[",\r\n]', value):
        value = '"' + value.replace('"', '""') + '"'
    return value.encode()


def cut_off(content: bytes, *shares: float) -> Cases:
    """Return the first part of a file."""
    for share in shares or (0.05, 0.5, 0.99):
        yield f"cut off at {share:.0%}", content[: int(share * len(content))]


def damage_zip(input: Input, content: bytes) -> Cases:
    """Return damage to a zip that holds a CSV, and to the CSV in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = archive.namelist()
        table = archive.read(name)

    def pack(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for member, data in members.items():
                archive.writestr(zipfile.ZipInfo(member), data, method)
        return buffer.getvalue()

    # Where directory and local header have: flags, method, checksum, size packed, size, name.
    fields = {"flags": (8, 6), "method": (10, 8), "checksum": (16, 14), "packed": (20, 18),
              "size": (24, 22), "name": (46, 30)}  # fmt: skip

    def state(zipped: bytes, field: str, value: bytes, both: bool = True) -> bytes:
        changed = bytearray(zipped)
        at, local = fields[field]
        at += zipped.rindex(b"PK\x01\x02")
        changed[at : at + len(value)] = value
        if both:
            changed[local : local + len(value)] = value
        return bytes(changed)

    def number(value: int) -> bytes:
        return struct.pack("<L", value)

    for label, damaged in damage_csv(input, table):
        if label.split(": ")[-1] in ("hexadecimal", "a NUL byte", "no UTF-8", "a fraction"):
            yield f"packed, {label}", pack({name: damaged})
    good = pack({name: table})
    yield "no zip", table
    yield from cut_off(good, 0.01, 0.3, 0.6, 0.9, 0.99)
    # Other names, other bombs and every byte changed: see `tests/common/test_zips.py`.
    for label, method in (("LZMA", zipfile.ZIP_LZMA), ("BZ2", zipfile.ZIP_BZIP2)):
        packed = pack({name: table}, method)
        start, end = 30 + len(name), packed.rindex(b"PK\x01\x02")
        half, rest = packed[: (start + end) // 2], packed[end:]
        yield (
            f"{label} with half its bytes",
            state(half + rest, "packed", number(len(half) - start)),
        )
    yield "name that is no UTF-8", state(state(good, "flags", b"\x00\x08"), "name", b"\xff\xfe")
    for label, field, value in (
        ("encrypted", "flags", b"\x01\x00"),
        ("unknown method", "method", b"\x63\x00"),
        ("another method", "method", b"\x00\x00"),
        ("wrong checksum", "checksum", number(12345)),
        ("larger size", "size", number(len(table) + 1)),
        ("size of 4 GB", "size", b"\xfe\xff\xff\xff"),
        ("packed size of 4 GB", "packed", b"\xfe\xff\xff\xff"),
    ):
        yield label, state(good, field, value)
        if field in ("checksum", "size"):
            yield f"{label}, in the directory", state(good, field, value, False)
    half = table[: table.index(b"\n", len(table) // 2) + 1]
    shorter = state(good, "size", number(len(half)))
    yield "smaller size and its checksum", state(shorter, "checksum", number(zlib.crc32(half)))
    bomb = state(pack({name: table + bytes(150 << 20)}), "size", number(len(table)))
    yield "a bomb that looks right", state(bomb, "checksum", number(zlib.crc32(table)))
    yield "empty zip", pack({})
    yield "above its folder", pack({f"../{name}": table})
    yield "nothing in it", pack({name: b""})


def damage_json_lines(input: Input, content: bytes) -> Cases:
    """Return damage to a file of the cloze test, one object in each line."""
    lines = content.splitlines()
    place = len(lines) // 2
    right = lines[place].decode()
    record = json.loads(right)
    long = "9" * 5000

    def with_line(line: str | bytes) -> bytes:
        line = line.encode() if isinstance(line, str) else line
        return b"\n".join([*lines[:place], line, *lines[place + 1 :]])

    texts: dict[str, object] = {
        "list": ["a"],
        "empty text": "",
        "half a character": f"[MASK] \ud800 {place}",
    }
    wrong: dict[str, dict[str, object]] = {
        "qid": texts,
        "query": {**texts, "no gap, control characters": "\x1b[2J"},
        "answer": {"text": "a", "numbers": [1], "half a character": ["\udfff"]},
    }
    if "test" in input.file or "answer" not in record:
        del wrong["answer"]
    for key, values in wrong.items():
        rest = {name: value for name, value in record.items() if name != key}
        yield f"{key} missing", with_line(json.dumps(rest))
        values |= {"null": None, "number": 7, "object": {}, "empty": [], "true": True}
        for name, value in values.items():
            yield f"{key}: {name}", with_line(json.dumps({**record, key: value}))
    wrong_lines: dict[str, str | bytes] = {
        "number of 5,000 digits": f'{{"qid": {long}, "query": "[MASK]"}}',
        "elsewhere a number of 5,000 digits": f'{right[:-1]}, "x": {long}}}',
        "nested deeply": DEEP, "nested deeply within": f'{right[:-1]}, "x": {DEEP}',
        "no JSON": "hello", "a list": "[1, 2]", "a text": '"text"', "a NUL byte": "\0",
        "two objects in a line": right + lines[place - 1].decode(),
        "no UTF-8": b'{"qid": "\xff"}', "a line twice": lines[place - 1],
        "a million characters": "y" * 1_000_000,
    }  # fmt: skip
    for name, line in wrong_lines.items():
        yield name, with_line(line)
    yield "cut off", with_line(right)[: -len(lines[-1]) // 2]
    yield "UTF-16", content.decode().encode("utf-16")
    yield "only blank lines", b"\n\n\n"


def damage_xml(input: Input, content: bytes) -> Cases:
    """Return damage to a question of student response analysis."""
    text = content.decode()
    body = text.partition("?>")[2] if text.startswith("<?xml") else text
    for encoding in ("nothing", "shift_jis", "utf-7", "idna", "rot13", "base64", "utf-32", "\x00"):
        start = f'<?xml version="1.0" encoding="{encoding}"?>'
        yield f"encoding {encoding!r}", (start + body).encode()
    yield from cut_off(content, 0.1, 0.5, 0.95)
    yield "no UTF-8", content.replace(b"<studentAnswer ", b"\xff<studentAnswer ", 1)
    yield "a page", b"<html><body>404</body></html>"
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE question [<!ENTITY e0 "ha">{entities}]>'
    yield (
        "a bomb of entities",
        (bomb + body.replace("<questionText>", "<questionText>&e11;")).encode(),
    )
    for name, old, new in (
        ("another root", "question ", "quest\u202eion "),
        ("unknown label", ' accuracy="', ' accuracy="\u2028never'),
        ("no label", ' accuracy="', ' speed="'),
        ("no id", "<studentAnswer id=", "<studentAnswer name="),
        ("empty id", "<studentAnswer id=", '<studentAnswer id="" name='),
        ("tags that do not match", "<questionText>", "<questionTxt/><questionTexts>"),
        ("reference answers that do not match", "<referenceAnswer ", "<reference "),
        ("unknown entity", "<questionText>", "<questionText>&what;"),
        ("a control character", "<questionText>", "<questionText>\x1b"),
    ):
        yield name, body.replace(old, new, 1).encode()
    for name, part, new in (
        ("an answer twice", "studentAnswer", r"\g<0>\g<0>"),
        ("no reference answers", "referenceAnswer", ""),
        ("no question", "questionText", ""),
    ):
        pattern = re.compile(rf"<{part}\b.*?</{part}>", re.DOTALL)
        yield name, pattern.sub(new, body, count=1 if new else 0).encode()


def damage_array(input: Input, content: bytes) -> Cases:
    """Return damage to an array of UserIds in NumPy's format."""
    ids = np.load(io.BytesIO(content))
    kinds: dict[str, Any] = {
        kind: ids.astype(kind) for kind in ("U", "S", "f8", "O", "c16", "M8[s]")
    }
    for name, array in {
        **kinds, "truth values": ids > 0, "a number": np.asarray(7), "two columns": ids[None],
        "nothing": ids[:0], "records": np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
    }.items():  # fmt: skip
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        yield name, buffer.getvalue()
    yield "UserIds as a text file", "\n".join(map(str, ids.tolist())).encode()
    yield from cut_off(content)
    yield "huge shape", content.replace(b"(%d,)" % len(ids), b"(9" + b"9" * 15 + b",)")
    for header in (b"7", b"{'descr': __import__('os'),", b"{'descr': '<i8', (", b"'''"):
        text = header.ljust(53) + b"\n"
        yield f"header: {header!r}", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    yield "unknown version", b"\x93NUMPY\x09\x09" + content[8:]


def damage_probabilities(input: Input, content: bytes) -> Cases:
    """Return damage to probabilities, compressed columns."""
    right = pq.read_table(io.BytesIO(content))

    def save(table: pa.Table) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        return buffer.getvalue()

    for at, name in enumerate(right.column_names):
        values: list[Any] = right[name].to_pylist()
        cases: dict[str, Any] = {
            "empty": [*values[:-1], None],
            "all empty": [None] * len(values),
            "texts": list(map(str, values)),
            "lists": [[value] for value in values],
            "truth values": [True] * len(values),
            "negative": [*values[:-1], -1],
            "too large": [*values[:-1], 2**40],
        }
        if name.endswith("Id"):
            cases["beyond 64 bits"] = np.array(values, np.uint64) + 2**63
            cases["others"] = [value + 10**6 for value in values]
        else:
            cases["NaN"] = [*values[:-1], float("nan")]
            cases["infinity"] = [*values[:-1], float("inf")]
        for case, wrong in cases.items():
            yield f"{name}: {case}", save(right.set_column(at, name, pa.array(wrong)))
        yield f"{name}: column left out", save(right.drop_columns([name]))
        yield f"{name}: column twice", save(right.append_column(name, right[name]))
    yield "no rows", save(right.slice(0, 0))
    yield "no columns", save(right.select([]))
    yield "a row missing", save(right.slice(1))
    yield "a row twice", save(pa.concat_tables([right, right.slice(0, 1)]))
    yield from cut_off(content)
    yield "end of zeros", content[:-200] + bytes(200)
    yield "a CSV", right.to_pandas().to_csv(index=False).encode()


def damage_record(input: Input, content: bytes) -> Cases:
    """Return lines of results.jsonl that are no result, each as the only line of its file.

    Left out is what lines may hold: those of earlier versions lack some keys.
    """
    record = json.loads(content)
    wrong: dict[str, object] = {
        "null": None, "a number": 7, "a text": "x\"><script>", "a list": [], "an object": {},
        "true": True, "a huge number": 10**400, "negative": -1, "a fraction": 0.5,
        "control characters": "\x1b[2J", "an open quotation mark": "python 'x",
    }  # fmt: skip
    texts = {"a text", "control characters", "an open quotation mark"}
    valid = {
        **dict.fromkeys(("rules", "model", "command", "submission", "metric_name"), texts),
        "made_by": texts - {"an open quotation mark"},
        "revision": {"null", *texts},
        "simulated": {"true"},
        "task": {"a number"},
        "seed": {"a number", "null"},
        "score": {"a fraction"},
        "seconds": {"a number", "null", "a fraction", "negative"},
        "memory": {"a number", "null"},
        "parts": {"an object"},
    }
    for key in record:
        if key not in ("code", "memory", "outcomes", "metric_name"):
            rest = {name: value for name, value in record.items() if name != key}
            yield f"{key} missing", json.dumps(rest).encode()
        for name, value in wrong.items():
            if name not in valid.get(key, ()):
                yield f"{key}: {name}", json.dumps({**record, key: value}).encode()
    for name, value in wrong.items():
        if name not in ("null", "a number", "a fraction", "negative"):
            parts = {**record["parts"], "wrong": value}
            yield f"a part: {name}", json.dumps({**record, "parts": parts}).encode()
    for text in ("NaN", "Infinity", "9" * 5000, DEEP):
        line = re.sub(r'"score": [^,]*', f'"score": {text}', content.decode())
        yield f"score: {text[:9]}", line.strip().encode()
    yield "cut off", content[: len(content) // 2]
    yield "no JSON", b"hello"
    yield "noise", b"\xff\xfe\x00\x01"
    yield "nested deeply", DEEP.encode()


def rewrite(input: Input, content: bytes) -> dict[str, bytes]:
    """Return a CSV written in other ways that mean the same, by name."""
    text = content.decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    ways = {"a byte order mark": codecs.BOM_UTF8 + text.encode()}
    if "ret" in (column.name for column in input.columns):
        # Forbidden by the cloze test itself.
        ways = {}
    if not any("\n" in cell for row in rows for cell in row):
        for name, line_end in {"CRLF": "\r\n", "CR": "\r", "blank lines": "\n\n"}.items():
            ways[name] = text.replace("\n", line_end).encode()
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    ways["everything in quotes"] = buffer.getvalue().encode()
    if "metadata" not in input.file:
        ways["no last line end"] = text.rstrip("\n").encode()
    names = [column.name for column in input.columns if column.is_boolean]
    if "-" not in input.marks and names:
        at = rows[0].index(names[0])
        for row in rows[1:]:
            row[at] = str(row[at] == "1")
        ways["True and False"] = b"".join(map(write_row, rows))
    return ways


# ---- What must happen -------------------------------------------------------------------------


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of every file in a folder."""
    found = {}
    for path in folder.rglob("*"):
        if "__pycache__" not in path.parts:
            status = path.lstat()
            found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def judge(input: Input, done: Done, is_unchanged: bool) -> str:
    """Say what is wrong with how a script met a malformed file; nothing where it refused it."""
    code, lines = done.returncode, done.stderr.splitlines()
    if input.kind == "jsonl":
        is_left_out = len(lines) == 1 and re.search(r"\b1 (invalid )?lines", lines[0])
        if code == 0 and is_left_out and "majority" not in done.stdout:
            return ""
        return f"was shown: {code} {done.stdout[-500:]}{done.stderr[-1500:]}"
    if code == 0:
        return f"was accepted: {done.stdout.strip()[-300:]}"
    if code != 2 or "Traceback" in done.stderr:
        return f"ended with {code}: {done.stderr[-1500:]}"
    # The checker of submissions names every fault, in a line each.
    one_line = len(lines) == 1 or "check_submission" in input.script
    if not lines or not one_line or not all(line.startswith("error: ") for line in lines):
        return f"was not refused in one line: {done.stderr[-1500:]}"
    if not all(line.isprintable() and len(line) < 1000 for line in lines):
        return f"was refused in a line of {len(done.stderr)} characters: {done.stderr[:300]!r}"
    if Path(input.file).name not in lines[0]:
        return f"was refused without its name: {lines[0]}"
    if "score" in re.sub(r"\S*score\S*/\S*", "", done.stdout):
        return f"was scored: {done.stdout[-300:]}"
    return "" if is_unchanged else "was refused, but files were written"


def try_out(input: Input, place: Place, kit: Path) -> str:
    """Put a malformed file into its place, run the script, put the right one back; judge that."""
    path = kit / input.file
    shutil.rmtree(kit / "out", ignore_errors=True)
    right = path.with_name(f"{path.name}.right")
    path.replace(right)
    try:
        place(path)
        before = snapshot(kit)
        done = input.run(kit)
        return judge(input, done, before == snapshot(kit))
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        right.replace(path)


def main() -> None:
    """Try everything and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="default: all")
    only = parser.parse_args().only
    n_tried = n_refused = 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        kit = copy_kit(Path(name).resolve() / "kit")
        run_script(["data/generate_sample.py", "--size", "tiny"], kit=kit)
        prepare(kit)
        for input in find_inputs():
            if not any(word in input.name for word in only):
                continue
            cases = malform(input, (kit / input.file).read_bytes())
            found = {case: try_out(input, place, kit) for case, place in cases.items()}
            faults = {case: fault for case, fault in found.items() if fault}
            n_tried, n_refused = n_tried + len(cases), n_refused + len(cases) - len(faults)
            print(f"{len(cases):5} tried, {len(cases) - len(faults):5} refused  {input.name}")
            for case, fault in faults.items():
                print(f"      {case}: {fault}")
    seconds = time.perf_counter() - started
    print(f"{n_tried:,} tried, {n_refused:,} refused in one line, {seconds:.0f} s")
    sys.exit(int(n_tried != n_refused))


if __name__ == "__main__":
    main()
