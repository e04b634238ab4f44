"""Files and metric of the knowledge cloze test: sentences with a gap, and guesses at each gap."""

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
# Number of guesses in the challenge; --candidates changes it.
N_GUESSES = 5
TRAIN = "KCT_train_public.txt"
TEST = "KCT_test_public.txt"

# Kinds of values in the files, as error messages name them.
_A_TEXT = "text"
_TEXTS = "a list of texts"
_OPTIONAL = "text, a number or a boolean"

_ARTICLES = {"a", "an", "the"}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# JSON can escape half of a surrogate pair, which cannot be written to a UTF-8 file.
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


# ---- Queries ---------------------------------------------------------------------------------


def read_queries(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read and check a file of queries, one JSON object a line.

    Parameters
    ----------
    path : Path
        File of queries.
    answers : bool
        Whether to read the answers too.

    Returns
    -------
    DataFrame
        A row for each query, with the columns

        - id, str;
        - text, str, holds `MASK`;
        - domain, str, empty if unknown;
        - reasoning, ``yes``, ``no`` or the file's text, empty if unknown;
        - answers, list of str, each a right answer; only if `answers` is true.

    Raises
    ------
    InputError
        If the file is missing, is empty or has a faulty line.
    """
    reading.require_file(path)
    try:
        # `splitlines` would also cut at other characters that a text may hold.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: {error.reason}") from None
    queries = []
    first_line: dict[str, int] = {}
    repeated = ""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        query = _read_query(f"{path}: line {number}", line, answers)
        queries.append(query)
        first = first_line.setdefault(query["id"], number)
        if first != number and not repeated:
            repeated = f"line {number} repeats qid {quote(query['id'])} of line {first}"
    if not queries:
        raise InputError(f"{path}: is empty, expected a JSON object in each line")
    # Faults of single lines come first.
    if repeated:
        raise InputError(f"{path}: {repeated}")
    return pd.DataFrame(queries)


def _read_query(where: str, line: str, answers: bool) -> dict[str, Any]:
    """Return a query by the names of the columns; `where` is its file and line for messages."""
    record = _parse_record(where, line)
    expected = {"qid": _A_TEXT, "query": _A_TEXT, "domain": _OPTIONAL, "NeedReasoning": _OPTIONAL}
    if answers:
        expected["answer"] = _TEXTS
    for key, kind in expected.items():
        _require_kind(f"{where}: '{key}'", record.get(key), kind)
    if MASK not in record["query"]:
        raise InputError(f"{where}: 'query' holds no {MASK}: {quote(record['query'])}")
    reasoning: Any = record.get("NeedReasoning")
    # False and true equal 0 and 1 as keys.
    reasoning = {0: "no", 1: "yes"}.get(reasoning, reasoning)
    query = {
        "id": record["qid"],
        "text": record["query"],
        "domain": _as_text(record.get("domain")),
        "reasoning": _as_text(reasoning),
    }
    if answers:
        query["answers"] = record["answer"]
    return query


def _parse_record(where: str, line: str) -> dict[str, Any]:
    """Parse a line as a JSON object."""
    try:
        record = _parse_json(line)
    except ValueError as error:
        raise InputError(f"{where} is not JSON ({error}); is the file cut off?") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} holds no JSON object, expected qid, query and answer")
    return record


def _parse_json(text: str) -> Any:
    """Parse JSON; raise `ValueError` for every fault."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nests too deeply") from None


def _require_kind(where: str, value: Any, kind: str) -> None:
    """Refuse a value that is not of a kind, or that holds half a surrogate pair."""
    if kind == _A_TEXT:
        is_valid = isinstance(value, str) and value != ""
    elif kind == _TEXTS:
        is_valid = _are_texts(value) and len(value) > 0
    else:
        # A boolean is an int too.
        is_valid = value is None or isinstance(value, str | int)
    if not is_valid:
        shown = printable(repr(value), MAX_SHOWN)
        raise InputError(f"{where} is {shown}, expected {kind}")
    if _HALF_CHARACTER.search(json.dumps(value, ensure_ascii=False)):
        raise InputError(f"{where} holds half a character: {quote(value)}")


def _are_texts(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _as_text(value: object) -> str:
    """Return an optional value as text, empty if it is missing."""
    return "" if value is None else str(value).strip()


# ---- Models ----------------------------------------------------------------------------------


def add_candidates(
    parser: argparse.ArgumentParser, help_text: str = "guesses allowed, at least five"
) -> None:
    """Add the flag --candidates, the number of guesses at each query."""
    cli.add_number(parser, "--candidates", N_GUESSES, help_text, metavar="K")


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN, test_data=TEST)
    add_candidates(parser, "guesses at each query")
    return parser


def run_model(
    options: argparse.Namespace,
    weigh: Callable[[pd.DataFrame, pd.DataFrame], Sequence[Mapping[str, float]]],
) -> None:
    """Write the guesses of a sample model at each query.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    weigh : callable
        Called as ``weigh(train, test)``, once for the test file or once for each fold. `train` has
        the queries to learn from, as `read_queries` returns them; `test` has those to predict,
        without answers. It returns a mapping from answers to weights for every query of `test`. The
        answers with the largest weights are guessed; of equal weights the earlier answer comes
        first.
    """
    train = read_queries(options.input_dir / options.train_data, answers=True)
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        pairs = [(train, read_queries(options.input_dir / options.test_data, answers=False))]
    else:
        pairs = [(train[known], train[asked]) for known, asked in folds.splits(fold)]
    guesses_by_id: dict[str, str] = {}
    for known, asked in pairs:
        # A model does not see the answers that it predicts.
        asked = asked.drop(columns="answers", errors="ignore")
        for query_id, weights in zip(asked["id"], weigh(known, asked), strict=True):
            guesses = nlargest(options.candidates, weights, key=weights.__getitem__)
            guesses_by_id[query_id] = json.dumps(guesses, ensure_ascii=False)
    columns = {"id": list(guesses_by_id), "ret": list(guesses_by_id.values())}
    challenge.write_submission(options, columns)


# ---- Submissions and metric ------------------------------------------------------------------


def read_guesses(
    path: Path, ids: Sequence[str], report: Report = stop, *, candidates: int = N_GUESSES
) -> list[list[str]]:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    ids : sequence of str
        Ids of the queries.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.
    candidates : int
        Number of guesses allowed at each query, where that is more than `N_GUESSES`.

    Returns
    -------
    list of lists of str
        Guesses at each query, in the order of `ids`.
    """
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
    """Return the token F1 of a guess and an answer, from 0 to 1.

    Token F1 is the harmonic mean of two shares: of the guess's words that are in the answer, and of
    the answer's words that are in the guess. A word that occurs n times in both counts n times.
    If neither text has a word, F1 is 1; if only one has, F1 is 0.

    Parameters
    ----------
    guess, answer : str
        Texts, cut into words at blanks and compared without case.
    normalise : bool
        Drop punctuation and the articles a, an, the first.
    """
    guess_words = _words(guess, normalise)
    answer_words = _words(answer, normalise)
    if not guess_words or not answer_words:
        return float(guess_words == answer_words)
    n_shared = (Counter(guess_words) & Counter(answer_words)).total()
    return 2 * n_shared / (len(guess_words) + len(answer_words))


def _words(text: str, normalise: bool) -> list[str]:
    """Cut a text into lower-case words."""
    text = text.lower()
    if not normalise:
        return text.split()
    return [word for word in text.translate(_PUNCTUATION).split() if word not in _ARTICLES]
