"""Cloze test: the metric with values worked out by hand, files, scores and sample models."""

import gzip
import json
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from common.errors import InputError

import pytest
from conftest import Write, fails, succeeds
from question_files import Kits, evaluation, last_record, page_in, scores_in
from sample_blocks import needs_blocks

queries = import_module("queries")

FOLDER = "related_challenges/cloze"
TRAIN, TEST = "KCT_train_public.txt", "KCT_test_public.txt"


def to_lines(*records: Mapping[str, object]) -> str:
    """Return queries in the challenge's format, numbered from 0.

    The default query is `[MASK]`, with the right answer `x`. Each of the `records` holds the keys
    in which a query differs from the default query, with their values.
    """
    lines = []
    for number, record in enumerate(records):
        default = {"qid": str(number), "query": "[MASK]", "answer": ["x"]}
        lines.append(json.dumps({**default, **record}, ensure_ascii=False))
    return "".join(f"{line}\r\n" for line in lines)


@pytest.mark.parametrize(
    ("guess", "answer", "score", "normalised"),
    [
        ("columbia university", "Columbia University", 1, 1),
        ("columbia city", "Columbia University", 0.5, 0.5),
        ("The U.S.A.", "usa", 0, 1),
        ("...", "the", 0, 1),
        ("", " ", 1, 1),
        ("the", "usa", 0, 0),
        ("new york new york", "new york", 2 / 3, 2 / 3),
        ("York, New", "new york", 0.5, 1),
    ],
)
def test_the_metric_by_hand(guess: str, answer: str, score: float, normalised: float) -> None:
    """Case is always ignored; with `normalise`, punctuation and articles are ignored, too."""
    assert queries.token_f1(guess, answer) == pytest.approx(score)
    assert queries.token_f1(guess, answer, normalise=True) == pytest.approx(normalised)


def test_guesses_survive_writing_and_reading(write: Write) -> None:
    """Guesses are the same after they are written to a file and read again.

    They may hold characters that other programs take for line ends, such as U+2028. The id "007"
    keeps its zeros.
    """
    answers = ['a "b", c', "ü\u2028\x85"]
    write(TRAIN, to_lines({"answer": answers}))
    folder = write(TEST, to_lines({"qid": "007"}, {"qid": "7"})).parent
    # At every query, this model guesses the most frequent training answers: here, all of them.
    model = f"{FOLDER}/sample_model_frequent.py"
    succeeds([model, "--input_dir", folder, "--output_dir", folder])
    path = folder / "submission.csv"
    assert path.read_bytes().startswith(b"id,ret\n007,")
    guesses_at_7, guesses_at_007 = queries.read_guesses(path, ["7", "007"])
    assert guesses_at_7 == answers
    assert guesses_at_007 == answers


def test_a_submission_with_a_byte_order_mark_is_refused(write: Write) -> None:
    path = write("submission.csv", b"\xef\xbb\xbf" + b'id,ret\n7,"[""x""]"\n')
    with pytest.raises(InputError, match="byte order mark"):
        queries.read_guesses(path, ["7"])


# Queries that differ in their domain and in whether they need reasoning. Their right answer is "x",
# unless a query has the key `answer`.
QUERIES_OF_KINDS: list[dict[str, object]] = [
    {"domain": "b", "NeedReasoning": True},
    {"domain": "b", "NeedReasoning": "two facts"},
    {"domain": None, "answer": ["z", "x"]},
    {"domain": 3, "NeedReasoning": 0},
]
# The guesses at queries 0 to 3 score 1, 0, 2/3 and 0. The best guess at query 2 is "x y". One of
# its two words is the right answer "x", so its precision is 1/2, its recall 1 and its F1 2/3.
GUESSES = """id,ret
0,"[""x""]"
1,[]
2,"[""y"",""x y""]"
3,"[""y""]"
"""


# For each kind of query: the number of queries, the mean score, and the share of queries with the
# score 1.
SCORES_BY_KIND = [
    ["domain: 3", "1", "0.0000", "0.0%"],
    ["domain: b", "2", "0.5000", "50.0%"],
    ["domain: unknown", "1", "0.6667", "0.0%"],
    ["NeedReasoning: False", "1", "0.0000", "0.0%"],
    ["NeedReasoning: True", "1", "1.0000", "100.0%"],
    ["NeedReasoning: two facts", "1", "0.0000", "0.0%"],
    ["NeedReasoning: unknown", "1", "0.6667", "0.0%"],
]


@pytest.fixture
def guessed(write: Write) -> Path:
    """Write the queries `QUERIES_OF_KINDS` and the submission `GUESSES`; return their folder."""
    write("submission.csv", GUESSES)
    return write(TRAIN, to_lines(*QUERIES_OF_KINDS)).parent


