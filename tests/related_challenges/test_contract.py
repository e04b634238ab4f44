"""Rules that the scripts of all four related challenges keep, from the sample to the score."""

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
    """Texts that the scripts of a challenge must show for the submission of its quickest model."""

    # The name of the metric in the record.
    metric: str
    # A row of the first table on the page.
    row: list[str]
    # A part of what check_submission.py prints.
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
# The score of every model on the sample of its challenge. The first model of each challenge is the
# quickest: tests that need only one model take this one.
SCORES = {
    "cloze": {"frequent": 0.3044, "back_off": 0.6433, "nearest_queries": 0.7411, "mix": 0.7311},
    "debiasing": {"popularity": 0.7291, "item_cf": 2.0816, "item_cf_time": 4.0178},
    "science_exam": {
        "constant": 0.3650, "word_overlap": 0.3967, "tfidf": 0.3192, "longest_option": 0.6767,
        "ranker": 0.7117, "ensemble": 0.6558,
    },
    "student_response": {"majority": 0.1166, "lexical_similarity": 0.7623, "word_svm": 0.8253},
}  # fmt: skip
# How far a score may differ from the expected one. Models that only count give the same score on
# every machine. Models that are fitted by a solver depend on rounding. If rounding changes 3 % of n
# predictions, the score has a standard deviation of √(0.03 / n). Their tolerance is four standard
# deviations, with n = 200 questions in the science exam, and n = 800 answers in student response.
TOLERANCE_OF_COUNTING_MODELS = 0.001
TOLERANCE_OF_FITTED_MODELS = {
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
# Valid contents of files of true answers.
QUERY = '{"qid": "0", "query": "[MASK]", "answer": ["x"]}'
HEADER = "id,prompt,A,B,C,D,E,answer\n"
GOOD = question_file("a", {"a.1": "correct", "a.2": "irrelevant"})
# Malformed files of true answers, by path, and a part of the message about each.
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


def quickest_model(challenge: str) -> str:
    """Return the name of the first model in `SCORES`, which is the quickest of the challenge."""
    return next(iter(SCORES[challenge]))


# The samples and folds of `challenge_kit` are made with seed 0.
SEEDS = pytest.mark.parametrize(("seed", "is_as_in_the_kit"), [(0, True), (1, False)])


@SEEDS
@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_seed_sets_the_sample(
    challenge: str, seed: int, is_as_in_the_kit: bool, challenge_kit: Kits, tmp_path: Path
) -> None:
    """All files of the sample are marked as simulated."""
    data = challenge_kit(challenge) / "related_challenges" / challenge / "data"
    script = f"related_challenges/{challenge}/generate_sample.py"

    succeeds([script, "--output_dir", tmp_path, "--seed", seed])

    paths = sorted(path for path in tmp_path.glob("*_data/**/*") if path.is_file())
    assert paths
    assert sorted(fingerprints.simulated_files(tmp_path)) == paths
    are_equal = [
        path.read_bytes() == (data / path.relative_to(tmp_path)).read_bytes() for path in paths
    ]
    assert all(are_equal) == is_as_in_the_kit


@SEEDS
@pytest.mark.parametrize("challenge", [name for name in CHALLENGES if name != "debiasing"])
def test_a_seed_sets_the_folds(
    challenge: str, seed: int, is_as_in_the_kit: bool, challenge_kit: Kits, tmp_path: Path
) -> None:
    """Debiasing has no folds."""
    data = challenge_kit(challenge) / "related_challenges" / challenge / "data"
    script = f"related_challenges/{challenge}/local_data_split.py"
    folders = ["--input_dir", data / "train_data", "--output_dir", tmp_path]

    succeeds([script, *folders, *SPLITS[challenge], "--seed", seed])

    folds_in_the_kit = (data / "test_input/folds.csv").read_bytes()
    folds_made = (tmp_path / "folds.csv").read_bytes()
    assert (folds_made == folds_in_the_kit) == is_as_in_the_kit
    # The record names all files that the folds come from, so that a use of the folds with other
    # files is noticed.
    made_from = vars(provenance.read(tmp_path / "folds.csv"))["made_from"]
    paths = [*data.glob("train_data/*.xml"), *data.glob("train_data/*train*")]
    assert {Path(name).name for name in made_from} == {path.name for path in paths}


@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_missing_file_is_named(challenge: str, write: Write) -> None:
    """The message also names the files of the same type that are in the folder."""
    # The files of cloze are .txt, those of debiasing and the science exam are .csv.
    write("in/mine.txt", "")
    submission = write("in/mine.csv", "id,label\n1,x\n")
    folder = submission.parent
    model = f"sample_model_{quickest_model(challenge)}"
    for script in ("local_data_split", model, "local_evaluation", "check_submission"):
        command = [f"related_challenges/{challenge}/{script}.py", "--input_dir", folder]
        if script == "check_submission":
            command.append(submission)
        else:
            command += ["--output_dir", folder.parent]

        line = fails(command)

        missing, separator, hint = line.partition(": file not found")
        assert separator
        if challenge == "student_response":
            # Files of questions may have any names, so the folder itself or *.xml is named.
            assert missing.rstrip("/") == str(folder) or Path(missing).parent == folder
        else:
            assert Path(missing).parent == folder
            assert hint.startswith("; the folder holds mine.")


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
    """With the quickest model, the page, the record and the check are tested too."""
    kit = challenge_kit(challenge)
    folder = f"related_challenges/{challenge}"
    submission = tmp_path / "submission.csv"
    predict = [f"{folder}/sample_model_{model}.py", "--local", "--output_dir", tmp_path]

    succeeds(predict, kit=kit)
    score_flags = ["--submission_dir", tmp_path, "--output_dir", tmp_path]
    printed = succeeds([f"{folder}/local_evaluation.py", *score_flags], kit=kit)

    score_path = tmp_path / f"scores_{challenge}.txt"
    score = float(score_path.read_text().splitlines()[0].removeprefix("score:"))
    tolerance = TOLERANCE_OF_FITTED_MODELS.get(model, TOLERANCE_OF_COUNTING_MODELS)
    assert score == pytest.approx(SCORES[challenge][model], abs=tolerance)
    assert f"score {score:.4f}" in printed
    # The ensemble is too slow for a second run.
    if model != "ensemble":
        first_content = submission.read_bytes()
        succeeds(predict, kit=kit)
        assert submission.read_bytes() == first_content
    if model == quickest_model(challenge):
        assert printed.endswith(f"written: {score_path}, {score_path.with_suffix('.html')}\n")
        require_page_and_record(challenge, submission, score)
        checked = succeeds([f"{folder}/check_submission.py", submission], kit=kit)
        assert f"submission.csv: valid for {challenge}\n" in checked
        assert CHALLENGES[challenge].checked in checked
        assert len(checked.splitlines()) == 3


def require_page_and_record(challenge: str, submission: Path, score: float) -> None:
    """Check the page and the record of the score that the challenge's quickest model has."""
    expected = CHALLENGES[challenge]
    model = quickest_model(challenge)

    page = page_in(submission.parent)
    assert f" {score:.4f} " in page.text
    assert "simulated" in page.text
    facts = page.tables[0]
    assert facts.row("Submission")[1] == str(submission)
    assert facts.row(expected.row[0]) == expected.row

    line = last_record(submission.parent)
    assert (line["task"], line["model"], line["score"]) == (challenge, model, score)
    assert line["metric_name"] == expected.metric
    assert line["origin"] == "simulated"
    assert f"sample_model_{model}.py" in line["script"]
    # Debiasing is not split into folds.
    assert ("3 folds" in line["rules"]) == (challenge != "debiasing")


@pytest.mark.parametrize("challenge", FAULTS)
def test_every_fault_of_a_submission_gets_a_message(
    challenge: str, write: Write, tmp_path: Path
) -> None:
    """The check names all faults. The evaluation names the first and removes older scores."""
    faulty = FAULTS[challenge]
    for name, content in faulty.files.items():
        write(f"in/{name}", content)
    submission = write("submission.csv", faulty.submission)
    folder = f"related_challenges/{challenge}"
    input_flags = ["--input_dir", tmp_path / "in"]

    done = run([f"{folder}/check_submission.py", submission, *input_flags])
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == len(faulty.messages)
    for line, message in zip(lines, faulty.messages, strict=True):
        assert line.startswith(f"error: {submission}: {message}")
    first_fault = lines[0].removeprefix("error: ")

    older_scores = [write(f"scores_{challenge}.{suffix}", "older") for suffix in ("txt", "html")]
    output_flags = ["--submission_dir", tmp_path, "--output_dir", tmp_path]
    # `fails` returns the only line on stderr, without "error: ".
    assert fails([f"{folder}/local_evaluation.py", *input_flags, *output_flags]) == first_fault
    assert not any(path.exists() for path in older_scores)
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


def test_the_common_check_finds_the_challenge_by_the_path_of_the_file(challenge_kit: Kits) -> None:
    kit = challenge_kit("science_exam")
    path = kit / "related_challenges/science_exam/data/train_data/sample_submission.csv"
    checked = succeeds(["-m", "tools.check_submission", path], kit=kit)
    assert "valid for science_exam" in checked


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        # Checked as a submission to the science exam, with a flag of its check.
        (
            ["--challenge", "science_exam", "--test_data", "test.csv"],
            "column 'prediction': row 2 is 'F'",
        ),
        # --unobserved is a flag of the tasks.
        (
            ["--challenge", "science_exam", "--unobserved", "0"],
            "unrecognized arguments: --unobserved 0",
        ),
        # Checked as a submission to task 1, since the file is called so. The task has no such flag.
        (["--test_data", "test.csv"], "unrecognized arguments: --test_data"),
    ],
)
def test_the_common_check_takes_the_flags_of_the_challenge_that_is_named(
    challenge_kit: Kits, write: Write, flags: list[str], message: str
) -> None:
    """--challenge decides which check runs, although the name of the file speaks of task 1."""
    kit = challenge_kit("science_exam")
    path = write("mine_task_1.csv", "id,prediction\n0,F\n")
    done = run(["-m", "tools.check_submission", path, *flags], kit=kit)
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
    assert line.startswith(f"{path}: ")
    assert message in line


def test_folds_are_described_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    """The description leaves out flags that name files and folders; folds of others are refused."""
    # The record of the folds holds the flags of the running script.
    flags = "--output_dir x --folds 3 --input_dir=x --by_question --seed 1 --train_data a"
    monkeypatch.setattr("sys.argv", ["split.py", *flags.split()])
    source = write("train.txt", "x")
    path = source.with_name("folds.csv")
    record = source.with_name("folds.json")
    table = {"id": ["01", "1", "b,c"], "fold": [2, 0, 1]}
    writing.write_files({path: table}, record=record, made_from=[source])

    assert folds.describe_folds(path) == "3 folds --by_question --seed 1"
    assert folds.read_folds(path, ["b,c", "01", "1"]).tolist() == [1, 2, 0]

    # The training file has changed since.
    source.write_text("y")
    with pytest.raises(InputError, match="was made from other data"):
        folds.read_folds(path, ["01", "1", "b,c"])

    # Without a record, folds are the user's own and are described by a fingerprint.
    record.unlink()
    assert folds.describe_folds(path).startswith("3 folds ")
