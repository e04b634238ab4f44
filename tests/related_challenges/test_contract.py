"""Rules that the scripts of all four related challenges keep, from the sample to the score."""

import re
from dataclasses import dataclass
from pathlib import Path

from common import fingerprints, provenance, writing
from common.errors import InputError
from related_challenges import folds
from related_challenges.challenge import read_predictions

import pytest
from conftest import Write, fails, run, succeeds
from question_files import SPLITS, Kits, last_record, page_in, question_file
from sample_blocks import needs_blocks


@dataclass(frozen=True)
class Expected:
    """What scripts must say about the submission of the challenge's first model in SCORES."""

    # The name of the metric in the record.
    metric: str
    # A row of the first table on the page.
    row: list[str]
    # A part of the check's output.
    checked: str


CHALLENGES = {
    "cloze": Expected("token F1", ["Queries", "600"], "600 rows: every query of"),
    "debiasing": Expected(
        "NDCG@50 full, sum over the phases",
        ["Users scored", "398"],
        "50 different items each\ndifferent items recommended: ",
    ),
    "science_exam": Expected("MAP@3", ["Questions", "200"], "first guesses: A 200, B 0"),
    "student_response": Expected("macro F1", ["Answers", "800 to 20 questions"], "correct 100.0%"),
}
# The score of every model on the sample of its challenge. The first model is the quickest.
SCORES = {
    "cloze": {"frequent": 0.3044, "back_off": 0.6433, "nearest_queries": 0.7411, "mix": 0.7311},
    "debiasing": {"popularity": 0.7291, "item_cf": 2.0816, "item_cf_time": 4.0178},
    "science_exam": {
        "constant": 0.3650, "word_overlap": 0.3967, "tfidf": 0.3192, "longest_option": 0.6767,
        "ranker": 0.7117, "ensemble": 0.6558,
    },
    "student_response": {"majority": 0.1166, "lexical_similarity": 0.7424, "word_svm": 0.8071},
}  # fmt: skip
# How far a score may differ from the expected one. Models that count give the same score on every
# machine. The result of a solver depends on rounding. If rounding changes 3 % of n predictions, the
# score has a standard deviation of √(0.03 / n). The tolerance is four standard deviations, with
# n = 200 questions in the science exam, and n = 800 answers in student response.
INTERVAL_OF_COUNTS = 0.001
INTERVAL_OF_SOLVERS = {
    "ranker": 0.05,
    "ensemble": 0.05,
    "lexical_similarity": 0.025,
    "word_svm": 0.025,
}
QUERIES = "".join(f'{{"qid": "{i}", "query": "[MASK]", "answer": ["y"]}}\n' for i in "abc")
QUESTIONS = "id,prompt,A,B,C,D,E,answer\n1,Which?,a,b,c,d,e,A\n2,Why?,a,b,c,d,e,B\n"
ITEMS = ",".join(map(str, range(1, 51)))


@dataclass(frozen=True)
class Faulty:
    """A faulty submission."""

    # The input files by name.
    files: dict[str, str]
    submission: str
    # The beginning of the message about each fault, in order.
    messages: list[str]