def test_the_score_is_the_mean_over_all_queries(guessed: Path) -> None:
    succeeds(evaluation("cloze", guessed))
    mean = (1 + 0 + 2 / 3 + 0) / 4
    assert scores_in(guessed)["score"] == pytest.approx(mean)
    assert last_record(guessed)["score"] == scores_in(guessed)["score"]


def test_scores_by_kind_are_means_over_the_queries_of_the_kind(guessed: Path) -> None:
    """The scores by kind are printed, shown on the page and recorded."""
    output = succeeds(evaluation("cloze", guessed))
    # The first line says what is scored, and the second is the header.
    _, _, *lines = [re.split("  +", line) for line in output.splitlines()]
    assert lines[: len(SCORES_BY_KIND)] == SCORES_BY_KIND
    assert page_in(guessed).table("Score by domain").rows == SCORES_BY_KIND
    assert last_record(guessed)["parts"]["domain: b"] == 0.5


def test_the_page_tells_which_queries_are_answered_in_full_in_part_or_not(guessed: Path) -> None:
    succeeds(evaluation("cloze", guessed))
    facts = page_in(guessed).tables[0]
    for name in ("Answered in full", "Answered in part", "Without a guess"):
        assert facts.row(name)[1] == "25.0%"


def test_booleans_may_be_numbers_or_texts(write: Write) -> None:
    """A boolean `NeedReasoning` is shown as True or False, however the file writes it.

    True and False are the words of the challenge's description. A text that is no boolean stays.
    """
    values = [True, 1, "True", "true ", False, 0, "False", "FALSE", "maybe", None]
    path = write(TRAIN, to_lines(*({"NeedReasoning": value} for value in values)))
    read = queries.read_queries(path, answers=True)["reasoning"].tolist()
    assert read == ["True"] * 4 + ["False"] * 4 + ["maybe", ""]


def test_the_simulated_test_file_has_only_ids_and_texts(challenge_kit: Kits) -> None:
    """A query of the test file has only an id and a text.

    The challenge's description gives no other keys for the test file.
    """
    data = challenge_kit("cloze") / FOLDER / "data/train_data"
    for line in (data / TRAIN).read_text().splitlines():
        assert list(json.loads(line)) == ["qid", "query", "answer", "domain", "NeedReasoning"]
    for line in (data / TEST).read_text().splitlines():
        assert list(json.loads(line)) == ["qid", "query"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,ret", '7,"[""x""]"'),
        ("id,Ret", '7,"[""x""]"'),
        ("Ret,id", '"[""x""]",7'),
        # If a file has a column "Ret" and a column "ret", the guesses are read from "ret".
        ("Ret,id,ret", '[],7,"[""x""]"'),
    ],
)
def test_both_spellings_of_the_guess_column_are_accepted(
    write: Write, header: str, row: str
) -> None:
    path = write("submission.csv", f"{header}\n{row}\n")
    assert queries.read_guesses(path, ["7"]) == [["x"]]


def test_another_name_of_the_guess_column_is_refused(write: Write) -> None:
    path = write("submission.csv", 'id,guess\n7,"[""x""]"\n')
    with pytest.raises(InputError, match="column 'ret' is missing, found: id, guess"):
        queries.read_guesses(path, ["7"])


def test_with_one_candidate_only_the_first_guess_counts(guessed: Path) -> None:
    # Only the first guess at query 0 is right. The first guess at query 2 is "y".
    assert "score 0.2500" in succeeds(evaluation("cloze", guessed, "--candidates", "1"))
    assert last_record(guessed)["rules"] == "first guess"


@pytest.mark.parametrize(
    ("flags", "score", "rules"), [([], 0, ""), (["--normalise"], 0.25, "normalised")]
)
def test_the_evaluation_also_has_the_challenges_name_and_may_normalise(
    write: Write, flags: list[str], score: float, rules: str
) -> None:
    """The evaluation can also be run as evaluate.py, the name of the challenge's own script.

    There are four queries. The right answer to query 0 is "x", and the only guess is "X.", at query
    0. Upper case is ignored. With the flag --normalise, punctuation is ignored, too, so that the
    guess is right. The record of the score names this rule.
    """
    # The domains of these queries, and whether they need reasoning, do not matter here.
    folder = write(TRAIN, to_lines(*QUERIES_OF_KINDS)).parent
    write("submission.csv", 'id,ret\n0,"[""X.""]"\n1,[]\n2,[]\n3,[]\n')
    # The first word of the command is the script. The flags that name the folders follow.
    _, *folder_flags = evaluation("cloze", folder)
    output = succeeds([f"{FOLDER}/evaluate.py", *folder_flags, *flags])
    assert f"score {score:.4f}" in output
    assert last_record(folder)["rules"] == rules


