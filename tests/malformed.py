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
import runpy
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    # Python puts this folder first, and tests/common/ would hide the kit's own.
    sys.path.remove(str(Path(__file__).resolve().parent))

from common import layout, schema
from common.schema import TEXT, Column

ROOT = Path(__file__).resolve().parents[1]

Place = Callable[[Path], None]


# ---- Running a script in this process ---------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """What a script did: exit code, or 1 for a traceback, and what it printed."""

    code: int
    stdout: str
    stderr: str


def run_script(script: Path, flags: Sequence[object]) -> Done:
    """Run a script as from the command line, without a new process, which takes 50 times as long.

    The modules beside the script are imported again, since several folders have the same names.
    """
    siblings = [path.stem for path in script.parent.glob("*.py")]
    if (script.parent / "__init__.py").exists():
        siblings = []
    hidden = {name: sys.modules.pop(name) for name in siblings if name in sys.modules}
    argv, search_path, handler = sys.argv, sys.path[:], signal.getsignal(signal.SIGTERM)
    sys.argv, sys.path[:0] = [str(script), *map(str, flags)], [str(script.parent)]
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    sys.argv, sys.path[:] = argv, search_path
    signal.signal(signal.SIGTERM, handler)
    for name in siblings:
        sys.modules.pop(name, None)
    sys.modules.update(hidden)
    return Done(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue())


