"""Malformed files: damage of every kind, in every file that a script reads, through every script.

They must be refused: exit code 2, a printable line on stderr with the file's name, nothing written.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common import schema
from common.schema import TEXT, Column

import numpy as np
from run_scripts import Done, run_script

Place = Callable[[Path], object]
Cases = Iterator[tuple[str, bytes]]


# ---- What the scripts read --------------------------------------------------------------------

# Scripts, each with every file that it reads where no script above reads it in the same way. @ is
# the folder of related challenges, ./ the data of one, T is 1 and 2. The file may be missing (?),
# hold a row twice (+), have no header (-). Of a CSV the columns that the script reads: it does
# without (*), any text is valid (~), any name will do (!).
TABLE = """
task_T/local_data_split.py < data/train_data/train_task_1_2.csv: answer_columns
task_T/sample_model_majority.py < data/train_data/train_task_1_2.csv: learned_T
    submission_templates/submission_task_1_2.csv: question_id user_id
task_T/sample_model_item_response.py <
    data/metadata/answer_metadata_task_1_2.csv ?: answer_id_or_empty group_id* quiz_id*
task_T/sample_model_gradient_boosting.py --features rates subjects students <
    data/metadata/student_metadata_task_1_2.csv ?: user_id gender* date_of_birth* premium_pupil*
    data/metadata/question_metadata_task_1_2.csv ?: question_id subject_list
    data/metadata/subject_metadata.csv ?: subject_id parent_id level
task_T/local_evaluation.py < data/test_input/valid_task_1_2.csv: question_id user_id predicted_T
    data/test_output/test_submission_task_T.csv ?: question_id user_id predicted_T
task_T/local_evaluation.py --submit_data test_submission_task_T.zip <
    data/test_output/test_submission_task_T.zip
task_T/local_evaluation.py --probabilities FILE < data/test_output/p_T.parquet
task_T/local_evaluation.py --phase public <
    data/test_data/test_private_answers_task_T.csv: question_id user_id
-m tools.check_submission FILE < submissions/submission_task_T.csv: question_id user_id predicted_T
task_3/sample_model_entropy.py < data/train_data/train_task_3_4.csv: learned_2 is_correct
    submission_templates/submission_task_3.csv: question_id
task_3/sample_model_confidence.py <
    data/metadata/answer_metadata_task_3_4.csv: answer_id_or_empty confidence group_id quiz_id
task_3/question_report.py --question 1 <
    data/metadata/question_metadata_task_3_4.csv ?: question_id subject_list
task_3/local_evaluation.py --phase public < submissions/submission_task_3.csv: question_id ranking
    data/test_data/quality_response_remapped_public.csv +: left right experts
    submission_templates/submission_task_3.csv: question_id
task_3/local_evaluation.py --phase public --submit_data submission_task_3.zip <
    submissions/submission_task_3.zip
-m tools.check_submission FILE < submissions/submission_task_3.csv: question_id ranking
task_4/local_data_split.py < data/train_data/train_task_3_4.csv: answer_columns
task_4/trainer/train_model.py < data/train_data/train_task_3_4.csv: learned_1
    data/metadata/question_metadata_task_3_4.csv ?+: question_id
task_4/numpy/local_evaluation.py --skip_curve < task_4/numpy/model_task_4_students.npy ?
    data/test_input/valid_task_4.csv: learned_2 is_correct is_target
    data/test_input/train_task_4.csv ?+: question_id user_id
-m tools.templates <
    data/test_data/test_private_answers_task_1.csv ?+: question_id user_id answer_id
@cloze/local_data_split.py < ./train_data/KCT_train_public.txt
@cloze/sample_model_frequent.py < ./train_data/KCT_test_public.txt
@cloze/sample_model_frequent.py --local < ./test_input/folds.csv: id fold
@cloze/local_evaluation.py < ./test_output/submission.csv: id ret
@cloze/check_submission.py FILE < ./test_output/submission.csv: id ret
@science_exam/sample_model_longest_option.py < ./train_data/test.csv: options
@science_exam/local_evaluation.py < ./train_data/train.csv: options answer
    ./test_output/submission.csv: id prediction
