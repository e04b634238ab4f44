"""Rules that the scripts of all four related challenges keep, from the sample to the score."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

    # The name of the metric, as the evaluation writes it into the record of scores.
    metric: str
    # A row that the first table on the page must have.
    row: list[str]
    # A text that check_submission.py must print.
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
# every machine. Models that are fitted by a solver depend on rounding, which differs between
# machines. If rounding changes 3 % of n predictions, the score has a standard deviation of
# √(0.03 / n). The tolerance is four of these, with n = 200 questions in the science exam and with
# n = 800 answers in student response.
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
    # The beginnings of the messages about the faults, in the order in which they are reported.
    messages: list[str]


# Faulty submissions, by challenge. Faults that every challenge can have are tested in cloze only.
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
# Valid contents of files that hold the right answers: a query of cloze, the header of the science
# exam, and a file of student response. WRONG damages them.
QUERY = '{"qid": "0", "query": "[MASK]", "answer": ["x"]}'
HEADER = "id,prompt,A,B,C,D,E,answer\n"
GOOD = question_file("a", {"a.1": "correct", "a.2": "irrelevant"})
# Malformed files of right answers. A key is the path of a file. Its value is a list of pairs: a
# malformed content of the file, and a part of the message about this content.
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


# The kit of `challenge_kit` has samples and folds made with seed 0. If a test makes them again with
# seed 0, they must equal the files in the kit. If it makes them with seed 1, they must differ.
SEEDS = pytest.mark.parametrize(("seed", "is_as_in_the_kit"), [(0, True), (1, False)])


@SEEDS
@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_seed_sets_the_sample(
    challenge: str, seed: int, is_as_in_the_kit: bool, challenge_kit: Kits, tmp_path: Path
) -> None:
    """Seed 0 gives the files of the kit, and seed 1 gives other files.

    All files of a sample are marked as simulated.
    """
    data = challenge_kit(challenge) / "related_challenges" / challenge / "data"
    script = f"related_challenges/{challenge}/generate_sample.py"

    succeeds([script, "--output_dir", tmp_path, "--seed", seed])

    paths = files_of_sample(tmp_path)
    assert paths
    are_equal = []
    for path in paths:
        path_in_kit = data / path.relative_to(tmp_path)
        are_equal.append(path.read_bytes() == path_in_kit.read_bytes())
    assert all(are_equal) == is_as_in_the_kit
    assert sorted(fingerprints.simulated_files(tmp_path)) == paths


def files_of_sample(folder: Path) -> list[Path]:
    """Return the files of a sample, sorted. They lie in folders such as train_data."""
    return sorted(path for path in folder.glob("*_data/**/*") if path.is_file())


@SEEDS
@pytest.mark.parametrize("challenge", [name for name in CHALLENGES if name != "debiasing"])
def test_a_seed_sets_the_folds(
    challenge: str, seed: int, is_as_in_the_kit: bool, challenge_kit: Kits, tmp_path: Path
) -> None:
    """Seed 0 gives the folds of the kit, and seed 1 gives other folds.

    The challenge "debiasing" is left out, since it has no folds.
    """
    data = challenge_kit(challenge) / "related_challenges" / challenge / "data"
    script = f"related_challenges/{challenge}/local_data_split.py"
    folders = ["--input_dir", data / "train_data", "--output_dir", tmp_path]

    succeeds([script, *folders, *SPLITS[challenge], "--seed", seed])

    folds_in_the_kit = (data / "test_input/folds.csv").read_bytes()
    folds_made = (tmp_path / "folds.csv").read_bytes()
    assert (folds_made == folds_in_the_kit) == is_as_in_the_kit
    # The record beside folds.csv names the files from which the folds were made. By this record,
    # the kit notices if the folds are used with other files.
    record = provenance.read(tmp_path / "folds.csv")
    assert record is not None
    # In student_response, the training files are all XML files. In the other challenges, there is
    # one training file, whose name holds "train".
    training_files = [*data.glob("train_data/*.xml"), *data.glob("train_data/*train*")]
    names_in_record = {Path(name).name for name in record.made_from}
    assert names_in_record == {path.name for path in training_files}


@pytest.mark.parametrize("challenge", CHALLENGES)
def test_a_missing_file_is_named(challenge: str, write: Write) -> None:
    """Each script names the missing file, and other files of the same type in the folder.

    The folder holds mine.txt and mine.csv. The challenge cloze looks for .txt files. The challenges
    debiasing and science_exam look for .csv files, and student_response looks for .xml files.
    """
    write("in/mine.txt", "")
    # check_submission.py gets mine.csv as the submission, so that only the input file is missing.
    submission = write("in/mine.csv", "id,label\n1,x\n")
    folder = submission.parent
    scripts = f"related_challenges/{challenge}"
    input_flags = ["--input_dir", folder]
    output_flags = ["--output_dir", folder.parent]
    commands = [
        [f"{scripts}/local_data_split.py", *input_flags, *output_flags],
        [f"{scripts}/sample_model_{quickest_model(challenge)}.py", *input_flags, *output_flags],
        [f"{scripts}/local_evaluation.py", *input_flags, *output_flags],
        [f"{scripts}/check_submission.py", *input_flags, submission],
    ]
    for command in commands:
        error = fails(command)
        # The message is "PATH: file not found" and perhaps a hint.
        assert ": file not found" in error
        missing_path, _, hint = error.partition(": file not found")
        missing = Path(missing_path)
        if challenge == "student_response":
            # The scripts read all .xml files of a folder, whatever their names. So the message
            # names the folder or FOLDER/*.xml. There is no .xml file that a hint could name.
            assert missing == folder or missing.parent == folder
        else:
            assert missing.parent == folder
            # The hint goes on with the file's type: "mine.csv" or "mine.txt".
            assert hint.startswith("; the folder holds mine.")


@dataclass(frozen=True)
class ScoredModel:
    """A sample model that was run with --local and scored on the sample of its challenge."""

    challenge: str
    model: str
    kit: Path
    # The folder to which the model writes its submission, and the evaluation its scores.
    folder: Path
    # The lines that the evaluation prints.
    printed: str

    @property
    def scripts(self) -> str:
        """The folder of the challenge's scripts."""
        return f"related_challenges/{self.challenge}"

    @property
    def predict(self) -> list[object]:
        """The command that writes the submission."""
        script = f"{self.scripts}/sample_model_{self.model}.py"
        return [script, "--local", "--output_dir", self.folder]

    @property
    def submission(self) -> Path:
        return self.folder / "submission.csv"

    @property
    def score_path(self) -> Path:
        """The text file of the scores."""
        return self.folder / f"scores_{self.challenge}.txt"

    @property
    def score(self) -> float:
        first_line, *_ = self.score_path.read_text().splitlines()
        return float(first_line.removeprefix("score:"))