def test_the_number_of_guesses_can_be_raised(write: Write) -> None:
    """With the flag --candidates, a query may have more than five guesses.

    The challenge's description sets no limit to the number of guesses.
    """
    folder = write(TRAIN, to_lines({})).parent
    # The seventh guess is the right answer.
    write("submission.csv", 'id,ret\n0,"[""a"",""b"",""c"",""d"",""e"",""f"",""x""]"\n')
    evaluate = evaluation("cloze", folder)
    assert "holds 7 guesses, expected a JSON list of at most 5" in fails(evaluate)
    assert "score 1.0000" in succeeds([*evaluate, "--candidates", "7"])


def test_without_kinds_of_queries_there_are_no_scores_by_kind(write: Write) -> None:
    folder = write(TRAIN, to_lines({})).parent
    write("submission.csv", "id,ret\n0,[]\n")
    output = succeeds(evaluation("cloze", folder))
    assert "domain" not in output
    assert "domain" not in page_in(folder).text


@needs_blocks(f"{FOLDER}/sample_model_mix.py")
def test_as_many_candidates_are_written_as_asked(challenge_kit: Kits, tmp_path: Path) -> None:
    """The flag --candidates sets how many guesses a model writes for each query, the best first."""
    kit = challenge_kit("cloze")
    # The file TEST of the simulated data has 200 queries.
    lines = (kit / FOLDER / "data/train_data" / TEST).read_text().splitlines()
    ids = [json.loads(line)["qid"] for line in lines]
    path = tmp_path / "submission.csv"
    guesses_by_limit = {}
    for limit in (2, 9):
        flags = ["--output_dir", tmp_path, "--candidates", limit]
        succeeds([f"{FOLDER}/sample_model_mix.py", *flags], kit=kit)
        guesses_by_limit[limit] = queries.read_guesses(path, ids, candidates=limit)
    assert max(map(len, guesses_by_limit[9])) == 9
    assert guesses_by_limit[2] == [guesses[:2] for guesses in guesses_by_limit[9]]
    # check_submission.py accepts nine guesses if the flag allows them.
    check = [f"{FOLDER}/check_submission.py", path, "--candidates", "9"]
    assert "200 rows: every query of " in succeeds(check, kit=kit)


def test_models_do_not_see_the_answers_they_predict(write: Write) -> None:
    """A model scores 0 on held-out queries whose answers occur in no other query.

    A query is a sentence with a gap, and its answer fills the gap. The local split holds out some
    of the training queries, whose answers the model predicts. To keep the test short, all files lie
    in one folder.
    """
    # No answer occurs twice. So if a model predicts a held-out answer, it must have seen it.
    records: list[dict[str, object]] = []
    for number in range(40):
        query = f"person {number} was born in [MASK]."
        records.append({"query": query, "answer": [f"place{number}"]})
    folder = write(TRAIN, to_lines(*records)).parent
    flags = ["--input_dir", folder, "--output_dir", folder]
    local_flags = ["--local", "--submission_template_dir", folder]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    for model in ("frequent", "back_off", "nearest_queries", "mix"):
        succeeds([f"{FOLDER}/sample_model_{model}.py", *flags, *local_flags])
        succeeds(evaluation("cloze", folder))
        assert scores_in(folder)["score"] == 0


@needs_blocks(f"{FOLDER}/sample_model_frequent.py")
def test_the_score_on_real_queries_is_the_measured_one(real_data: Path, tmp_path: Path) -> None:
    input_dir = ["--input_dir", real_data / "related/cloze"]
    name = "KCT_train_public.reconstructed.txt"
    flags = [*input_dir, "--train_data", name, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    local = ["--local", "--submission_template_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_frequent.py", *flags, *local])
    succeeds(evaluation("cloze", tmp_path, *input_dir, "--ref_data", name))
    assert scores_in(tmp_path)["score"] == pytest.approx(0.2108, abs=1e-4)


LINE = '{"qid": "a", "query": "x [MASK]"}\n'


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(LINE.encode("utf-16"), id="UTF-16"),
        pytest.param(gzip.compress(LINE.encode()), id="gzip"),
    ],
)
def test_queries_may_be_utf_16_or_packed_by_gzip(write: Write, content: bytes) -> None:
    table = queries.read_queries(write("q.txt", content), answers=False)
    assert table["id"].tolist() == ["a"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "`git lfs pull`"),
        ("<!DOCTYPE html>", "is a web page"),
    ],
)
def test_other_formats_are_named(write: Write, content: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        queries.read_queries(write("q.txt", content), answers=False)