# ---- What the scripts read --------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """A file that a script reads.

    Attributes
    ----------
    script
        Seen from the kit's folder, or from the working folder where it starts with ``./``.
    flags
        With ``{w}`` for the working folder.
    file
        Seen from the working folder.
    kind
        How it is written: csv, zip, jsonl, xml, npy, parquet, marker or record.
    columns
        Of a CSV: those that the script reads, with the values that they may hold.
    free
        Columns of text in which any text is valid.
    spare
        Columns that the script reads, but does without.
    header
        Whether a CSV has one.
    distinct
        Whether a row that appears twice is wrong.
    optional
        Whether the script does without the file where it is missing.
    member
        Name of the CSV in a zip.
    """

    script: str
    flags: str
    file: str
    kind: str = "csv"
    columns: tuple[Column, ...] = ()
    free: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    header: bool = True
    distinct: bool = False
    optional: bool = False
    member: str = ""

    @property
    def name(self) -> str:
        """Which script reads which file."""
        return f"{self.script.removeprefix('./')} < {self.file}"

    def run(self, folder: Path) -> Done:
        """Run the script in the working folder."""
        script = folder / self.script if self.script.startswith("./") else ROOT / self.script
        return run_script(script, self.flags.format(w=folder).split())


QUESTION, USER, ANSWER = schema.QUESTION_ID, schema.USER_ID, schema.ANSWER_ID
RIGHT, KEY, OPTION = schema.IS_CORRECT, schema.CORRECT_ANSWER, schema.ANSWER_VALUE
OPTIONS = (QUESTION, USER, KEY, OPTION)
EXPERTS = tuple(schema.expert_judgement(name) for name in schema.EXPERT_NAMES)
CLICK = tuple(
    Column(name, high=9_999_999) if name != "time" else Column(name, "float64", 0, 1, whole=False)
    for name in ("user_id", "item_id", "time")
)
ITEMS = (CLICK[0], *(Column(f"item_{place}", high=9_999_999) for place in range(1, 51)))
ID, FOLD = Column("id", TEXT), Column("fold", high=9_999)


def find_inputs() -> list[Input]:
    """Return every file that a script reads, once for each script."""
    train, test = "data/train_data", "data/test_data"
    inputs = []
    for task, column in schema.PREDICTED_COLUMN.items():
        folder, answers = f"task_{task}", f"{train}/{layout.TRAIN_TASK_1_2}"
        learned = (QUESTION, USER, RIGHT) if task == 1 else OPTIONS
        inputs.append(
            Input(
                f"{folder}/local_data_split.py",
                f"--input_dir {{w}}/{train} --output_dir {{w}}/out",
                answers,
                columns=schema.ANSWER_COLUMNS,
                spare=("AnswerId",),
                distinct=True,
            )
        )
        template = f"data/submission_templates/{layout.TEMPLATE_TASK_1_2}"
        model = (
            f"{folder}/sample_model_majority.py",
            f"--input_dir {{w}}/{train} --submission_template_dir {{w}}/data/submission_templates "
            "--output_dir {w}/out",
        )
        inputs += [
            Input(*model, answers, columns=learned, distinct=True),
            Input(*model, template, columns=(QUESTION, USER), distinct=True),
        ]
        context = (
            f"{folder}/sample_model_item_response.py",
            f"{model[1]} --metadata_dir {{w}}/data/metadata",
        )
        told = f"data/metadata/{layout.ANSWER_METADATA_TASK_1_2}"
        quizzes = (schema.ANSWER_ID_OR_EMPTY, schema.GROUP_ID, schema.QUIZ_ID)
        boosting = (
            f"{folder}/sample_model_gradient_boosting.py",
            f"{context[1]} --features rates subjects students",
        )
        about = f"data/metadata/{layout.STUDENT_METADATA_TASK_1_2}"
        known = (USER, schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL)
        subjects = f"data/metadata/{layout.QUESTION_METADATA_TASK_1_2}"
        tree = f"data/metadata/{layout.SUBJECT_METADATA}"
        inputs += [
            Input(*context, told, columns=quizzes, spare=("GroupId", "QuizId"), distinct=True,
                  optional=True),
            Input(*boosting, about, columns=known, distinct=True, optional=True,
                  spare=("Gender", "DateOfBirth", "PremiumPupil")),
            Input(*boosting, subjects, columns=(QUESTION, schema.SUBJECT_LIST), distinct=True,
                  optional=True),
            Input(*boosting, tree, columns=(schema.SUBJECT_ID, schema.PARENT_ID, schema.LEVEL),
                  distinct=True, optional=True),
        ]  # fmt: skip
        pair = (QUESTION, USER, column)
        local = layout.local_submission_name(task)
        script = f"{folder}/local_evaluation.py"
        there = "--input_dir {w}/data/test_input --output_dir {w}/out"
        flags = f"{there} --submission_dir {{w}}/data/test_output"
        zip_name = f"{Path(local).stem}.zip"
        valid = f"data/test_input/{layout.VALID_TASK_1_2}"
        inputs += [
            Input(script, flags, valid, columns=pair, distinct=True),
            Input(script, flags, f"data/test_output/{local}", columns=pair, distinct=True),
            Input(
                script, f"{flags} --submit_data {zip_name}", f"data/test_output/{zip_name}", "zip",
                pair, member=layout.submission_name(task),
            ),
            Input(script, f"{flags} --probabilities {{w}}/data/test_output/p{task}.parquet",
                  f"data/test_output/p{task}.parquet", "parquet"),
        ]  # fmt: skip
        submitted = f"submissions/{layout.submission_name(task)}"
        flags = (
            f"--phase public --input_dir {{w}}/{test} --submission_dir {{w}}/submissions "
            "--output_dir {w}/out"
        )
        inputs += [
            Input(script, flags, f"{test}/{layout.test_answers_name(task, phase)}",
                  columns=pair, distinct=True)
            for phase in layout.PHASES
        ]  # fmt: skip
        checker = (
            "common/check_submission.py",
            f"{{w}}/{submitted} --input_dir {{w}}/{train} "
            "--submission_template_dir {w}/data/submission_templates",
        )
        inputs += [
            Input(script, flags, submitted, columns=pair, distinct=True),
            Input(*checker, submitted, columns=pair, distinct=True),
            Input(*checker, template, columns=(QUESTION, USER), distinct=True),
        ]
    return [*inputs, *inputs_of_task_3(), *inputs_of_task_4(), *related_inputs()]


def inputs_of_task_3() -> list[Input]:
    """Return the files that task 3's scripts read."""
    answers = f"data/train_data/{layout.TRAIN_TASK_3_4}"
    told = f"data/metadata/{layout.ANSWER_METADATA_TASK_3_4}"
    subjects = f"data/metadata/{layout.QUESTION_METADATA_TASK_3_4}"
    template = f"data/submission_templates/{layout.TEMPLATE_TASK_3}"
    judged = f"data/test_data/{layout.expert_judgements_name('public')}"
    circumstances = (schema.ANSWER_ID_OR_EMPTY, schema.CONFIDENCE, schema.GROUP_ID, schema.QUIZ_ID)
    lists = (QUESTION, schema.SUBJECT_LIST)
    templates = "--submission_template_dir {w}/data/submission_templates"
    place = f"--input_dir {{w}}/data/train_data {templates} --output_dir {{w}}/out"
    read = f"{place} --metadata_dir {{w}}/data/metadata"
    entropy = ("task_3/sample_model_entropy.py", place)
    confidence = ("task_3/sample_model_confidence.py", read)
    average = ("task_3/sample_model_rank_average.py", read)
    report = ("task_3/question_report.py", f"{read} --submission_dir {{w}}/submissions")
    score = (
        "task_3/local_evaluation.py",
        f"--input_dir {{w}}/data/test_data --submission_dir {{w}}/submissions {templates} "
        "--output_dir {w}/out",
    )
    submitted = f"submissions/{layout.submission_name(3)}"
    zipped = submitted.replace(".csv", ".zip")
    ranked = (QUESTION, schema.RANKING)
    return [
        Input(*entropy, answers, columns=(*OPTIONS, RIGHT), distinct=True),
        Input(*entropy, template, columns=(QUESTION,), distinct=True),
        Input("task_3/sample_model_random.py", f"{templates} --output_dir {{w}}/out", template,
              columns=(QUESTION,), distinct=True),
        Input(*confidence, answers, columns=(*OPTIONS, ANSWER), distinct=True),
        Input(*confidence, told, columns=circumstances, distinct=True),
        Input(*average, answers, columns=OPTIONS, distinct=True),
        Input(*report, subjects, columns=lists, distinct=True, optional=True),
        Input(*score, judged, columns=(schema.LEFT, schema.RIGHT, *EXPERTS)),
        Input(*score, template, columns=(QUESTION,), distinct=True),
        Input(*score, submitted, columns=ranked, distinct=True),
        Input(score[0], f"{score[1]} --submit_data submission_task_3.zip", zipped, "zip", ranked,
              member=layout.submission_name(3)),
        Input("common/check_submission.py", f"{{w}}/{submitted} {templates}", submitted,
              columns=ranked, distinct=True),
    ]  # fmt: skip


def inputs_of_task_4() -> list[Input]:
    """Return the files that task 4's scripts, the templates and the scoreboard read."""
    answers = f"data/train_data/{layout.TRAIN_TASK_3_4}"
    subjects = f"data/metadata/{layout.QUESTION_METADATA_TASK_3_4}"
    evaluation = (
        "./numpy/local_evaluation.py",
        "--input_dir {w}/data/test_input --output_dir {w}/out --skip_curve",
    )
    train = ("./trainer/train_model.py", "--input_dir {w}/data/train_data")
    templates = ("common/templates.py", "--input_dir {w}/data --output_dir {w}/out")
    split = ("task_4/local_data_split.py", "--input_dir {w}/data/train_data --output_dir {w}/out")
    masks = (*schema.ANSWER_COLUMNS[:2], *schema.ANSWER_COLUMNS[3:], schema.is_target())
    return [
        Input(*split, answers, columns=schema.ANSWER_COLUMNS, spare=("AnswerId",), distinct=True),
        Input(*train, answers, columns=(QUESTION, USER, RIGHT), distinct=True),
        Input(*train, subjects, columns=(QUESTION,), optional=True),
        Input(*evaluation, f"data/test_input/{layout.VALID_TASK_4}", columns=masks, distinct=True),
        Input(*evaluation, f"data/test_input/{layout.TRAIN_TASK_4}", columns=(QUESTION, USER),
              optional=True),
        Input(*evaluation, subjects, columns=(QUESTION,), optional=True),
        Input(*evaluation, "numpy/model_task_4_students.npy", "npy", optional=True),
        Input(*templates, f"data/test_data/{layout.test_answers_name(1, 'public')}",
              columns=(QUESTION, USER, ANSWER), optional=True),
        Input(*templates, f"data/test_data/{layout.test_answers_name(1, 'private')}",
              columns=(QUESTION, USER, ANSWER), optional=True),
        Input("common/scoreboard.py", "--results {w}/record/results.jsonl", "record/results.jsonl",
              "record"),
    ]  # fmt: skip