@pytest.fixture(scope="module")
def scored_model(
    request: pytest.FixtureRequest, challenge_kit: Kits, tmp_path_factory: pytest.TempPathFactory
) -> ScoredModel:
    """Run and score a model; `request.param` holds the names of the challenge and of the model."""
    challenge, model = request.param
    folder = tmp_path_factory.mktemp(model)
    scored = ScoredModel(challenge, model, challenge_kit(challenge), folder, printed="")
    succeeds(scored.predict, kit=scored.kit)
    score_flags = ["--submission_dir", folder, "--output_dir", folder]
    printed = succeeds([f"{scored.scripts}/local_evaluation.py", *score_flags], kit=scored.kit)
    return replace(scored, printed=printed)


def model_parameter(challenge: str, model: str) -> Any:
    """Return a parameter for the fixture `scored_model`; it names a challenge and a model of it.

    Tests with this parameter are skipped if a user has edited the model.
    """
    needs_model = needs_blocks(f"related_challenges/{challenge}/sample_model_{model}.py")
    return pytest.param((challenge, model), marks=needs_model, id=f"{challenge}-{model}")


MODEL_PARAMETERS = [
    model_parameter(challenge, model) for challenge, models in SCORES.items() for model in models
]
QUICKEST_PARAMETERS = [
    model_parameter(challenge, quickest_model(challenge)) for challenge in CHALLENGES
]
every_model = pytest.mark.parametrize("scored_model", MODEL_PARAMETERS, indirect=True)
quickest_models = pytest.mark.parametrize("scored_model", QUICKEST_PARAMETERS, indirect=True)


