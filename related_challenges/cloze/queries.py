"""Files and metric of the knowledge cloze test: sentences with a gap, up to five guesses each."""

import argparse
import codecs
import json
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import challenge, cli, folds, io, layout
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from common.schema import TEXT, Column

import numpy as np
import pandas as pd

MASK = "[MASK]"
N_GUESSES = 5
TRAIN, TEST = "KCT_train_public.txt", "KCT_test_public.txt"

_ARTICLES = {"a", "an", "the"}
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def read_queries(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read and check a file of queries, a JSON object in each line.

    The columns are id; text, a sentence with `MASK` in place of a gap; answers, if wanted, each of
    which is correct by itself; domain, what the sentence is about; and reasoning, whether several
    facts must be combined: ``yes``, ``no`` or the file's own text. What is unknown is empty.
    """
    io.require_file(path)
    queries = []
    line_of: dict[str, int] = {}
    try:
        # Only line ends: a text may hold other characters at which `splitlines` would cut.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: {error.reason}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        query = _read_query(where, line, answers)
        first = line_of.setdefault(query["id"], number)
        if first != number:
            raise InputError(f"{where} repeats qid {quote(query['id'])} of line {first}")
        queries.append(query)
    if not queries:
        raise InputError(f"{path}: is empty, expected a JSON object in each line")
    return pd.DataFrame(queries)


def _read_query(where: str, line: str, answers: bool) -> dict[str, Any]:
    """Return the row of the table that a line makes."""
    try:
        record = io.parse_json(line)
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}); is the file cut off?") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} holds no JSON object, expected qid, query and answer")
    for key in ("qid", "query"):
        if not isinstance(record.get(key), str) or not record[key]:
            raise InputError(f"{where}: '{key}' is {_show(record.get(key))}, expected text")
        _require_characters(where, key, record[key])
    if MASK not in record["query"]:
        raise InputError(f"{where}: 'query' holds no {MASK}: {quote(record['query'])}")
    query = {
        "id": record["qid"],
        "text": record["query"],
        "domain": _read_kind(where, "domain", record.get("domain")),
        "reasoning": _read_kind(where, "NeedReasoning", record.get("NeedReasoning")),
    }
    if answers:
        query["answers"] = found = record.get("answer")
        if not isinstance(found, list) or not found or not all(isinstance(a, str) for a in found):
            raise InputError(f"{where}: 'answer' is {_show(found)}, expected a list of texts")
        for answer in found:
            _require_characters(where, "answer", answer)
    return query


def _read_kind(where: str, key: str, value: Any) -> str:
    """Return what a line says of its query, as text; nothing if it does not say."""
    if value is None:
        return ""
    if key == "NeedReasoning" and value in (0, 1):
        return "yes" if value else "no"
    if not isinstance(value, str | int):
        raise InputError(
            f"{where}: '{key}' is {_show(value)}, expected text, a number or a boolean"
        )
    text = str(value).strip()
    _require_characters(where, key, text)
    return text


def _show(value: Any) -> str:
    return printable(repr(value), MAX_SHOWN)


def _require_characters(where: str, key: str, text: str) -> None:
    """Raise `InputError` if a text cannot be written: JSON can name half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: '{key}' holds half a character: {quote(text)}") from None


def parse_flags(doc: str | None) -> argparse.Namespace:
    """Read the flags of a sample model."""
    local_dir = challenge.data_dir(__file__) / layout.TEST_INPUT_DIR.name
    p = challenge.model_parser(doc, __file__)
    cli.add_file(p, "--train_data", TRAIN)
    cli.add_file(p, "--test_data", TEST)
    p.add_argument(
        "--local",
        action="store_true",
        help="predict the training queries instead, every fold after learning from the others",
    )
    add_candidates(p, f"guesses at each query, 1 to {N_GUESSES}")
    cli.add_folder(p, "--submission_template_dir", local_dir)
    cli.add_file(p, "--submission_template_file", layout.FOLDS)
    return p.parse_args()


def add_candidates(p: argparse.ArgumentParser, what: str) -> None:
    """Add the flag that says how many guesses at a query count."""

    def number(text: str) -> int:
        if cli.count(text) > N_GUESSES:
            raise argparse.ArgumentTypeError(
                f"{text} is above {N_GUESSES}, the most that are allowed"
            )
        return int(text)

    default = f"{what} (default {N_GUESSES})"
    p.add_argument("--candidates", type=number, metavar="N", default=N_GUESSES, help=default)


def folds_path(options: argparse.Namespace) -> Path | None:
    """Return the file of the folds that the flags name; None where the test file is predicted."""
    if not options.local:
        return None
    return Path(options.submission_template_dir / options.submission_template_file)


def read_splits(options: argparse.Namespace) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield the queries to learn from and those to predict: one pair, or one per fold."""
    train = read_queries(options.input_dir / options.train_data, answers=True)
    template = folds_path(options)
    if template is None:
        yield train, read_queries(options.input_dir / options.test_data, answers=False)
        return
    for learned, predicted in folds.splits(folds.read_folds(template, train["id"].tolist())):
        # Without their answers, so that a model cannot look at them.
        yield train[learned], train[predicted].drop(columns="answers")


def best_guesses(weights: Mapping[str, float], n: int = N_GUESSES) -> list[str]:
    """Return the `n` answers of largest weight, best first; ties go to the earlier one."""
    return sorted(weights, key=lambda answer: -weights[answer])[:n]


def write_guesses(options: argparse.Namespace, guesses: Mapping[str, Sequence[str]]) -> None:
    """Write a submission where the flags say: for each id at most five answers."""
    path = options.output_dir / options.output_file
    for query_id, answers in guesses.items():
        if len(answers) > N_GUESSES:
            raise InputError(
                f"{path}: {quote(query_id)} would have {len(answers)} answers, expected at most "
                f"{N_GUESSES}"
            )
    ret = [json.dumps(list(answers), ensure_ascii=False) for answers in guesses.values()]
    columns = {"id": np.array(list(guesses), object), "ret": np.array(ret, object)}
    challenge.write_submission(path, columns, folds_file=folds_path(options))


def read_guesses(path: Path, ids: Sequence[str], report: Report = stop) -> list[list[str]]:
    """Read and check a submission: the answers guessed for each of the ids, in their order."""
    source = io.file_source(path)
    with source.open() as file:
        if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            raise InputError(f"{path}: begins with a byte order mark, expected UTF-8 without one")
    data = io.read_columns(path, (folds.ID, Column("ret", TEXT)), report)
    rows = folds.match_ids(path, data["id"], ids, "the queries", report)
    guesses, faults = [], []
    for row, text in enumerate(data["ret"]):
        guess, fault = _read_ret(text)
        guesses.append(guess)
        # An empty cell has been reported already.
        if fault and text:
            faults.append(f"row {source.row_number(row)} {fault}")
    if faults:
        more = f" and {len(faults) - io.SHOWN} more rows" if len(faults) > io.SHOWN else ""
        report(
            f"{path}: column 'ret': {'; '.join(faults[: io.SHOWN])}{more}, expected a JSON list of "
            f"at most {N_GUESSES} texts"
        )
    return [guesses[row] for row in rows]


def _read_ret(text: str | None) -> tuple[list[str], str]:
    """Return the guesses that a cell holds, and what is wrong with it."""
    try:
        ret: Any = io.parse_json(text or "")
    except ValueError:
        ret = None
    if not isinstance(ret, list) or not all(isinstance(answer, str) for answer in ret):
        return [], f"is {quote(text)}"
    return ret, f"holds {len(ret)} answers" if len(ret) > N_GUESSES else ""


def normalise(text: str) -> list[str]:
    """Split a text into words to be compared: lower-case, no punctuation, no articles."""
    kept = text.lower().translate(_NO_PUNCTUATION).split()
    return [word for word in kept if word not in _ARTICLES]


def token_f1(guess: str, answer: str) -> float:
    """Return the harmonic mean of the shares of two texts' words that both have, with repeats.

    It is 1 if neither text holds a word, and 0 if only one does.
    """
    left, right = normalise(guess), normalise(answer)
    if not left or not right:
        return float(left == right)
    n_shared = (Counter(left) & Counter(right)).total()
    return 2 * n_shared / (len(left) + len(right))


def score_query(guesses: Sequence[str], answers: Sequence[str]) -> float:
    """Score the guesses at one query: the best F1 of a guess and an answer, 0 without a guess."""
    return max((token_f1(guess, answer) for guess in guesses for answer in answers), default=0.0)