def related_inputs() -> list[Input]:
    """Return the files that the scripts of the related challenges read."""
    inputs = []
    at = "--input_dir {w}/NAME/train_data --output_dir {w}/out"
    scored = f"{at} --submission_dir {{w}}/NAME/test_output"
    folds = "--submission_template_dir {w}/NAME/test_input"

    def add(
        challenge: str, script: str, flags: str, file: str, *what: object, **more: object
    ) -> None:
        script = f"related_challenges/{challenge}/{script}.py"
        flags = flags.replace("NAME", challenge)
        inputs.append(Input(script, flags, f"{challenge}/{file}", *what, **more))  # type: ignore[arg-type]

    known, test = "train_data/KCT_train_public.txt", "train_data/KCT_test_public.txt"
    add("cloze", "local_data_split", at, known, "jsonl")
    add("cloze", "sample_model_frequent", at, known, "jsonl")
    add("cloze", "sample_model_frequent", at, test, "jsonl")
    add("cloze", "sample_model_frequent", f"{at} --local {folds}", "test_input/folds.csv",
        columns=(ID, FOLD), distinct=True)  # fmt: skip
    add("cloze", "local_evaluation", scored, known, "jsonl")
    add("cloze", "local_evaluation", scored, "test_output/submission.csv",
        columns=(ID, Column("ret", TEXT)), distinct=True)  # fmt: skip

    texts = tuple(Column(name, TEXT) for name in ("prompt", "A", "B", "C", "D", "E"))
    free = tuple(column.name for column in texts)
    add("science_exam", "sample_model_longest_option", at, "train_data/test.csv",
        columns=(ID, *texts), free=("id", *free), distinct=True)  # fmt: skip
    answered = (ID, *texts, Column("answer", TEXT))
    add("science_exam", "local_evaluation", scored, "train_data/train.csv",
        columns=answered, free=("id", *free), distinct=True)  # fmt: skip
    add("science_exam", "local_evaluation", scored, "test_output/submission.csv",
        columns=(ID, Column("prediction", TEXT)), distinct=True)  # fmt: skip

    question, model = "train_data/D0-3.xml", "sample_model_majority"
    add("student_response", "local_data_split", at, question, "xml", optional=True)
    add("student_response", model, f"{at} {folds}", question, "xml", optional=True)
    add("student_response", model, f"{at} {folds}", "test_input/folds.csv",
        columns=(ID, FOLD), distinct=True)  # fmt: skip
    add("student_response", "local_evaluation", scored, question, "xml", optional=True)
    add("student_response", "local_evaluation", scored, "test_output/submission.csv",
        columns=(ID, Column("label", TEXT)), distinct=True)  # fmt: skip
    add("student_response", "generate_sample", "--output_dir {w}/NAME", "SIMULATED.json", "marker")

    scored = scored.replace("train_data", "test_input")
    asked = (CLICK[0], CLICK[2])
    answered = (Column("phase_id", high=9), *CLICK[:2], Column("item_degree"))
    add("debiasing", "local_data_split", at, "train_data/underexpose_train_click-0.csv",
        columns=CLICK, header=False, optional=True)  # fmt: skip
    for name, columns in (("train_click", CLICK), ("test_click", CLICK), ("test_qtime", asked)):
        add("debiasing", "sample_model_popularity", at, f"train_data/underexpose_{name}-0.csv",
            columns=columns, header=False, distinct=name == "test_qtime",
            optional=name == "train_click")  # fmt: skip
    add("debiasing", "local_evaluation", scored, "test_input/debias_track_answer.csv",
        columns=answered, header=False, distinct=True)  # fmt: skip
    add("debiasing", "local_evaluation", scored, "test_output/submission.csv",
        columns=ITEMS, header=False, distinct=True)  # fmt: skip

    checked = "--input_dir {w}/NAME/train_data {w}/NAME/test_output/submission.csv"
    for name, column in (
        ("cloze", "ret"), ("science_exam", "prediction"), ("student_response", "label"),
    ):  # fmt: skip
        add(name, "check_submission", checked, "test_output/submission.csv",
            columns=(ID, Column(column, TEXT)), distinct=True)  # fmt: skip
    add("debiasing", "check_submission", checked, "test_output/submission.csv",
        columns=ITEMS, header=False, distinct=True)  # fmt: skip
    return inputs