@every_model
def test_every_model_has_the_expected_score(scored_model: ScoredModel) -> None:
    expected = SCORES[scored_model.challenge][scored_model.model]
    tolerance = TOLERANCE_OF_FITTED_MODELS.get(scored_model.model, TOLERANCE_OF_COUNTING_MODELS)
    assert scored_model.score == pytest.approx(expected, abs=tolerance)
    assert f"score {scored_model.score:.4f}" in scored_model.printed


@every_model
def test_every_model_repeats_itself(scored_model: ScoredModel) -> None:
    if scored_model.model == "ensemble":
        pytest.skip("the ensemble is too slow for a second run")
    first_content = scored_model.submission.read_bytes()
    succeeds(scored_model.predict, kit=scored_model.kit)
    assert scored_model.submission.read_bytes() == first_content


@quickest_models
def test_the_evaluation_names_the_files_that_it_writes(scored_model: ScoredModel) -> None:
    text_path = scored_model.score_path
    page_path = text_path.with_suffix(".html")
    assert scored_model.printed.endswith(f"written: {text_path}, {page_path}\n")


@quickest_models
def test_the_page_tells_the_score_and_what_was_scored(scored_model: ScoredModel) -> None:
    page = page_in(scored_model.folder)
    assert f" {scored_model.score:.4f} " in page.text
    assert "simulated" in page.text
    facts = page.tables[0]
    assert facts.row("Submission")[1] == str(scored_model.submission)
    expected_row = CHALLENGES[scored_model.challenge].row
    assert facts.row(expected_row[0]) == expected_row


@quickest_models
def test_the_record_tells_the_score_and_what_was_scored(scored_model: ScoredModel) -> None:
    record = last_record(scored_model.folder)
    assert record["task"] == scored_model.challenge
    assert record["model"] == scored_model.model
    assert record["score"] == scored_model.score
    assert record["metric_name"] == CHALLENGES[scored_model.challenge].metric
    assert record["origin"] == "simulated"
    assert f"sample_model_{scored_model.model}.py" in record["script"]
    # Debiasing is not split into folds.
    has_folds = scored_model.challenge != "debiasing"
    assert ("3 folds" in record["rules"]) == has_folds


@quickest_models
def test_the_check_accepts_the_submission_of_a_model(scored_model: ScoredModel) -> None:
    check = [f"{scored_model.scripts}/check_submission.py", scored_model.submission]
    checked = succeeds(check, kit=scored_model.kit)
    assert f"submission.csv: valid for {scored_model.challenge}\n" in checked
    assert CHALLENGES[scored_model.challenge].checked in checked
    assert len(checked.splitlines()) == 3


def check_faulty(challenge: str, write: Write, folder: Path) -> list[str]:
    """Write the faulty submission of a challenge and check it; return the faults.

    `write` writes into `folder`. The input files lie in the folder `in` beside the submission.
    """
    faulty = FAULTS[challenge]
    for name, content in faulty.files.items():
        write(f"in/{name}", content)
    submission = write("submission.csv", faulty.submission)
    check = [f"related_challenges/{challenge}/check_submission.py", submission]
    done = run([*check, "--input_dir", folder / "in"])
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    return [line.removeprefix("error: ") for line in lines]


@pytest.mark.parametrize("challenge", FAULTS)
def test_the_check_names_every_fault_of_a_submission(
    challenge: str, write: Write, tmp_path: Path
) -> None:
    faults = check_faulty(challenge, write, tmp_path)
    messages = FAULTS[challenge].messages
    for fault, message in zip(faults, messages, strict=True):
        assert fault.startswith(f"{tmp_path / 'submission.csv'}: {message}")


@pytest.mark.parametrize("challenge", FAULTS)
def test_the_evaluation_names_the_first_fault_of_a_submission_and_removes_older_scores(
    challenge: str, write: Write, tmp_path: Path
) -> None:
    first_fault, *_ = check_faulty(challenge, write, tmp_path)
    older_text = write(f"scores_{challenge}.txt", "older")
    older_page = write(f"scores_{challenge}.html", "older")
    flags = ["--submission_dir", tmp_path, "--output_dir", tmp_path, "--input_dir", tmp_path / "in"]
    assert fails([f"related_challenges/{challenge}/local_evaluation.py", *flags]) == first_fault
    assert not older_text.exists()
    assert not older_page.exists()
    assert not (tmp_path / "results.jsonl").exists()