@science_exam/check_submission.py FILE < ./test_output/submission.csv: id prediction
@student_response/local_data_split.py < ./train_data/D0-3.xml ?
@student_response/sample_model_majority.py < ./test_input/folds.csv: id fold
@student_response/local_evaluation.py < ./test_output/submission.csv: id label
@student_response/check_submission.py FILE < ./test_output/submission.csv: id label
@debiasing/local_data_split.py < ./train_data/underexpose_train_click-0.csv ?+-: click
@debiasing/sample_model_popularity.py < ./train_data/underexpose_test_click-0.csv +-: click
    ./train_data/underexpose_test_qtime-0.csv -: user time
@debiasing/local_evaluation.py < ./test_input/debias_track_answer.csv ?-: phase user item degree
    ./test_output/submission.csv -: user items
@debiasing/check_submission.py FILE < ./test_output/submission.csv -: user items
"""
# Scripts that write nothing, or to their own folder.
WITHOUT_OUTPUT = ("check_submission", "trainer/")
EXPERTS = ("T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS")
# By the names in `common.schema`, and what files of the related challenges hold.
COLUMNS = {
    **{name.lower(): value for name, value in vars(schema).items() if isinstance(value, Column)},
    **{name: Column(name, TEXT) for name in ("id", "ret", "label", "answer")},
    "prediction": Column("prediction", TEXT, may_be_empty=True),
    **{name: Column(name, TEXT) for name in ("prompt", *"ABCDE")},
    "is_target": schema.target_column(),
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
    "experts": " ".join(f"{name}!" for name in EXPERTS),
    "click": "user item time",
    "options": "id~ prompt~ A~ B~ C~ D~ E~",
    "items": " ".join(f"item_{place}" for place in range(1, 51)),
}
COLUMNS |= {name: schema.expert_judgement(name) for name in EXPERTS}
COLUMNS |= {name: Column(name, high=9_999_999) for name in SEVERAL["items"].split()}


@dataclass(frozen=True)
class Input:
    """A file that a script reads, as the table says; its kind is the ending of its name."""

    script: str
    flags: str
    file: str
    kind: str
    marks: str
    columns: Mapping[Column, str]  # Each with its mark, or the end of its name.

    def run(self, kit: Path) -> Done:
        """Run the script in a kit."""
        return run_script([*self.script.split(), *self.flags.split()], kit=kit, cwd=kit)


def find_inputs() -> list[Input]:
    """Return every file that a script reads, once for each script."""
    table = "\n".join(
        f"{script} < {file.strip()}"
        for script, files in re.findall(r"(?m)^(\S.*) <(.*(?:\n    .*)*)", TABLE)
        for file in files.strip().splitlines()
    )
    table = re.sub(r"(@\w+/)(.*) \./", r"\1\2 \1data/", table)
    table = re.sub(r"FILE < ([^\s:]+)", r"\1 < \1", table).replace("@", "related_challenges/")
    rows = [row.replace("_T", f"_{task}") for row in table.splitlines() for task in "12"]
    pattern = r"(?m)^(.*?)( --.*)? < (\S+?)(?: ([?+-]+))?(?:: (.*))?$"
    found = []
    for script, flags, file, marks, names in re.findall(pattern, "\n".join(dict.fromkeys(rows))):
        if not any(word in script for word in WITHOUT_OUTPUT):
            flags += " --output_dir out"
        for name, several in SEVERAL.items():
            names = re.sub(rf"\b{name}\b", several, names)
        columns = {COLUMNS[word.rstrip("*~!")]: word[-1] for word in names.split()}
        found.append(Input(script, flags, file, Path(file).suffix[1:], marks, columns))
    return found


# What makes the files, after the samples of tasks and challenges.
PREPARED = """
task_T/local_data_split.py
task_T/sample_model_majority.py
task_T/sample_model_majority.py --local --probabilities data/test_output/p_T.parquet
task_3/sample_model_entropy.py
task_4/local_data_split.py
task_4/numpy/train_model.py --local
related_challenges/cloze/sample_model_frequent.py --local
related_challenges/science_exam/sample_model_longest_option.py --test_data train.csv
related_challenges/student_response/sample_model_majority.py
related_challenges/debiasing/sample_model_popularity.py --local
"""


def prepare(kit: Path) -> None:
    """Make every file that a script reads, well formed, in a kit with tiny data."""
    commands = [
        str(path.relative_to(kit))
        for name in ("generate_sample.py", "local_data_split.py")
        for path in kit.glob(f"related_*/*/{name}")
    ]
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
    # For what else zips and probabilities may be see `test_zips.py` and `test_probabilities.py`.
    kinds = {"csv": damage_csv, "txt": damage_json_lines, "xml": damage_xml, "npy": damage_array}
    cases = dict(damage_bytes(input, content))
    if input.kind in kinds:
        cases |= dict(kinds[input.kind](input, content))
    found: dict[str, Place] = {
        name: partial(Path.write_bytes, data=data) for name, data in cases.items()
    }
    found["a folder"] = Path.mkdir
    if "?" not in input.marks:
        found["missing"] = lambda path: None
    if hasattr(os, "mkfifo"):
        # Who opened it would wait for ever.
        found["a pipe"] = os.mkfifo
        found["a link to nothing"] = lambda path: path.symlink_to("nowhere")
    return found


def damage_bytes(input: Input, content: bytes) -> Cases:
    """Return what any file may turn out to be, whatever its name says."""
    yield "empty", b""
    yield "zeros", bytes(len(content))
    yield "a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))
    yield "a page", b"<html><body>404</body></html>"
    yield "packed by gzip", gzip.compress(content)
    for encoding in ("UTF-16", "UTF-32") if input.kind in ("csv", "txt") else ():
        yield encoding, content.decode().encode(encoding)
    # Of a CSV only the row at its end shows it.
    for share in () if input.kind == "csv" else (0.05, 0.5, 0.95, 0.99):
        yield f"cut off at {share:.0%}", content[: int(share * len(content))]


# What no column of numbers may hold.
BAD_NUMBERS = {
    "a word": b"abc", "hexadecimal": b"0x2", "underscore": b"1_0", "NaN": b"NaN",
    "infinity": b"inf", "#N/A": b"#N/A", "too large an exponent": b"1e400",
    "5,000 digits": b"9" * 5000, "two numbers": b"1 2", "wide digits": "１".encode(),
    "a comma within": b'"1,0"', "a NUL byte": b"1\x00", "half a UTF-8 character": b"1\xe2\x82",
    "control characters": b"\x1b[31m\x07\x08\x0b1\x7f", "a line end in quotes": b'"1\n2"',
    "six million characters": b"y" * 6_000_000, "a quotation mark": b'1"', "negative": b"-1",
    "beyond 32 bits": b"2147483648", "beyond 64 bits": b"18446744073709551617",
}  # fmt: skip
DEEP = "[" * 200_000


def bad_cells(column: Column, free: bool) -> dict[str, bytes]:
    """Return contents that a column may not have, by name."""
    found = {} if column.may_be_empty else {"nothing": b"", "blanks": b" \t", "quotes": b'""'}
    if column.dtype == TEXT:
        found |= {"no UTF-8": b"\xff\xfe", "a NUL byte": b"a\x00"}
        if not free:
            names = ("a word", "control characters", "six million characters")
            found |= {name: BAD_NUMBERS[name] for name in names}
            found["5,000 digits in a list"] = b'"[' + b"9" * 5000 + b']"'
            found["nested deeply"] = f'"{DEEP}"'.encode()
        return found
    found |= BAD_NUMBERS
    if not column.is_boolean:
        found["True"] = b"True"
    if column.whole:
        found["a fraction"] = b"1.5"
    if column.high < schema.INT32_MAX:
        found["above the range"] = str(column.high + 1).encode()
    if column.low > 0:
        found["below the range"] = str(column.low - 1).encode()
    return found


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
    line = lines[place].rstrip(b"\n")
    before, after = top + b"".join(lines[:place]), b"".join(lines[place + 1 :])

    def with_line(line: bytes) -> bytes:
        return before + line + b"\n" + after

    # Of the many items of the debiasing challenge the first ones.
    for column, mark in [*input.columns.items()][:9]:
        at = header.index(column.name)
        marked = write_row([*rows[place][:at], "<here>", *rows[place][at + 1 :]]).rstrip(b"\n")
        for name, cell in bad_cells(column, mark == "~").items():
            yield f"{column.name}: {name}", with_line(marked.replace(b"<here>", cell))
        if has_header and mark not in "*!":
            renamed = [f"{value}?" if value == column.name else value for value in header]
            yield f"{column.name}: column renamed", write_row(renamed) + body
        if has_header and mark != "*":
            twice = write_row([*header, column.name]) + body.replace(b"\n", b",1\n")
            yield f"{column.name}: column twice", twice
    yield "a cell too many", with_line(line + b",1")
    yield "a long row that is no UTF-8", with_line(line + b",\xff" * 9)
    yield "an open quotation mark", with_line(b'"' + line)
    yield "no rows", top or b"\n"
    yield "all in one row", (top + body).replace(b"\n", b",")
    yield "semicolons", (top + body).replace(b"," if len(header) > 1 else b"\n", b";")
    if len(header) > 1:
        yield "a cell too few", with_line(write_row(rows[place][:-1]).strip())
        yield "cut off in a row", before + line.split(b",")[0]
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
    yield "an open quotation mark in the header", b'"' + top + body


def write_row(row: Sequence[str]) -> bytes:
    """Write a row of a CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue().encode()


