"""Files and metric of the knowledge cloze test: sentences with a gap, and guesses at each gap."""

import argparse
import codecs
import io
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

from common import cli, file_formats, reading
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from related_challenges import challenge, folds

import pandas as pd

MASK = "[MASK]"
# Number of guesses that the challenge allows at each query; the default of --candidates.
N_GUESSES = 5
TRAIN_FILE = "KCT_train_public.txt"
TEST_FILE = "KCT_test_public.txt"
# The column of the guesses in a submission. The challenge's description spells its name in two
# ways, so both are accepted.
GUESS_COLUMN = "ret"
OTHER_GUESS_COLUMN = "Ret"
# Maps the spellings of a boolean in the files, in lower case, to the spelling in the challenge's
# description.
BOOLEANS = {"true": "True", "1": "True", "false": "False", "0": "False"}

# Kinds of values in the files. Error messages contain these texts.
_TEXT = "text"
_LIST_OF_TEXTS = "a list of texts"
_TEXT_NUMBER_OR_BOOLEAN = "text, a whole number or a boolean"

_ARTICLES = {"a", "an", "the"}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# A lone surrogate, such as \ud800. JSON can escape a character as a pair of surrogates, and may
# hold half of such a pair. UTF-8 cannot express it, so a text with it could not be written to a
# file.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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
        - reasoning, str, the value of `NeedReasoning` as a text: ``True`` if the file has true, 1
          or a text such as "true"; ``False`` if it has false, 0 or a text such as "false"; any
          other value as in the file; empty if there is none;
        - answers, list of str, each a right answer; only if `answers` is true.

    Raises
    ------
    InputError
        If the file is missing, is empty or has a faulty line.
    """
    reading.require_file(path)
    # `open_utf8` gives UTF-8 even if the file is in UTF-16 or packed by gzip.
    open_utf8 = file_formats.open_as_utf8(
        str(path), lambda: path.open("rb"), expected=file_formats.JSON_LINES
    )
    try:
        # "utf-8-sig" skips a byte order mark at the beginning.
        with io.TextIOWrapper(open_utf8(), "utf-8-sig") as file:
            # `splitlines` would also split the text at characters such as U+2028, which a query may
            # hold.
            lines = file.read().split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: {error.reason}") from None
    # Maps the number of each line to the query in it.
    queries = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            queries[number] = _read_query(f"{path}: line {number}", line, has_answer=answers)
    if not queries:
        raise InputError(f"{path}: is empty, expected a JSON object in each line")
    _require_distinct_ids(path, queries)
    return pd.DataFrame(queries.values())


def _require_distinct_ids(path: Path, queries: Mapping[int, Mapping[str, Any]]) -> None:
    """Raise `InputError` if two queries have the same id.

    `queries` maps the number of each line to its query.
    """
    line_of_id: dict[str, int] = {}
    for number, query in queries.items():
        first_line = line_of_id.setdefault(query["id"], number)
        if first_line != number:
            raise InputError(
                f"{path}: line {number} repeats qid {quote(query['id'])} of line {first_line}"
            )


def _read_query(where: str, line: str, *, has_answer: bool) -> dict[str, Any]:
    """Parse a line into a dict, whose keys are the columns of `read_queries`.

    `where` names the file and the line in messages. `has_answer` says whether the line must hold
    the right answers too.
    """
    record = _parse_record(where, line)
    # Maps each key to the kind of its value. A key that may be missing has a kind that allows None.
    expected_kinds = {
        "qid": _TEXT,
        "query": _TEXT,
        "domain": _TEXT_NUMBER_OR_BOOLEAN,
        "NeedReasoning": _TEXT_NUMBER_OR_BOOLEAN,
    }
    if has_answer:
        expected_kinds["answer"] = _LIST_OF_TEXTS
    for key, kind in expected_kinds.items():
        _require_kind(f"{where}: '{key}'", record.get(key), kind)
    if MASK not in record["query"]:
        raise InputError(f"{where}: 'query' holds no {MASK}: {quote(record['query'])}")
    # Below, the spellings of a boolean become "True" or "False". Any other text stays as it is.
    reasoning = _as_text(record.get("NeedReasoning"))
    query = {
        "id": record["qid"],
        "text": record["query"],
        "domain": _as_text(record.get("domain")),
        "reasoning": BOOLEANS.get(reasoning.lower(), reasoning),
    }
    if has_answer:
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
    """Parse JSON as `json.loads` does; raise `ValueError` for too deep nesting as well."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nests too deeply") from None


def _require_kind(where: str, value: Any, kind: str) -> None:
    """Raise `InputError` if a value is not of this kind, or if it holds a lone surrogate.

    `where` names the file, the line and the key of the value in the message. `kind` is _TEXT,
    _LIST_OF_TEXTS or _TEXT_NUMBER_OR_BOOLEAN. A value of the last kind may be missing (None).
    """
    if kind == _TEXT:
        is_valid = isinstance(value, str) and value != ""
    elif kind == _LIST_OF_TEXTS:
        is_valid = _are_texts(value) and len(value) > 0
    else:
        # The check for int accepts a boolean too, because bool is a subclass of int.
        is_valid = value is None or isinstance(value, str | int)
    if not is_valid:
        shown = printable(repr(value), MAX_SHOWN)
        raise InputError(f"{where} is {shown}, expected {kind}")
    # `value` may be a text or a list of texts. Written as JSON, it is one text that can be
    # searched.
    as_json = json.dumps(value, ensure_ascii=False)
    if _LONE_SURROGATE.search(as_json):
        raise InputError(
            f"{where} holds a lone surrogate, which is half of an escaped character: {quote(value)}"
        )