def test_a_faulty_cell_and_a_missing_id_have_no_prediction(write: Write) -> None:
    """A submission must have a row with a number for each of the ids a, b and c.

    Here the row of b holds no number, and c has no row. Both get the prediction "", and both faults
    are reported. In particular, c must not get the prediction of another row.
    """
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
        # The check of the science exam has the flag --test_data, and finds a fault in the file.
        (
            ["--challenge", "science_exam", "--test_data", "test.csv"],
            "column 'prediction': row 2 is 'F'",
        ),
        # The check of the science exam has no flag --unobserved. (The checks of the tasks have it.)
        (
            ["--challenge", "science_exam", "--unobserved", "0"],
            "unrecognized arguments: --unobserved 0",
        ),
        # Without --challenge, the name of the file decides: the file is checked as a submission to
        # task 1. The check of task 1 has no flag --test_data.
        (["--test_data", "test.csv"], "unrecognized arguments: --test_data"),
    ],
)
def test_the_common_check_takes_the_flags_of_the_challenge_that_is_named(
    challenge_kit: Kits, write: Write, flags: list[str], message: str
) -> None:
    """tools/check_submission.py checks submissions to all tasks and challenges.

    The flag --challenge decides which check runs, even if the file is named like a submission to
    task 1, as it is here. The check takes only the flags of this challenge.
    """
    kit = challenge_kit("science_exam")
    path = write("mine_task_1.csv", "id,prediction\n0,F\n")
    done = run(["-m", "tools.check_submission", path, *flags], kit=kit)
    assert done.returncode == 2
    assert message in done.stderr


WRONG_CASES = []
for file_name, cases in WRONG.items():
    WRONG_CASES += [(file_name, content, message) for content, message in cases]


@pytest.mark.parametrize(("file", "content", "message"), WRONG_CASES)
def test_wrong_answers_are_refused(file: str, content: str, message: str, write: Write) -> None:
    path = write(file, content)
    flags = ["--input_dir", path.parent, "--output_dir", path.parent]
    line = fails([f"related_challenges/{path.parent.name}/local_evaluation.py", *flags])
    assert line.startswith(f"{path}: ")
    assert message in line


@pytest.fixture
def folds_file(monkeypatch: pytest.MonkeyPatch, write: Write) -> Path:
    """Write folds.csv, made from train.txt, and the record folds.json; return folds.csv."""
    # `write_files` writes the flags of the running script into the record. So act as if a script
    # were running with these flags.
    flags = "--output_dir x --folds 3 --input_dir=x --by_question --seed 1 --train_data a"
    monkeypatch.setattr("sys.argv", ["split.py", *flags.split()])
    source = write("train.txt", "x")
    path = source.with_name("folds.csv")
    table = {"id": ["01", "1", "b,c"], "fold": [2, 0, 1]}
    writing.write_files({path: table}, record=path.with_suffix(".json"), made_from=[source])
    return path


def test_folds_are_described_by_the_flags_that_made_them(folds_file: Path) -> None:
    """The description leaves out flags that name files and folders."""
    assert folds.describe_folds(folds_file) == "3 folds --by_question --seed 1"


def test_folds_without_a_record_are_described_by_a_fingerprint(folds_file: Path) -> None:
    """Folds without a record were not made by the kit's script, so nobody knows by which flags.

    Their description has a fingerprint of the folds in place of the flags.
    """
    folds_file.with_suffix(".json").unlink()
    assert folds.describe_folds(folds_file).startswith("3 folds ")


def test_folds_are_read_in_the_order_of_the_ids_asked_for(folds_file: Path) -> None:
    assert folds.read_folds(folds_file, ["b,c", "01", "1"]).tolist() == [1, 2, 0]


def test_folds_of_a_file_that_has_changed_are_refused(folds_file: Path) -> None:
    folds_file.with_name("train.txt").write_text("y")
    with pytest.raises(InputError, match="was made from other data"):
        folds.read_folds(folds_file, ["01", "1", "b,c"])
