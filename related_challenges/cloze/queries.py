"""Files and metric of the knowledge cloze test: sentences with a gap, some guesses at each."""

import argparse
import codecs
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

from common import cli, reading
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from related_challenges import challenge, folds

import pandas as pd

MASK = "[MASK]"
# The K of the challenge; --candidates asks for another one.
N_GUESSES = 5
TRAIN, TEST = "KCT_train_public.txt", "KCT_test_public.txt"

_ARTICLES = {"a", "an", "the"}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# JSON can name half a surrogate pair, which no file can hold.
_HALF = re.compile("[\ud800-\udfff]")


def read_queries(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read a file of queries, a JSON object a line: id, text with a `MASK`, answers, if wanted, any
    of which is right, domain, and reasoning, ``yes``, ``no`` or the file's text; empty if unknown.
    """
    reading.require_file(path)
    try:
        # Only line ends: a text may hold other characters at which `splitlines` would cut.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: {error.reason}") from None
    queries = [
        {"line": number} | _read_query(f"{path}: line {number}", line, answers)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not queries:
        raise InputError(f"{path}: is empty, expected a JSON object in each line")
    first = {query["id"]: query["line"] for query in reversed(queries)}
    for query in queries:
        if query["line"] != first[query["id"]]:
            told = f"repeats qid {quote(query['id'])} of line {first[query['id']]}"
            raise InputError(f"{path}: line {query['line']} {told}")
    return pd.DataFrame(queries).drop(columns="line")


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nests too deeply") from None


def _read_query(where: str, line: str, answers: bool) -> dict[str, Any]:
    try:
        record = _parse_json(line)
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}); is the file cut off?") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} holds no JSON object, expected qid, query and answer")
    kind = "text, a number or a boolean"
    expected = {"qid": "text", "query": "text", "domain": kind, "NeedReasoning": kind}
    for key, wanted in (expected | ({"answer": "a list of texts"} if answers else {})).items():
        value = record.get(key)
        is_valid = {
            "text": isinstance(value, str) and value,
            "a list of texts": value and _are_texts(value),
            kind: value is None or isinstance(value, str | int),
        }
        if not is_valid[wanted]:
            shown = printable(repr(value), MAX_SHOWN)
            raise InputError(f"{where}: '{key}' is {shown}, expected {wanted}")
        if _HALF.search(json.dumps(value, ensure_ascii=False)):
            raise InputError(f"{where}: '{key}' holds half a character: {quote(value)}")
    if MASK not in record["query"]:
        raise InputError(f"{where}: 'query' holds no {MASK}: {quote(record['query'])}")
    kinds: list[Any] = [record.get("domain"), record.get("NeedReasoning")]
    kinds[1] = {0: "no", 1: "yes"}.get(kinds[1], kinds[1])
    domain, reasoning = ("" if kind is None else str(kind).strip() for kind in kinds)
    query = {"id": record["qid"], "text": record["query"], "domain": domain, "reasoning": reasoning}
    return query | ({"answers": record["answer"]} if answers else {})


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def add_candidates(
    parser: argparse.ArgumentParser, what: str = "guesses allowed, at least five"
) -> None:
    """Add the flag that says how many guesses at a query count, or are allowed if above five."""
    cli.add_number(parser, "--candidates", N_GUESSES, what, metavar="K")


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a sample model."""
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN, test_data=TEST)
    add_candidates(parser, "guesses at each query")
    return parser


def run_model(
    options: argparse.Namespace,
    weigh: Callable[[pd.DataFrame, pd.DataFrame], Sequence[Mapping[str, float]]],
) -> None:
    """Write the guesses of a sample model at each query, as many as the flags allow.

    `weigh` gets the queries to learn from and those to predict, without their answers. It is called
    once for the test file, or once for each fold. It returns the weights of answers for every query
    to predict. The largest weights are the guesses; of equal weights the first.
    """
    train = read_queries(options.input_dir / options.train_data, answers=True)
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        pairs = [(train, read_queries(options.input_dir / options.test_data, answers=False))]
    else:
        pairs = [(train[known], train[asked]) for known, asked in folds.splits(fold)]
    ret: dict[str, str] = {}
    for known, asked in pairs:
        asked = asked.drop(columns="answers", errors="ignore")
        for name, weights in zip(asked["id"], weigh(known, asked), strict=True):
            guesses = nlargest(options.candidates, weights, key=weights.__getitem__)
            ret[name] = json.dumps(guesses, ensure_ascii=False)
    challenge.write_submission(options, {"id": [*ret], "ret": [*ret.values()]})


def read_guesses(
    path: Path, ids: Sequence[str], report: Report = stop, *, candidates: int = N_GUESSES
) -> list[list[str]]:
    """Read and check a submission: the answers guessed for each of the ids, in their order."""
    with reading.file_source(path).open() as file:
        if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            raise InputError(f"{path}: begins with a byte order mark, expected UTF-8 without one")
    allowed = max(candidates, N_GUESSES)

    def parse(text: str) -> list[str]:
        guesses: list[str] = _parse_json(text)
        if not _are_texts(guesses):
            raise ValueError
        if len(guesses) > allowed:
            raise InputError(f"holds {len(guesses)} answers")
        return guesses

    expected = f"a JSON list of at most {allowed} texts"
    return challenge.read_predictions(path, "ret", ids, "the queries", parse, expected, report)


def token_f1(guess: str, answer: str, *, normalise: bool = False) -> float:
    """Return the harmonic mean of the shares of two texts' words that both have, with repeats; to
    normalise drops punctuation and articles, and two texts without words score 1.
    """
    dropped, articles = (_PUNCTUATION, _ARTICLES) if normalise else ({}, set())
    left, right = (
        [word for word in text.lower().translate(dropped).split() if word not in articles]
        for text in (guess, answer)
    )
    if not left or not right:
        return float(left == right)
    n_shared = (Counter(left) & Counter(right)).total()
    return 2 * n_shared / (len(left) + len(right))