def _are_texts(value: object) -> bool:
    """Return whether a value is a list of texts or an empty list."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _as_text(value: object) -> str:
    """Return an optional value as text, empty if it is missing."""
    return "" if value is None else str(value).strip()


# ---- Models ----------------------------------------------------------------------------------


def add_candidates(
    parser: argparse.ArgumentParser,
    help_text: str = "number of guesses allowed at each query; below five, five are allowed",
) -> None:
    """Add the flag --candidates, the number of guesses at each query."""
    cli.add_number(parser, "--candidates", N_GUESSES, help_text, metavar="K")


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN_FILE, test_data=TEST_FILE)
    add_candidates(parser, "number of guesses written for each query")
    return parser


def run_model(
    options: argparse.Namespace,
    weigh_answers: Callable[[pd.DataFrame, pd.DataFrame], Sequence[Mapping[str, float]]],
) -> None:
    """Write the guesses of a sample model at each query.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    weigh_answers : callable
        Called as ``weigh_answers(train, test)``, once for the test file or once for each fold.
        `train` has the queries to learn from, as `read_queries` returns them. `test` has the
        queries to predict, without answers. `weigh_answers` returns a list with one mapping for
        each query of `test`: the weight of each possible answer. The answers with the largest
        weights are guessed. Among equal weights, the answer that comes first in the mapping is
        guessed first.
    """
    train = read_queries(options.input_dir / options.train_data, answers=True)
    # With --local, `fold` holds the fold of each training query, and the model predicts each fold
    # from the other folds. Without it, `fold` is None, and the model predicts the test file.
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        test = read_queries(options.input_dir / options.test_data, answers=False)
        train_test_pairs = [(train, test)]
    else:
        # A model must not see the answers that it predicts.
        unanswered = train.drop(columns="answers")
        train_test_pairs = []
        for train_rows, test_rows in folds.train_and_test(fold):
            train_test_pairs.append((train[train_rows], unanswered[test_rows]))
    ids = []
    guesses_as_json = []
    for train_queries, test_queries in train_test_pairs:
        weights_by_query = weigh_answers(train_queries, test_queries)
        for query_id, weights in zip(test_queries["id"], weights_by_query, strict=True):
            guesses = nlargest(options.candidates, weights, key=weights.__getitem__)
            ids.append(query_id)
            guesses_as_json.append(json.dumps(guesses, ensure_ascii=False))
    challenge.write_submission(options, {"id": ids, GUESS_COLUMN: guesses_as_json})


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
        Number of guesses allowed at each query. If it is below `N_GUESSES`, `N_GUESSES` guesses are
        allowed.

    Returns
    -------
    list of lists of str
        Guesses at each query, in the order of `ids`.
    """
    source = reading.file_source(path)
    # A byte order mark is a fault, since the challenge's own check refuses it.
    with source.open() as file:
        if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            raise InputError(f"{path}: begins with a byte order mark, expected UTF-8 without one")
    header = reading.read_header(source)
    has_only_other = OTHER_GUESS_COLUMN in header and GUESS_COLUMN not in header
    guess_column = OTHER_GUESS_COLUMN if has_only_other else GUESS_COLUMN
    allowed = max(candidates, N_GUESSES)

    def parse(text: str) -> list[str]:
        guesses: list[str] = _parse_json(text)
        if not _are_texts(guesses):
            # `challenge.read_predictions` reports a `ValueError` with the text of the cell and what
            # was expected, and an `InputError` with its own message.
            raise ValueError
        if len(guesses) > allowed:
            raise InputError(f"holds {len(guesses)} guesses")
        return guesses

    return challenge.read_predictions(
        path,
        guess_column,
        ids,
        source_of_ids="the queries",
        parse=parse,
        expected=f"a JSON list of at most {allowed} texts",
        report=report,
    )


def token_f1(guess: str, answer: str, *, normalise: bool = False) -> float:
    """Return the token F1 of a guess and an answer, from 0 to 1.

    Token F1 is the harmonic mean of precision, the share of the guess's words that are in the
    answer, and recall, the share of the answer's words that are in the guess. A word counts as
    often as it occurs in both texts. If neither text has a word, F1 is 1. If only one text has
    words, F1 is 0.

    Parameters
    ----------
    guess, answer : str
        Texts, cut into words at blanks and compared without case.
    normalise : bool
        Whether to drop punctuation and the articles "a", "an" and "the" before comparing.
    """
    guess_words = _words(guess, normalise)
    answer_words = _words(answer, normalise)
    if not guess_words and not answer_words:
        return 1.0
    if not guess_words or not answer_words:
        return 0.0
    n_shared = (Counter(guess_words) & Counter(answer_words)).total()
    # Precision is n_shared / len(guess_words), recall is n_shared / len(answer_words). Their
    # harmonic mean simplifies to this formula.
    return 2 * n_shared / (len(guess_words) + len(answer_words))


def _words(text: str, normalise: bool) -> list[str]:
    """Cut a text into lower-case words; with `normalise`, drop punctuation and articles."""
    text = text.lower()
    if not normalise:
        return text.split()
    return [word for word in text.translate(_PUNCTUATION).split() if word not in _ARTICLES]