OTHER_VALUES: dict[str, object] = {
    "null": None, "a number": 7, "negative": -1, "a fraction": 0.5, "true": True,
    "a huge number": 10**400, "NaN": math.nan, "infinity": math.inf,
    "a text": 'x"><script>', "control characters": "\x1b[2J",
    "an open quotation mark": "python 'x", "half a character": "[MASK] \ud800", "a list": [],
    "a list of numbers": [1], "a list of half a character": ["\udfff"], "an object": {},
}  # fmt: skip


def other_values(
    record: dict[str, Any], valid: dict[str, set[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a JSON object without each of its keys and with other values, where not valid."""
    for key, right in record.items():
        wrong = {name: {**record, key: value} for name, value in OTHER_VALUES.items()}
        wrong["missing"] = {name: value for name, value in record.items() if name != key}
        for name, value in other_values(right, valid) if isinstance(right, dict) else ():
            wrong[name] = {**record, key: value}
        for name, damaged in wrong.items():
            if name not in valid.get(key, ()):
                yield f"{key}: {name}", damaged


def damage_object(record: dict[str, Any], valid: dict[str, set[str]]) -> Cases:
    """Return damage to a JSON object in a line."""
    for name, other in other_values(record, valid):
        yield name, json.dumps(other).encode()
    right = json.dumps(record)
    for name, text in {
        "a number of 5,000 digits": f'{right[:-1]}, "x": {"9" * 5000}}}', "a list": "[1, 2]",
        "nested deeply within": f'{right[:-1]}, "x": {DEEP}}}', "a NUL byte": "\0",
        "half a line": right[: len(right) // 2], "two objects": right + right,
    }.items():  # fmt: skip
        yield name, text.encode()
    yield "noise", b"\xff\xfe\x00\x01"


ANY_TEXT = {"a text", "control characters", "an open quotation mark"}


def damage_json_lines(input: Input, content: bytes) -> Cases:
    """Return damage to a file of the cloze test, one object in each line."""
    lines = content.splitlines()
    place = len(lines) // 2
    record = json.loads(lines[place])
    # What tells a query's kind may be anything; a file to be predicted needs no answers.
    everything = {"missing", *OTHER_VALUES}
    valid = {"qid": ANY_TEXT, "domain": everything, "NeedReasoning": everything}
    for name, line in damage_object(record, valid):
        yield name, b"\n".join([*lines[:place], line, *lines[place + 1 :]])
    yield "a line twice", b"\n".join([*lines, lines[0]])
    yield "only blank lines", b"\n\n\n"


def damage_record(content: bytes) -> Cases:
    """Return lines that are no result of the record."""
    record = json.loads(content)
    texts, numbers = {*ANY_TEXT, "half a character"}, {"null", "a number", "a fraction", "negative"}
    option = {"missing", *texts, "true", "a list", "a list of half a character"}
    valid = {
        **dict.fromkeys(("rules", "model", "command", "submission", "script"), texts),
        **dict.fromkeys(record["options"], option),
        **{key: {"missing", *numbers} for key in record["parts"]},
        **{key: {"an object"} for key in ("parts", "options")},
        "revision": {"null", *texts},
        "simulated": {"true"},
        "task": {"a number"},
        "seed": {"a number", "null"},
        "score": {"a fraction"},
        "seconds": numbers,
    }
    yield from damage_object(record, valid)


def damage_xml(input: Input, content: bytes) -> Cases:
    """Return damage to a question of student response analysis."""
    body = re.sub(r"<\?xml.*?\?>", "", content.decode())
    for encoding in ("nothing", "shift_jis", "utf-7", "rot13", "utf-32", "\x00"):
        start = f'<?xml version="1.0" encoding="{encoding}"?>'
        yield f"encoding {encoding!r}", (start + body).encode()
    # What else is well-formed XML but no question, see `related_challenges/test_contract.py`.
    yield "empty id", body.replace(" id=", ' id="" name=', 1).encode()
    entities = (f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE question [<!ENTITY e0 "ha">{"".join(entities)}]>{body}'
    yield "a bomb of entities", bomb.replace("<questionText>", "<questionText>&e11;").encode()


def damage_array(input: Input, content: bytes) -> Cases:
    """Return damage to an array of UserIds in NumPy's format."""
    ids = np.load(io.BytesIO(content))
    arrays = {kind: ids.astype(kind) for kind in ("U", "f8", "O", "M8[s]", "?")}
    arrays |= {"a number": np.asarray(7), "two columns": ids[None], "nothing": ids[:0]}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        yield name, buffer.getvalue()
    yield "huge shape", content.replace(b"(%d,)" % len(ids), b"(9" + b"9" * 15 + b",)")
    header = b"{'descr': __import__('os'),".ljust(53) + b"\n"
    yield "a header that calls", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    yield "unknown version", b"\x93NUMPY\x09\x09" + content[8:]


# ---- What must happen -------------------------------------------------------------------------


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of everything in a folder."""
    found = {str(path): path.lstat() for path in folder.rglob("*")}
    return {path: (status.st_size, status.st_mtime_ns) for path, status in found.items()}


def judge(input: Input, done: Done, is_unchanged: bool) -> str:
    """Return what a script did with a malformed file; nothing where it refused it as it must."""
    lines = done.stderr.splitlines()
    # The checker of submissions names every fault, in a line each.
    is_one_line = len(lines) == 1 or "check_submission" in input.script
    is_readable = all(
        line.startswith("error: ") and line.isprintable() and len(line) < 1000 for line in lines
    )
    is_named = Path(input.file).name in "".join(lines[:1])
    is_scored = "score" in re.sub(r"\S*score\S*/\S*", "", done.stdout)
    if done.returncode == 2 and is_one_line and is_readable and is_named and not is_scored:
        return "" if is_unchanged else "was refused, but files were written"
    return f"{done.returncode} {done.stdout[-300:]!r} {done.stderr[-900:]!r}"


def try_out(input: Input, place: Place, kit: Path) -> str:
    """Put a malformed file into its place, run the script, put the right one back; judge that."""
    path = kit / input.file
    shutil.rmtree(kit / "out", ignore_errors=True)
    right = path.replace(path.with_name(f"{path.name}.right"))
    try:
        place(path)
        before = snapshot(kit)
        if hasattr(signal, "alarm"):  # Nothing may take more than a minute.
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.alarm(60)
        done = input.run(kit)
        return judge(input, done, before == snapshot(kit))
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        right.replace(path)