def prepare(folder: Path) -> None:
    """Make every file that a script reads, well formed, in a new folder.

    Raises
    ------
    RuntimeError
        If a script fails.
    """

    def run(script: str, flags: str) -> None:
        path = folder / script if script.startswith("./") else ROOT / script
        done = run_script(path, flags.format(w=folder).split())
        if done.code:
            raise RuntimeError(f"{script}: {done.stdout}{done.stderr}")

    run("data/generate_sample.py", "--size tiny --output_dir {w}/data")
    templates = "--submission_template_dir {w}/data/submission_templates"
    train = "--input_dir {w}/data/train_data"
    for task in (1, 2):
        run(f"task_{task}/local_data_split.py", f"{train} --output_dir {{w}}/data/test_input")
        model = f"task_{task}/sample_model_majority.py"
        run(model, f"{train} {templates} --output_dir {{w}}/submissions")
        run(
            model,
            "--input_dir {w}/data/test_input --output_dir {w}/data/test_output "
            f"--output_file {layout.local_submission_name(task)} --submission_template_dir "
            f"{{w}}/data/test_input --submission_template_file {layout.LOCAL_TEMPLATE_TASK_1_2} "
            f"--probabilities {{w}}/data/test_output/p{task}.parquet",
        )
    run("task_3/sample_model_entropy.py", f"{train} {templates} --output_dir {{w}}/submissions")
    run("task_4/local_data_split.py", f"{train} --output_dir {{w}}/data/test_input")
    ignored = shutil.ignore_patterns("__pycache__", "model_task_4*")
    for name in ("numpy", "trainer"):
        shutil.copytree(ROOT / "task_4/numpy", folder / name, ignore=ignored)
    run("./numpy/train_model.py", "--local --input_dir {w}/data/test_input")
    run(
        "task_1/local_evaluation.py",
        "--input_dir {w}/data/test_input --submission_dir {w}/data/test_output "
        "--output_dir {w}/record",
    )
    model_of = {
        "cloze": "frequent",
        "science_exam": "longest_option",
        "student_response": "majority",
        "debiasing": "popularity",
    }
    for name, model in model_of.items():
        scripts = f"related_challenges/{name}"
        at = f"--input_dir {{w}}/{name}/train_data --output_dir {{w}}/{name}"
        run(f"{scripts}/generate_sample.py", f"--output_dir {{w}}/{name}")
        if name != "science_exam":
            run(f"{scripts}/local_data_split.py", f"{at}/test_input")
        flags = f"{at}/test_output"
        if name == "science_exam":
            flags += " --test_data train.csv"
        elif name == "debiasing":
            flags += f" --local --test_dir {{w}}/{name}/test_input"
        else:
            flags += f" --submission_template_dir {{w}}/{name}/test_input"
            flags += " --local" if name == "cloze" else ""
        run(f"{scripts}/sample_model_{model}.py", flags)
    # As the user's own files: beside a stamp, other contents are refused as those of other data.
    for kind in ("split_*.json", "template_*.json", "folds.json"):
        for stamp in folder.rglob(kind):
            stamp.unlink()


# ---- Damage -----------------------------------------------------------------------------------


def malform(input: Input, content: bytes) -> dict[str, Place]:
    """Return all damage to a file, by name: functions that put a malformed file at a path.

    Parameters
    ----------
    input
        What the file is.
    content
        The file, well formed.
    """
    kinds: dict[str, Callable[[Input, bytes], Iterator[tuple[str, bytes]]]] = {
        "csv": damage_csv,
        "zip": damage_zip,
        "jsonl": damage_json_lines,
        "xml": damage_xml,
        "npy": damage_array,
        "parquet": damage_probabilities,
        "marker": damage_marker,
        "record": damage_record,
    }

    def writer(damaged: bytes) -> Place:
        return lambda path: void(path.write_bytes(damaged))

    found = {name: writer(damaged) for name, damaged in kinds[input.kind](input, content)}
    if input.kind not in ("marker", "record"):
        others = {
            "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)),
            "zeros": bytes(len(content)),
            "packed by gzip": gzip.compress(content),
            "noise": np.random.default_rng(0).bytes(4096),
        }
        found |= {name: writer(damaged) for name, damaged in others.items()}
        found["a folder"] = lambda path: path.mkdir()
        found["empty"] = writer(b"")
        if not input.optional:
            found["missing"] = lambda path: None
        if hasattr(os, "mkfifo"):
            found["a pipe"] = lambda path: os.mkfifo(path)
            found["a link to nothing"] = lambda path: path.symlink_to("nowhere")
            found["links in a circle"] = lambda path: path.symlink_to(path.name)
    return found


def void(_: object) -> None:
    """Return nothing."""


# What no column of numbers may hold.
BAD_NUMBERS = {
    "a word": b"abc",
    "hexadecimal": b"0x2",
    "HEXADECIMAL": b"0X2",
    "binary": b"0b1",
    "octal": b"0o1",
    "underscore": b"1_0",
    "NaN": b"NaN",
    "infinity": b"inf",
    "too large an exponent": b"1e400",
    "5,000 digits": b"9" * 5000,
    "cut in the exponent": b"1e",
    "two signs": b"--1",
    "two numbers": b"1 2",
    "two points": b"1.2.3",
    "a comma within": b'"1,0"',
    "wide digits": "１".encode(),
    "Arabic digits": "١".encode(),
    "a fraction sign": "½".encode(),
    "None": b"None",
    "#N/A": b"#N/A",
    "a NUL byte": b"1\x00",
    "a NUL byte in front": b"\x001",
    "only a NUL byte": b"\x00",
    "no UTF-8": b"\xff",
    "half a UTF-8 character": b"1\xe2\x82",
    "control characters": b"\x1b[31m\x07\x08\x0b1\x7f",
    "a line end in quotes": b'"1\n2"',
    "direction marks": "\u202e1\u2028".encode(),
    "a million characters": b"y" * 1_000_000,
    "six million characters": b"y" * 6_000_000,
    "a quotation mark": b'1"',
    "markup": b"<script>alert(1)</script>",
    "negative": b"-1",
    "beyond 32 bits": b"2147483648",
    "beyond 64 bits": b"18446744073709551617",
}


def bad_cells(column: Column, free: bool) -> Iterator[tuple[str, bytes]]:
    """Return contents that a column may not have, by name."""
    if not column.may_be_empty:
        yield "nothing", b""
        yield "blanks", b" \t"
        yield "empty quotes", b'""'
    if column.dtype == TEXT:
        yield "no UTF-8", b"\xff\xfe"
        yield "a NUL byte", b"a\x00"
        if not free:
            for name in ("a word", "control characters", "a million characters", "markup"):
                yield name, BAD_NUMBERS[name]
            yield "5,000 digits in a list", b'"[' + b"9" * 5000 + b']"'
            yield "nested deeply", b'"' + b"[" * 200_000 + b'"'
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