# Faults that are possible in every challenge are tried in the first challenge only.
FAULTS = {
    "cloze": Faulty(
        {"KCT_train_public.txt": QUERIES, "KCT_test_public.txt": QUERIES},
        'id,ret\na,[]\na,[1]\nx,\nb,no\nd,"[""1"",""2"",""3"",""4"",""5"",""6""]"\n',
        [
            "column 'ret': row 4 is empty, expected",
            "column 'id': row 3 repeats 'a' of row 2",
            "column 'id': row 4 is 'x', which is not in the queries (2 such rows)",
            "1 of 3 ids are missing, first 'c'",
            "column 'ret': row 3 is '[1]'; row 5 is 'no'; row 6 holds 6 guesses, expected a JSON",
        ],
    ),
    "debiasing": Faulty(
        {
            "underexpose_train_click-0.csv": "1,2,0.5\n",
            "underexpose_test_qtime-0.csv": "11,0.5\n22,0.5\n33,0.5\n",
            "debias_track_answer.csv": "0,11,1,4\n0,22,1,4\n0,33,1,4\n",
        },
        f"11,x{ITEMS[1:]}\n\n22,2{ITEMS[1:]}\n22,{ITEMS}\n0,{ITEMS}\n",
        [
            "column 'item_1': row 1 is 'x', expected",
            "column 'user_id': row 4 repeats 22 of",
            "row 3: user 22 has only 49 different items",
            "1 of 3 test users are missing, the first with user_id",
        ],
    ),
    "science_exam": Faulty(
        {"train.csv": QUESTIONS, "test.csv": QUESTIONS},
        "id,prediction\n1,A F\n1,AB\n",
        [
            "column 'id': row 3 repeats '1'",
            "1 of 2 ids are missing, first '2'",
            "column 'prediction': row 2 is 'A F'; row 3 is 'AB', expected up to 3 of A, B",
        ],
    ),
    "student_response": Faulty(
        {"a.xml": question_file("a", {"a": "correct", "b": "incorrect"})},
        "id,label\na,irrelevant\nb,\n",
        [
            "column 'label': row 3 is empty, expected",
            "column 'label': row 2 is 'irrelevant', expected one of correct, incorrect",
        ],
    ),
}
# Malformed files of true answers, by path, and a part of the message about each.
QUERY = '{"qid": "0", "query": "[MASK]", "answer": ["x"]}'
HEADER = "id,prompt,A,B,C,D,E,answer\n"
GOOD = question_file("a", {"a.1": "correct", "a.2": "irrelevant"})
WRONG: dict[str, list[tuple[str, str]]] = {
    "cloze/KCT_train_public.txt": [
        (QUERY[:-3], "line 1 is not JSON"),
        ("[]", "line 1 holds no JSON object"),
        (QUERY.replace('"0"', "1"), "line 1: 'qid' is 1, expected text"),
        (QUERY.replace("MASK", "x"), "line 1: 'query' holds no [MASK]: '[x]'"),
        (QUERY.replace('["x"]', "[]"), "line 1: 'answer' is [], expected a list"),
        (QUERY.replace('["x"]', '"y"'), "line 1: 'answer' is 'y', expected a list"),
        (f"{QUERY}\n\n{QUERY}", "line 3 repeats qid '0' of line 1"),
        (QUERY.replace("]", r"]\ud800", 1), "line 1: 'query' holds a lone surrogate"),
        (QUERY.replace("}", ', "domain": ["a"]}'), "line 1: 'domain' is ['a'], expected text"),
        (QUERY.replace("}", ', "domain": 0.5}'), "'domain' is 0.5, expected text, a whole number"),
        ("\n", "is empty"),
    ],
    "debiasing/debias_track_answer.csv": [
        (
            "0,0,1,4\n1,13,1,4\n",
            "column 'user_id': row 2 is 13, who is no test user of phase 1, exp",
        ),
        ("0,0,1,4\n0,0,2,4\n", "column 'user_id': row 2 repeats 0 of row 1"),
    ],
    "science_exam/train.csv": [
        (f"{HEADER}0,Which?,a,b,c,d,e,F\n", "column 'answer': row 2 is 'F'"),
        (f"{HEADER}0,Which?,a,b,,d,e,A\n", "column 'C': row 2 is empty"),
        (HEADER + "0,Why?,a,b,c,d,e,A\n" * 2, "column 'id': row 3 repeats '0'"),
    ],
    "student_response/a.xml": [
        (GOOD[:200], "is not XML"),
        ("<answers/>", "holds <answers>, expected <question>"),
        (GOOD.replace("Why?", ""), "<questionText> is missing or empty"),
        (GOOD.replace("a.2", "a.1"), "line 4: studentAnswer 'a.1' is in "),
        (GOOD.replace(' accuracy="correct"', ""), "line 3: <studentAnswer> has no"),
        (GOOD.replace('"correct"', '"incorrect"'), "'a.1' is 'incorrect', expected one of"),
        (GOOD.replace('"correct"', '"\u202e"'), r"studentAnswer 'a.1' is '\u202e', expected"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_seed_sets_the_sample_and_the_folds(
    challenge: str, challenge_kit: Kits, tmp_path: Path
) -> None:
    """The sample is marked as simulated. The record of the folds names all files they come from."""
    data = challenge_kit(challenge) / "related_challenges" / challenge / "data"
    folder, flags = f"related_challenges/{challenge}", SPLITS[challenge]
    for seed, is_same in ((0, True), (1, False)):
        out, seeded = tmp_path / str(seed), ["--seed", seed]
        succeeds([f"{folder}/generate_sample.py", "--output_dir", out, *seeded])
        paths = sorted(path for path in out.glob("*_data/**/*") if path.is_file())
        assert sorted(fingerprints.simulated_files(out)) == paths != []
        same = [path.read_bytes() == (data / path.relative_to(out)).read_bytes() for path in paths]
        assert all(same) == is_same
        if flags:
            own = ["--input_dir", data / "train_data", "--output_dir", out, *flags, *seeded]
            succeeds([f"{folder}/local_data_split.py", *own])
            # The record names all files that the folds come from, so that a use of the folds with
            # other files is noticed.
            made_from = vars(provenance.read(out / "folds.csv"))["made_from"]
            paths = [*data.glob("train_data/*.xml"), *data.glob("train_data/*train*")]
            assert {Path(name).name for name in made_from} == {path.name for path in paths}
            original_folds = (data / "test_input/folds.csv").read_bytes()
            assert ((out / "folds.csv").read_bytes() == original_folds) == is_same


@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_missing_file_is_named(challenge: str, write: Write) -> None:
    write("in/mine.txt", "")
    folder = write("in/mine.csv", "id,label\n1,x\n").parent
    model = f"sample_model_{next(iter(SCORES[challenge]))}"
    for script in ("local_data_split", model, "local_evaluation", "check_submission"):
        own: list[object]
        if script == "check_submission":
            own = [folder / "mine.csv"]
        else:
            own = ["--output_dir", folder.parent]
        command = [f"related_challenges/{challenge}/{script}.py", *own, "--input_dir", folder]
        found = re.fullmatch(r"(.*)/in/?([^/]*): file not found(.*)", fails(command))
        assert found and found[1] == str(folder.parent)
        # In student_response, a folder without questions is named instead.
        if challenge != "student_response":
            assert found[2] and found[3].startswith("; the folder holds mine.")


@pytest.mark.parametrize(
    ("challenge", "model"),
    [
        pytest.param(
            challenge,
            model,
            marks=needs_blocks(f"related_challenges/{challenge}/sample_model_{model}.py"),
        )
        for challenge, models in SCORES.items()
        for model in models
    ],
)
def test_every_model_repeats_itself_and_has_the_expected_score(
    challenge: str, model: str, challenge_kit: Kits, tmp_path: Path
) -> None:
    """The score is printed, shown and recorded, and the check accepts the submission."""
    kit, folder = challenge_kit(challenge), f"related_challenges/{challenge}"
    local = [] if challenge == "student_response" else ["--local"]
    predict = [f"{folder}/sample_model_{model}.py", *local, "--output_dir", tmp_path]
    succeeds(predict, kit=kit)
    own = ["--submission_dir", tmp_path, "--output_dir", tmp_path]
    printed = succeeds([f"{folder}/local_evaluation.py", *own], kit=kit)
    text, page_path = (tmp_path / f"scores_{challenge}.{suffix}" for suffix in ("txt", "html"))
    value = float(text.read_text().splitlines()[0].removeprefix("score:"))
    interval = INTERVAL_OF_SOLVERS.get(model, INTERVAL_OF_COUNTS)
    assert value == pytest.approx(SCORES[challenge][model], abs=interval)
    assert f"score {value:.4f}" in printed
    # The ensemble is too slow for a second run.
    if model != "ensemble":
        content = (tmp_path / "submission.csv").read_bytes()
        succeeds(predict, kit=kit)
        assert (tmp_path / "submission.csv").read_bytes() == content
    # The page, the record and the check are tested with the challenge's first model only.
    if model != next(iter(SCORES[challenge])):
        return
    expected = CHALLENGES[challenge]
    assert printed.endswith(f"written: {text}, {page_path}\n")
    page = page_in(tmp_path)
    assert f" {value:.4f} " in page.text and "simulated" in page.text
    assert page.tables[0].row("Submission")[1] == str(tmp_path / "submission.csv")
    assert page.tables[0].row(expected.row[0]) == expected.row
    line = last_record(tmp_path)
    assert (line["task"], line["model"], line["score"]) == (challenge, model, value)
    assert (line["metric_name"], line["simulated"]) == (expected.metric, True)
    assert f"sample_model_{model}.py" in line["script"]
    assert ("3 folds" in line["rules"]) == (challenge != "debiasing")

    out = succeeds([f"{folder}/check_submission.py", tmp_path / "submission.csv"], kit=kit)
    assert f"submission.csv: valid for {challenge}\n" in out
    assert expected.checked in out
    assert len(out.splitlines()) == 3


@pytest.mark.parametrize("challenge", FAULTS)
def test_every_fault_of_a_submission_gets_a_message(
    challenge: str, write: Write, tmp_path: Path
) -> None:
    """The check names all faults. The evaluation names the first and removes older scores."""
    faulty = FAULTS[challenge]
    for name, content in faulty.files.items():
        write(f"in/{name}", content)
    path = write("submission.csv", faulty.submission)
    folder, given = f"related_challenges/{challenge}", ["--input_dir", tmp_path / "in"]
    done = run([f"{folder}/check_submission.py", path, *given])
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (2, "", len(faulty.messages))
    for line, message in zip(lines, faulty.messages, strict=True):
        assert line.startswith(f"error: {path}: {message}")
    older = [write(f"scores_{challenge}.{suffix}", "older") for suffix in ("txt", "html")]
    own = ["--submission_dir", tmp_path, "--output_dir", tmp_path]
    line = fails([f"{folder}/local_evaluation.py", *given, *own])
    assert line == lines[0].removeprefix("error: ")
    assert not any(path.exists() for path in older)
    assert not (tmp_path / "results.jsonl").exists()


def test_a_faulty_cell_and_a_missing_id_have_no_prediction(write: Write) -> None:
    """A missing id does not get the prediction of another row."""
    path = write("submission.csv", "id,points\nb,x\na,1\n")
    faults: list[str] = []
    predictions = read_predictions(
        path,
        "points",
        ["a", "b", "c"],
        source_of_ids="the questions",
        parse=int,
        expected="a number",
        report=faults.append,
    )
    assert predictions == [1, "", ""]
    assert len(faults) == 2


def test_the_common_check_finds_the_challenge(challenge_kit: Kits, write: Write) -> None:
    """The challenge is told by the path of the file or by --challenge.

    Flags of tasks are then refused.
    """
    kit = challenge_kit("science_exam")
    inside = kit / "related_challenges/science_exam/data/train_data/sample_submission.csv"
    check = ["-m", "tools.check_submission"]
    assert "valid for science_exam" in succeeds([*check, inside], kit=kit)
    path, named = write("mine_task_1.csv", "id,prediction\n0,F\n"), ["--challenge", "science_exam"]
    for flags, message in (
        ([*named, "--test_data", "test.csv"], "column 'prediction': row 2 is 'F'"),
        ([*named, "--unobserved", "0"], "unrecognized arguments: --unobserved 0"),
        (["--test_data", "test.csv"], "unrecognized arguments: --test_data"),
    ):
        done = run([*check, path, *flags], kit=kit)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [(name, *case) for name, cases in WRONG.items() for case in cases],
)
def test_wrong_answers_are_refused(file: str, content: str, message: str, write: Write) -> None:
    path = write(file, content)
    flags = ["--input_dir", path.parent, "--output_dir", path.parent]
    line = fails([f"related_challenges/{path.parent.name}/local_evaluation.py", *flags])
    assert line.startswith(f"{path}: ") and message in line


def test_folds_are_described_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    flags = "--output_dir x --folds 3 --input_dir=x --by_question --seed 1 --train_data a"
    monkeypatch.setattr("sys.argv", ["split.py", *flags.split()])
    source = write("train.txt", "x")
    path, record = source.with_name("folds.csv"), source.with_name("folds.json")
    table = {"id": ["01", "1", "b,c"], "fold": [2, 0, 1]}
    writing.write_files({path: table}, record=record, made_from=[source])
    assert folds.describe_folds(path) == "3 folds --by_question --seed 1"
    assert folds.read_folds(path, ["b,c", "01", "1"]).tolist() == [1, 2, 0]
    source.write_text("y")
    with pytest.raises(InputError, match="was made from other data"):
        folds.read_folds(path, ["01", "1", "b,c"])
    record.unlink()
    # Without a record, folds are the user's own and are described by a fingerprint.
    assert folds.describe_folds(path).startswith("3 folds ")