def damage_csv(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to a CSV: cells, rows, header, the whole file."""
    text = content.decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    header = rows.pop(0) if input.header else [column.name for column in input.columns]
    lines = [write_row(row) for row in rows]
    top = [write_row(header)] if input.header else []

    def join(lines: Sequence[bytes]) -> bytes:
        return b"".join([*top, *lines])

    # Late in the file, so that rows before it are read well.
    place = len(lines) * 3 // 4

    def with_line(line: bytes) -> bytes:
        return join([*lines[:place], line, *lines[place + 1 :]])

    for column in input.columns if len(input.columns) < 20 else input.columns[:3]:
        at = header.index(column.name)
        for name, cell in bad_cells(column, column.name in input.free):
            cells = [quoted(value) for value in rows[place]]
            cells[at] = cell
            yield f"{column.name}: {name}", with_line(b",".join(cells) + b"\n")
        if input.header and column.name not in input.spare:
            renamed = [f"{value}?" if value == column.name else value for value in header]
            yield f"{column.name}: column renamed", write_row(renamed) + b"".join(lines)
            cut = [[value for i, value in enumerate(row) if i != at] for row in [header, *rows]]
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
        short = b",".join(quoted(value) for value in rows[place][:-1]) + b"\n"
        yield "a cell too few", with_line(short)
        yield "a short row that is no UTF-8", with_line(b"\xff\n")
        yield "cut off in a row", join([*lines[:place], lines[place].split(b",")[0]])
        for name, separator in (("semicolons", b";"), ("tabs", b"\t"), ("pipes", b"|")):
            cells = [[quoted(value) for value in row] for row in [header, *rows]]
            yield name, b"".join(separator.join(row) + b"\n" for row in cells)
    else:
        yield "semicolons", join(lines).replace(b"\n", b";\n")
    yield "an open quotation mark", with_line(b'"' + line + b"\n")
    yield "no rows", join([]) if top else b"\n"
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-32", text.encode("utf-32")
    yield "all in one row", join(lines).replace(b"\n", b",")
    if input.distinct:
        yield "a row twice", join([*lines, lines[0]])
    if "metadata" in input.file and SUBJECTS_READ & set(input.columns):
        yield "cut off in the last cell", join(lines)[:-2]
    if not input.header:
        yield "a header", write_row(header) + b"".join(lines)
        return
    yield "no header", b"".join(lines)
    yield "a blank line first", b"\n" + join(lines)
    yield "a long header", b"x" * 100_000 + b"," + join(lines)
    yield "a header of control characters", b"\x1b[2J\x00," * 50 + b"\n" + b"".join(lines)
    yield "a header that is no UTF-8", b"\xff" + join(lines)
    yield "an open quotation mark in the header", b'"' + join(lines)


# Files of which rows end with a text or an empty cell must end with a line end.
SUBJECTS_READ = {schema.SUBJECT_LIST, schema.CONFIDENCE}


def write_row(row: Sequence[str]) -> bytes:
    """Write a row of a CSV."""
    return b",".join(map(quoted, row)) + b"\n"


def quoted(value: str) -> bytes:
    """Write a cell, in quotes if it needs them."""
    if re.search('[",\r\n]', value):
        value = '"' + value.replace('"', '""') + '"'
    return value.encode()


def damage_zip(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to a zip that holds a CSV, and to the CSV in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        table = archive.read(input.member)
    name = input.member

    def pack(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for member, data in members.items():
                archive.writestr(zipfile.ZipInfo(member), data, method)
        return buffer.getvalue()

    good = pack({name: table})
    directory = good.rindex(b"PK\x01\x02")
    # Where directory and local header have: flags, method, checksum, size packed, size, name.
    fields = {"flags": (8, 6), "method": (10, 8), "checksum": (16, 14), "packed": (20, 18),
              "size": (24, 22), "name": (46, 30)}  # fmt: skip

    def state(zipped: bytes, field: str, value: bytes, both: bool = True) -> bytes:
        changed = bytearray(zipped)
        at, local = fields[field]
        start = zipped.rindex(b"PK\x01\x02")
        changed[start + at : start + at + len(value)] = value
        if both:
            changed[local : local + len(value)] = value
        return bytes(changed)

    def number(value: int) -> bytes:
        return struct.pack("<L", value)

    for label, damaged in damage_csv(input, table):
        if label.split(": ")[-1] in ("hexadecimal", "a NUL byte", "no UTF-8", "a fraction"):
            yield f"packed, {label}", pack({name: damaged})
    yield "no zip", table
    for share in (0.01, 0.3, 0.6, 0.9, 0.99):
        yield f"cut off at {share:.0%}", good[: int(share * len(good))]
    rng = np.random.default_rng(0)
    for place in rng.integers(30 + len(name) + 2, directory, 8).tolist():
        yield f"byte {place} changed", change(good, place)
    for label, method in (("LZMA", zipfile.ZIP_LZMA), ("BZ2", zipfile.ZIP_BZIP2)):
        packed = pack({name: table}, method)
        start, end = 30 + len(name), packed.rindex(b"PK\x01\x02")
        for place in ((start + end) // 2, end - 3, *range(start + 9, start + 12)):
            yield f"{label}, byte {place - start} changed", change(packed, place)
        yield (
            f"{label} with half its bytes",
            state(
                packed[: (start + end) // 2] + packed[end:], "packed", number((end - start) // 2)
            ),
        )
    yield "name that is no UTF-8", state(state(good, "flags", b"\x00\x08"), "name", b"\xff\xfe")
    yield "encrypted", state(good, "flags", b"\x01\x00")
    yield "unknown method", state(good, "method", b"\x63\x00")
    yield "another method", state(good, "method", b"\x00\x00")
    yield "wrong checksum", state(good, "checksum", number(12345))
    yield "wrong checksum in the directory", state(good, "checksum", number(12345), False)
    yield "larger size", state(good, "size", number(len(table) + 1))
    yield "larger size in the directory", state(good, "size", number(len(table) + 7), False)
    half = table[: table.index(b"\n", len(table) // 2) + 1]
    shorter = state(good, "size", number(len(half)))
    yield "smaller size", shorter
    yield "smaller size and its checksum", state(shorter, "checksum", number(zlib.crc32(half)))
    yield "size of 4 GB", state(good, "size", b"\xfe\xff\xff\xff")
    yield "packed size of 4 GB", state(good, "packed", b"\xfe\xff\xff\xff")
    bomb = pack({name: table + bytes(150 << 20)})
    yield "a bomb", bomb
    yield "a bomb that states a small size", state(bomb, "size", number(len(table)))
    checked = state(bomb, "size", number(len(table)))
    yield "a bomb that looks right", state(checked, "checksum", number(zlib.crc32(table)))
    packed = pack({name: table + bytes(150 << 20)}, zipfile.ZIP_BZIP2)
    yield "a bomb by BZ2", state(packed, "size", number(len(table)))
    yield "empty zip", pack({})
    yield "another name", pack({"mine.csv": table})
    yield "name of control characters", pack({"\x1b[2J\n.csv": table})
    yield "in a folder", pack({f"entry/{name}": table})
    yield "above its folder", pack({f"../{name}": table})
    yield "two files", pack({name: table, "readme.txt": b"hello"})
    yield "a zip in it", pack({name.replace(".csv", ".zip"): good})
    yield "nothing in it", pack({name: b""})


def change(content: bytes, place: int) -> bytes:
    """Change a byte."""
    return content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]


DEEP = "[" * 200_000


def damage_json_lines(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to a file of the cloze test, one object in each line."""
    lines = content.decode().splitlines()
    place = len(lines) // 2
    record = json.loads(lines[place])
    has_answers = "answer" in record and "test" not in input.file
    long = "9" * 5000

    def with_line(line: str | bytes) -> bytes:
        line = line.encode() if isinstance(line, str) else line
        before, after = ("\n".join(part).encode() for part in (lines[:place], lines[place + 1 :]))
        return b"\n".join([before, line, after])

    def with_value(key: str, value: object) -> bytes:
        return with_line(json.dumps({**record, key: value}))

    keys = ["qid", "query", *(["answer"] if has_answers else [])]
    for key in keys:
        yield (
            f"{key} missing",
            with_line(json.dumps({name: value for name, value in record.items() if name != key})),
        )
        values = {"null": None, "number": 7, "object": {}, "empty": [], "true": True}
        for name, value in values.items():
            yield f"{key}: {name}", with_value(key, value)
        if key != "answer":
            yield f"{key}: list", with_value(key, ["a"])
            yield f"{key}: empty text", with_value(key, "")
            yield f"{key}: half a character", with_value(key, f"[MASK] \ud800 {place}")
            control = with_value(key, "\x1b[2J")
            if key == "query":
                yield "query: no gap, control characters", control
        else:
            yield "answer: text", with_value(key, "a")
            yield "answer: numbers", with_value(key, [1])
            yield "answer: half a character", with_value(key, ["\udfff"])
    for key in ("domain", "NeedReasoning"):
        for name, value in {"object": {}, "list": ["a"], "a fraction": 0.5}.items():
            yield f"{key}: {name}", with_value(key, value)
        yield f"{key}: half a character", with_value(key, "\ud800")
    yield "number of 5,000 digits", with_line(f'{{"qid": {long}, "query": "[MASK]"}}')
    yield "elsewhere a number of 5,000 digits", with_line(lines[place][:-1] + f', "x": {long}}}')
    yield "nested deeply", with_line(DEEP)
    yield "nested deeply within", with_line(lines[place][:-1] + f', "x": {DEEP}')
    yield "cut off", with_line(lines[place])[: -len(lines[-1]) // 2]
    yield "no JSON", with_line("hello")
    yield "a list", with_line("[1, 2]")
    yield "a text", with_line('"text"')
    yield "two objects in a line", with_line(lines[place] + lines[place - 1])
    yield "no UTF-8", with_line(b'{"qid": "\xff"}')
    yield "UTF-16", content.decode().encode("utf-16")
    yield "a line twice", with_line(lines[place - 1])
    yield "a NUL byte", with_line("\0")
    yield "a million characters", with_line("y" * 1_000_000)
    yield "only blank lines", b"\n\n\n"


def damage_xml(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to a question of student response analysis."""
    text = content.decode()
    body = text.partition("?>")[2] if text.startswith("<?xml") else text
    for encoding in ("nothing", "shift_jis", "utf-7", "idna", "rot13", "base64", "utf-32", "\x00"):
        yield (
            f"encoding {encoding!r}",
            f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(),
        )
    for share in (0.1, 0.5, 0.95):
        yield f"cut off at {share:.0%}", content[: int(share * len(content))]
    yield "no UTF-8", content.replace(b"<studentAnswer ", b"\xff<studentAnswer ", 1)
    yield "another root", body.replace("question ", "quest\u202eion ").encode()
    yield "a page", b"<html><body>404</body></html>"
    for old, new, name in (
        ('accuracy="', 'accuracy="\u2028never', "unknown label"),
        ('accuracy="', 'speed="', "no label"),
        ("<studentAnswer id=", "<studentAnswer name=", "no id"),
        ("<studentAnswer id=", '<studentAnswer id="" name=', "empty id"),
        ("<questionText>", "<questionTxt/><questionTexts>", "tags that do not match"),
        ("<referenceAnswer ", "<reference ", "reference answers that do not match"),
    ):
        if old in body:
            yield name, body.replace(old, new, 1).encode()
    answer = re.search(r"<studentAnswer .*?</studentAnswer>", body, re.DOTALL)
    if answer:
        yield "an answer twice", body.replace(answer[0], answer[0] * 2, 1).encode()
    references = re.sub(r"<referenceAnswer\b.*?</referenceAnswer>", "", body, flags=re.DOTALL)
    yield "no reference answers", references.encode()
    without = re.sub(r"<questionText>.*?</questionText>", "", body, flags=re.DOTALL)
    yield "no question", without.encode()
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE question [<!ENTITY e0 "ha">{entities}]>'
    yield "a bomb of entities", (bomb + re.sub(r"(<questionText>)", r"\1&e11;", body)).encode()
    yield "unknown entity", body.replace("<questionText>", "<questionText>&what;").encode()
    yield "a control character", body.replace("<questionText>", "<questionText>\x1b").encode()


def damage_array(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to an array of UserIds in NumPy's format."""

    def save(array: object) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(array), allow_pickle=True)
        return buffer.getvalue()

    ids = np.load(io.BytesIO(content))
    yield "ids as text", save(ids.astype(str))
    yield "ids as bytes", save(ids.astype("S"))
    yield "ids as decimals", save(ids.astype(float))
    yield "ids as objects", save(ids.astype(object))
    yield "booleans", save(ids > 0)
    yield "complex", save(ids.astype(complex))
    yield "dates", save(ids.astype("datetime64[s]"))
    yield "records", save(np.array([(1, 2)], dtype=[("a", int), ("b", int)]))
    yield "a number", save(7)
    yield "two columns", save(ids.reshape(1, -1))
    yield "nothing", save(ids[:0])
    yield "UserIds as a text file", "\n".join(map(str, ids.tolist())).encode()
    for share in (0.05, 0.5, 0.99):
        yield f"cut off at {share:.0%}", content[: int(share * len(content))]
    yield "huge shape", content.replace(b"(%d,)" % len(ids), b"(9" + b"9" * 15 + b",)")
    for name, header in (
        ("no dictionary", b"7"), ("no literal", b"{'descr': __import__('os'),"),
        ("not closed", b"{'descr': '<i8', ("), ("quotes", b"'''"), ("tabs", b"\t\t  {\n\t1"),
    ):  # fmt: skip
        text = header.ljust(53) + b"\n"
        yield f"header: {name}", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    yield "unknown version", b"\x93NUMPY\x09\x09" + content[8:]


def damage_probabilities(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to probabilities, compressed columns."""
    right = pq.read_table(io.BytesIO(content))

    def save(table: pa.Table) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        return buffer.getvalue()

    for at, name in enumerate(right.column_names):
        values: list[Any] = right[name].to_pylist()
        is_id = name.endswith("Id")

        def with_values(values: Any, at: int = at, name: str = name) -> bytes:
            return save(right.set_column(at, name, pa.array(values)))

        for wrong in (-1, 2**40) if is_id else (-0.1, 1.1, float("nan"), float("inf"), 1e300):
            yield f"{name}: {wrong}", with_values([*values[:-1], wrong])
        yield f"{name}: empty", with_values([*values[:-1], None])
        yield f"{name}: all empty", with_values([None] * len(values))
        yield f"{name}: texts", with_values([str(value) for value in values])
        yield f"{name}: lists", with_values([[value] for value in values])
        yield f"{name}: truth values", with_values([True] * len(values))
        if is_id:
            yield f"{name}: decimals", with_values([float(value) for value in values])
            yield f"{name}: beyond 64 bits", with_values(np.array(values, np.uint64) + 2**63)
            yield f"{name}: others", with_values([value + 10**6 for value in values])
        elif len(right.column_names) > 3:
            yield f"{name}: sums beyond 1", with_values([*values[:-1], values[-1] / 2 + 0.4])
        names = [f"{other}?" if other == name else other for other in right.column_names]
        yield f"{name}: column renamed", save(right.rename_columns(names))
        yield f"{name}: column left out", save(right.drop_columns([name]))
        yield f"{name}: column twice", save(right.append_column(name, right[name]))
    yield "no rows", save(right.slice(0, 0))
    yield "no columns", save(right.select([]))
    yield "a row missing", save(right.slice(1))
    yield "a row twice", save(pa.concat_tables([right, right.slice(0, 1)]))
    for share in (0.05, 0.5, 0.99):
        yield f"cut off at {share:.0%}", content[: int(share * len(content))]
    yield "end of zeros", content[:-200] + bytes(200)
    yield "end only", content[-200:]
    yield "a CSV", right.to_pandas().to_csv(index=False).encode()


def damage_marker(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return damage to SIMULATED.json: what it stands for must then not be overwritten."""
    marker = json.loads(content)
    (files,) = {"files", "bytes"} & marker.keys()
    yield "empty", b""
    yield "cut off", content[: len(content) // 2]
    yield "no UTF-8", b"\xff" + content
    yield "nested deeply", DEEP.encode()
    yield "number of 5,000 digits", f'{{"{files}": {"9" * 5000}}}'.encode()
    for name, value in {"a list": [], "a number": 3, "a text": "x", "null": None}.items():
        yield name, json.dumps(value).encode()
        yield f"sizes: {name}", json.dumps({**marker, files: value}).encode()
    wrong = dict.fromkeys(marker[files], "7")
    yield "sizes as text", json.dumps({**marker, files: wrong}).encode()
    yield "other sizes", json.dumps({**marker, files: dict.fromkeys(wrong, 7)}).encode()


def damage_record(input: Input, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Return lines of results.jsonl that are no result, each as the only line of its file.

    Left out is what lines may hold: those of earlier versions lack some keys.
    """
    record = json.loads(content)
    wrong: dict[str, object] = {
        "null": None, "a number": 7, "a text": "x\"><script>", "a list": [], "an object": {},
        "true": True, "a huge number": 10**400, "negative": -1, "a fraction": 0.5,
        "control characters": "\x1b[2J", "an open quotation mark": "python 'x",
    }  # fmt: skip
    fine = {
        "rules": (str,), "model": (str,), "made_by": (str,), "command": (str,),
        "submission": (str,), "revision": (str, type(None)), "simulated": (bool,),
        "metric_name": (str,),
    }  # fmt: skip
    numbers = {
        "task": ("a number",),
        "seed": ("a number", "null"),
        "score": ("a fraction",),
        "seconds": ("a number", "null", "a fraction", "negative"),
        "memory": ("a number", "null"),
        "parts": ("an object",),
    }
    optional = {"code", "memory", "outcomes", "metric_name"}
    for key in record:
        if key not in optional:
            yield (
                f"{key} missing",
                json.dumps({n: v for n, v in record.items() if n != key}).encode(),
            )
        for name, value in wrong.items():
            if isinstance(value, fine.get(key, ())) and not (
                key == "made_by" and name == "an open quotation mark"
            ):
                continue
            if name in numbers.get(key, ()):
                continue
            yield f"{key}: {name}", json.dumps({**record, key: value}).encode()
    for name, value in wrong.items():
        if name not in ("null", "a number", "a fraction", "negative"):
            parts = {**record["parts"], "wrong": value}
            yield f"a part: {name}", json.dumps({**record, "parts": parts}).encode()
    for name, text in (
        ("NaN", "NaN"), ("infinity", "Infinity"), ("5,000 digits", "9" * 5000), ("deep", DEEP),
    ):  # fmt: skip
        line = re.sub(r'"score": [^,]*', f'"score": {text}', content.decode())
        yield f"score: {name}", line.strip().encode()
    yield "cut off", content[: len(content) // 2]
    yield "no JSON", b"hello"
    yield "noise", b"\xff\xfe\x00\x01"
    yield "nested deeply", DEEP.encode()


def rewrite(input: Input, content: bytes) -> dict[str, bytes]:
    """Return a CSV written in other ways that mean the same, by name."""
    text = content.decode("utf-8-sig")
    has_lines_in_cells = any("\n" in cell for row in csv.reader(io.StringIO(text)) for cell in row)
    ways = {"a byte order mark": codecs.BOM_UTF8 + text.encode()}
    if "ret" in (column.name for column in input.columns):
        # Forbidden by the cloze test itself.
        ways = {}
    if not has_lines_in_cells:
        ways["CRLF"] = text.replace("\n", "\r\n").encode()
        ways["CR"] = text.replace("\n", "\r").encode()
        ways["blank lines"] = text.replace("\n", "\n\n").encode()
    buffer = io.StringIO()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    ways["everything in quotes"] = buffer.getvalue().encode()
    if "metadata" not in input.file:
        ways["no last line end"] = text.rstrip("\n").encode()
    names = [column.name for column in input.columns if column.is_boolean]
    if input.header and names:
        header, *rows = rows
        at = header.index(names[0])
        for row in rows:
            row[at] = str(row[at] == "1")
        ways["True and False"] = b"".join(map(write_row, [header, *rows]))
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


def judge(input: Input, done: Done, before: object, after: object) -> str:
    """Say what is wrong with how a script met a malformed file; nothing where it refused it."""
    lines = done.stderr.splitlines()
    if input.kind == "record":
        refused = (
            done.code == 0 and len(lines) == 1 and re.search(r"\b1 (invalid )?lines", lines[0])
            and "majority" not in done.stdout
        )  # fmt: skip
        return (
            "" if refused else f"was shown: {done.code} {done.stdout[-500:]}{done.stderr[-1500:]}"
        )
    if done.code == 0:
        return f"was accepted: {done.stdout.strip()[-300:]}"
    if done.code != 2 or "Traceback" in done.stderr:
        return f"ended with {done.code}: {done.stderr[-1500:]}"
    # The checker of submissions names every fault, in a line each.
    one_line = len(lines) == 1 or "check_submission" in input.script
    if not lines or not one_line or not all(line.startswith("error: ") for line in lines):
        return f"was not refused in one line: {done.stderr[-1500:]}"
    if not all(line.isprintable() and len(line) < 1000 for line in lines):
        return f"was refused in a line of {len(done.stderr)} characters: {done.stderr[:300]!r}"
    if input.kind != "marker" and Path(input.file).name not in lines[0]:
        return f"was refused without its name: {lines[0]}"
    if "score" in re.sub(r"\S*score\S*/\S*", "", done.stdout):
        return f"was scored: {done.stdout[-300:]}"
    if before != after:
        return "was refused, but files were written"
    return ""


def try_out(input: Input, place: Place, folder: Path) -> str:
    """Put a malformed file into its place, run the script, and put the right one back.

    Returns
    -------
    str
        What is wrong; nothing where the file was refused as it should be.
    """
    path = folder / input.file
    shutil.rmtree(folder / "out", ignore_errors=True)
    right = path.with_name(f"{path.name}.right")
    path.replace(right)
    page = folder / "record" / layout.SCOREBOARD_NAME
    try:
        place(path)
        before = snapshot(folder)
        done = input.run(folder)
        return judge(input, done, before, snapshot(folder))
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        right.replace(path)
        page.unlink(missing_ok=True)


def main() -> None:
    """Try everything and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="default: all")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="faults to show a file")
    options = parser.parse_args()
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for input in find_inputs():
            if not any(word in input.name for word in options.only):
                continue
            cases = malform(input, (folder / input.file).read_bytes())
            faults = {}
            for case, place in cases.items():
                fault = try_out(input, place, folder)
                if fault:
                    faults[case] = fault
                    kind = "accepted" if fault.startswith(("was accepted", "was sc")) else "other"
                    counts[kind] += 1
            counts["tried"] += len(cases)
            print(f"{len(cases):5} tried, {len(cases) - len(faults):5} refused  {input.name}")
            for case, fault in list(faults.items())[: options.show]:
                print(f"      {case}: {fault}")
    n_refused = counts["tried"] - counts["accepted"] - counts["other"]
    print(
        f"{counts['tried']:,} tried, {n_refused:,} refused in one line, {counts['accepted']} "
        f"accepted or scored, {counts['other']} otherwise, {time.perf_counter() - started:.0f} s"
    )
    sys.exit(int(counts["tried"] != n_refused))


if __name__ == "__main__":
    main()
