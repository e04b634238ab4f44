"""The simulated files are complete, reproducible, in the official formats and like real ones."""

import json
import shutil
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from common import fingerprints, layout
from common.tasks import TASKS

import generate_sample
import numpy as np
import pandas as pd
import pytest
from conftest import fails, run, succeeds
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from subject_tree import make_subjects

# Pairs of tasks that share their files, as they are written in the files' names.
GROUPS = ("1_2", "3_4")
IDS = ["QuestionId", "UserId", "AnswerId"]
PAIR_HEADER = ",".join(IDS)
ANSWER_HEADER = f"{PAIR_HEADER},IsCorrect,CorrectAnswer,AnswerValue"
MASKS = [f"IsTarget_{mask}" for mask in range(10)]
TRAIN = {group: f"train_data/train_task_{group}.csv" for group in GROUPS}
TEST = {
    "1_2": [f"test_data/{TASKS[1].answers_name(phase)}" for phase in layout.PHASES],
    "3_4": [f"test_data/{TASKS[4].answers_name(phase)}" for phase in layout.PHASES],
}
PICTURES = {f"images/{question}.jpg" for question in range(80)}
# The first line of CSV files, by the path of the file. `{group}` stands for "1_2" (tasks 1 and 2)
# or "3_4", and `{phase}` stands for the name of a phase.
HEADER_BY_PATTERN = {
    "train_data/train_task_{group}.csv": ANSWER_HEADER,
    "metadata/subject_metadata.csv": "\ufeffSubjectId,Name,ParentId,Level",
    "metadata/question_metadata_task_{group}.csv": "QuestionId,SubjectId",
    "metadata/student_metadata_task_{group}.csv": "UserId,Gender,DateOfBirth,PremiumPupil",
    "metadata/answer_metadata_task_{group}.csv": "AnswerId,DateAnswered,Confidence,GroupId,"
    "QuizId,SchemeOfWorkId",
    "test_data/test_{phase}_answers_task_1.csv": f"{PAIR_HEADER},IsCorrect",
    "test_data/test_{phase}_answers_task_2.csv": f"{PAIR_HEADER},AnswerValue",
    "test_data/test_{phase}_task_4_more_splits.csv": ",".join([ANSWER_HEADER, *MASKS]),
    "test_data/test_private_task_4.csv": f"{ANSWER_HEADER},IsTarget",
    "test_data/quality_response_remapped_{phase}.csv": ",Unnamed: 0,left,right,T1_ALR,T2_CL,"
    "T3_GF,T4_MQ,T5_NS",
    "submission_templates/submission_task_1_2.csv": f",{PAIR_HEADER}",
    "submission_templates/submission_task_3.csv": "QuestionId,ranking",
}
HEADERS: dict[str, str] = {}
for pattern, first_line in HEADER_BY_PATTERN.items():
    for task_group in GROUPS:
        for phase_name in layout.PHASES:
            HEADERS[pattern.format(group=task_group, phase=phase_name)] = first_line


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of data that were simulated at the size "tiny"; tests only read it."""
    folder = tmp_path_factory.mktemp("simulated") / "data"
    generate_sample.generate(folder, "tiny", 0)
    return folder


@pytest.fixture
def data(tree: Path, tmp_path: Path) -> Path:
    """Return a copy of the simulated data in `tree` that the test may change."""
    return Path(shutil.copytree(tree, tmp_path / "data"))


def read(tree: Path, name: str, **options: Any) -> Any:
    """Return a simulated table."""
    return pd.read_csv(tree / name, encoding="utf-8-sig", **options)


def all_answers(tree: Path, group: str) -> Any:
    """Return the training and test answers of two tasks ("1_2" or "3_4") as one table."""
    return pd.concat([read(tree, name) for name in (TRAIN[group], *TEST[group])])


def content(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder, by their path in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# ---- The files ---------------------------------------------------------------------------------


def test_every_official_file_is_there_with_its_header(tree: Path) -> None:
    headers = {}
    for name, text in content(tree).items():
        if name.endswith(".csv"):
            first_line, *_ = text.split(b"\n")
            headers[name] = first_line.decode()
    assert headers == HEADERS


def test_all_files_but_templates_are_marked_as_simulated(tree: Path) -> None:
    marker = json.loads((tree / layout.SIMULATED_MARKER_NAME).read_text())
    assert marker["size"] == "tiny"
    assert marker["seed"] == 0
    marked = {name for name in HEADERS if not name.startswith("submission_templates")} | PICTURES
    assert marker["files"].keys() == marked
    assert set(fingerprints.simulated_files(tree)) == {tree / name for name in marked}


def test_every_question_has_a_picture_of_its_own(tree: Path) -> None:
    assert len({(tree / name).read_bytes() for name in PICTURES}) == 80
    with Image.open(tree / "images/0.jpg") as image:
        assert image.size == (240, 180)


# ---- Answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "n_questions", "n_students", "n_answers"),
    [("1_2", 100, 240, 16_000), ("3_4", 80, 250, 14_725)],
)
def test_ids_count_from_0_without_gaps(
    tree: Path, group: str, n_questions: int, n_students: int, n_answers: int
) -> None:
    """The ids in all files of a group of tasks, taken together, count from 0.

    A group is two tasks that share files: "1_2" stands for tasks 1 and 2. AnswerIds are in random
    order.
    """
    answers = all_answers(tree, group)
    assert len(answers) == n_answers
    assert sorted(answers.QuestionId.unique()) == list(range(n_questions))
    assert sorted(answers.UserId.unique()) == list(range(n_students))
    assert sorted(answers.AnswerId.unique()) == list(range(n_answers))
    # AnswerIds do not rise with the UserId or with the row of the file. So the correlations are 0,
    # with a standard error of at most 1 / √14,725 = 0.008.
    row = np.arange(n_answers)
    for order in (answers.UserId, row):
        correlation = np.corrcoef(answers.AnswerId, order)[0, 1]
        assert abs(correlation) < 0.05


@pytest.mark.parametrize("group", GROUPS)
def test_a_student_answers_a_question_once(tree: Path, group: str) -> None:
    assert not all_answers(tree, group).duplicated(["UserId", "QuestionId"]).any()


@pytest.mark.parametrize(("group", "least"), [("1_2", 50), ("3_4", 5)])
def test_students_and_questions_have_enough_answers(tree: Path, group: str, least: int) -> None:
    answers = all_answers(tree, group)
    assert answers.UserId.value_counts().min() >= 50
    assert answers.QuestionId.value_counts().min() >= least


@pytest.mark.parametrize(("group", "n_constant", "n_changed"), [("1_2", 100, 0), ("3_4", 77, 3)])
def test_the_right_option_changes_in_as_few_questions_as_in_the_official_files(
    tree: Path, group: str, n_constant: int, n_changed: int
) -> None:
    # In three questions of tasks 3/4, the correct option is not the same in all answers.
    answers = all_answers(tree, group).dropna()
    n_correct_options = answers.groupby("QuestionId").CorrectAnswer.nunique()
    assert sorted(n_correct_options) == [1] * n_constant + [2] * n_changed


@pytest.mark.parametrize("phase", layout.PHASES)
def test_tasks_1_and_2_test_the_same_answers(tree: Path, phase: str) -> None:
    outcomes = read(tree, f"test_data/{TASKS[1].answers_name(phase)}")
    options = read(tree, f"test_data/{TASKS[2].answers_name(phase)}")
    assert len(outcomes) == 1_600
    assert outcomes[IDS].equals(options[IDS])
    # The file of task 1 says which answers are right. In exactly these answers, the chosen option
    # (from the file of task 2) must be the right option (from the training file).
    train = read(tree, TRAIN["1_2"])
    right_option = train.groupby("QuestionId").CorrectAnswer.first()
    chooses_right_option = options.AnswerValue == options.QuestionId.map(right_option)
    assert (outcomes.IsCorrect == chooses_right_option).all()


def test_tasks_3_and_4_are_split_by_students(tree: Path) -> None:
    students = [set(read(tree, name).UserId) for name in (TRAIN["3_4"], *TEST["3_4"])]
    assert [len(part) for part in students] == [200, 25, 25]
    assert len(set.union(*students)) == 250


@pytest.mark.parametrize("name", TEST["3_4"])
def test_each_of_ten_masks_hides_a_fifth_of_every_students_answers(tree: Path, name: str) -> None:
    masked = read(tree, name)
    assert masked[MASKS].mean().between(0.14, 0.26).all()
    of_students = masked.groupby("UserId")[MASKS]
    assert of_students.min().eq(0).all(axis=None)
    assert of_students.max().eq(1).all(axis=None)


def test_the_file_with_one_mask_holds_the_answers_of_the_private_phase(tree: Path) -> None:
    single = read(tree, "test_data/test_private_task_4.csv")
    private = read(tree, f"test_data/{TASKS[4].answers_name('private')}")
    columns = ANSWER_HEADER.split(",")
    assert single[columns].equals(private[columns])
    assert set(single.IsTarget) == {0, 1}


# ---- Metadata ----------------------------------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_metadata_of_answers_describe_every_answer_with_gaps(tree: Path, group: str) -> None:
    metadata = read(tree, f"metadata/answer_metadata_task_{group}.csv", dtype=str)
    assert 0 < metadata.AnswerId.isna().sum() < 0.01 * len(metadata)
    metadata = metadata.dropna(subset="AnswerId")
    assert metadata.AnswerId.str.fullmatch(r"\d+\.0").all()
    answers = all_answers(tree, group)
    assert sorted(metadata.AnswerId.astype(float)) == sorted(answers.AnswerId)
    assert metadata.Confidence.isna().mean() > 0.85
    assert set(metadata.Confidence.dropna()) == {"0.0", "25.0", "50.0", "75.0", "100.0"}


@pytest.mark.parametrize(("group", "first_day"), [("1_2", "2018-09-03"), ("3_4", "2020-01-06")])
def test_answers_are_given_on_weekdays_of_the_official_months(
    tree: Path, group: str, first_day: str
) -> None:
    metadata = read(tree, f"metadata/answer_metadata_task_{group}.csv", dtype=str)
    dates = metadata.dropna(subset="AnswerId").DateAnswered
    assert dates.str.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:00\.000").all()
    dates = pd.to_datetime(dates)
    assert dates.min() >= pd.Timestamp(first_day)
    assert dates.max() < pd.Timestamp("2020-06-01")
    assert dates.dt.day_of_week.max() <= 4


@pytest.mark.parametrize("group", GROUPS)
def test_a_student_answers_a_quiz_of_at_most_ten_questions_in_one_class(
    tree: Path, group: str
) -> None:
    metadata = read(tree, f"metadata/answer_metadata_task_{group}.csv", dtype=str)
    metadata = metadata.dropna(subset="AnswerId")
    metadata["AnswerId"] = metadata.AnswerId.astype(float).astype(int)
    answers = all_answers(tree, group).merge(metadata, on="AnswerId")
    assert answers.groupby("QuizId").QuestionId.nunique().max() <= 10
    assert (answers.groupby(["UserId", "QuizId"]).GroupId.nunique() == 1).mean() > 0.95


@pytest.mark.parametrize("group", GROUPS)
def test_metadata_of_students_describe_every_student_with_gaps(tree: Path, group: str) -> None:
    students = read(tree, f"metadata/student_metadata_task_{group}.csv", dtype=str)
    assert sorted(students.UserId.astype(int)) == list(range(len(students)))
    assert {"0", "1", "2"} <= set(students.Gender) <= {"0", "1", "2", "3"}
    assert set(students.PremiumPupil.dropna()) == {"0.0", "1.0"}
    births = students.DateOfBirth.dropna()
    assert births.str.fullmatch(r"\d{4}-\d\d-01 00:00:00\.000").all()
    assert 0.15 < students.DateOfBirth.isna().mean() < students.PremiumPupil.isna().mean()


def test_subjects_are_sorted_and_their_names_differ(tree: Path) -> None:
    subjects = read(tree, "metadata/subject_metadata.csv", keep_default_na=False)
    assert len(subjects) == 388
    assert subjects.SubjectId.is_monotonic_increasing
    assert subjects.Name.is_unique


@pytest.mark.parametrize(("group", "n_questions"), [("1_2", 100), ("3_4", 80)])
def test_a_question_has_subjects_of_all_levels_with_their_parents(
    tree: Path, group: str, n_questions: int
) -> None:
    """A question has subjects of all four levels, and with each subject the subject's parent.

    The list of a question's subjects is sorted and names each subject once.
    """
    subjects = read(tree, "metadata/subject_metadata.csv", keep_default_na=False)
    level_by_subject = dict(zip(subjects.SubjectId, subjects.Level, strict=True))
    parent_by_subject = dict(zip(subjects.SubjectId, subjects.ParentId, strict=True))
    questions = read(tree, f"metadata/question_metadata_task_{group}.csv")
    assert sorted(questions.QuestionId) == list(range(n_questions))
    for ids in questions.SubjectId.map(json.loads):
        assert ids == sorted(set(ids))
        assert {level_by_subject[subject] for subject in ids} == {0, 1, 2, 3}
        # The subject at the root of the tree has no parent.
        parents = {parent_by_subject[subject] for subject in ids} - {"NULL"}
        assert {int(subject) for subject in parents} <= set(ids)


# ---- Judgements and templates ------------------------------------------------------------------


def test_judgements_look_like_the_official_ones(tree: Path) -> None:
    """Five experts judge 25 pairs of questions in the public file, and 25 in the private one.

    Each expert has a column; the names of these columns begin with T1 to T5. "1" means that the
    question in column `left` is better, and "2" that the question in column `right` is better.
    """
    public = read(tree, f"test_data/{TASKS[3].answers_name('public')}", dtype=str)
    private = read(tree, f"test_data/{TASKS[3].answers_name('private')}", dtype=str)
    judgements = pd.concat([public, private])
    assert len(public) == 25
    assert len(private) == 25
    # The pairs of both files together are numbered from 0. The column of these numbers has the same
    # name, "Unnamed: 0", in the official files.
    assert sorted(judgements["Unnamed: 0"].astype(int)) == list(range(50))
    assert set(judgements.T1_ALR) == {"1", "2"}
    assert set(judgements.T5_NS) == {"1", "2"}
    # Judgements are missing in column T4_MQ of the private file. Therefore pandas has written this
    # column with decimals in both files, as in the official files.
    assert set(judgements.T4_MQ.dropna()) == {"1.0", "2.0"}
    assert public.notna().all(axis=None)
    assert private.T4_MQ.isna().any()


def test_the_template_of_tasks_1_and_2_holds_the_pairs_of_both_phases(tree: Path) -> None:
    pairs = read(tree, "submission_templates/submission_task_1_2.csv")
    expected = pd.concat([read(tree, name) for name in TEST["1_2"]]).sort_values("AnswerId")
    assert pairs.iloc[:, 0].tolist() == list(range(len(pairs)))
    assert pairs[IDS].to_numpy().tolist() == expected[IDS].to_numpy().tolist()


def test_the_template_of_task_3_holds_all_questions(tree: Path) -> None:
    text = (tree / "submission_templates/submission_task_3.csv").read_text()
    assert text == "QuestionId,ranking\n" + "".join(f"{question},\n" for question in range(80))


def test_a_template_that_cannot_be_built_is_left_out_and_named(data: Path, tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    (data / "test_data/test_private_answers_task_1.csv").unlink()
    output = succeeds(["-m", "tools.templates", "--input_dir", data, "--output_dir", templates])
    assert "left out: submission_task_1_2.csv, because there is no" in output
    assert {path.suffix for path in templates.glob("*_task_3.*")} == {".csv", ".json"}


def test_it_is_an_error_if_no_template_can_be_built(data: Path, tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    (data / "test_data/test_private_answers_task_1.csv").unlink()
    (data / "metadata/question_metadata_task_3_4.csv").unlink()
    error = fails(["-m", "tools.templates", "--input_dir", data, "--output_dir", templates])
    assert error.startswith("no template can be built: submission_task_1_2")
    assert not templates.exists()


# ---- Flags -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_tree(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of `tree` in which a second simulation has replaced all files.

    The second simulation has another seed, and more questions in tasks 3 and 4. Tests only read the
    folder.
    """
    folder = Path(shutil.copytree(tree, tmp_path_factory.mktemp("other") / "data"))
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", folder]
    succeeds([*command, "--seed", 5, "--questions", 130])
    return folder


def test_another_seed_changes_the_files_and_is_recorded(tree: Path, other_tree: Path) -> None:
    train = TRAIN["1_2"]
    assert (other_tree / train).read_bytes() != (tree / train).read_bytes()
    marker = json.loads((other_tree / layout.SIMULATED_MARKER_NAME).read_text())
    assert marker["seed"] == 5
    training_files = set((other_tree / "train_data").iterdir())
    assert training_files <= set(fingerprints.simulated_files(other_tree))


@pytest.mark.parametrize(
    ("group", "n_questions", "n_answers"), [("1_2", 100, 12_800), ("3_4", 130, 12_000)]
)
def test_a_flag_sets_the_number_of_questions_of_tasks_3_and_4_alone(
    other_tree: Path, group: str, n_questions: int, n_answers: int
) -> None:
    """Without --questions, tasks 1 and 2 have 100 questions, and tasks 3 and 4 have 80.

    The number of answers does not depend on the flag.
    """
    questions = read(other_tree, f"metadata/question_metadata_task_{group}.csv")
    assert sorted(questions.QuestionId) == list(range(n_questions))
    assert len(read(other_tree, TRAIN[group])) == n_answers


def test_each_of_many_questions_has_five_answers(other_tree: Path) -> None:
    """Each question has at least five answers, even if there are many questions.

    To this end, the simulation exchanges answers to frequent questions for answers to rare ones.
    """
    answers = all_answers(other_tree, "3_4")
    assert answers.QuestionId.value_counts().min() >= 5
    assert not answers.duplicated(["QuestionId", "UserId"]).any()


def test_the_default_flags_restore_the_files(tree: Path, other_tree: Path, tmp_path: Path) -> None:
    """With default flags, data/generate_sample.py makes the same files again as in `tree`.

    The folder first holds a simulation with another seed and more questions. The script also
    removes the images of the additional questions.
    """
    folder = Path(shutil.copytree(other_tree, tmp_path / "data"))
    succeeds(["data/generate_sample.py", "--size", "tiny", "--output_dir", folder])
    assert content(folder) == content(tree)


def test_the_number_of_questions_must_be_in_the_range_of_the_flag(tmp_path: Path) -> None:
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", tmp_path]
    done = run([*command, "--questions", "79"])
    assert done.returncode == 2
    assert "79 is not from 80 to 5000" in done.stderr


def test_the_number_of_questions_must_fit_the_number_of_answers(tmp_path: Path) -> None:
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", tmp_path]
    reason = "3,000 questions are too many for 14,725 answers, expected at most 2,945"
    assert fails([*command, "--questions", 3000]).startswith(reason)


def test_the_number_of_questions_must_fit_the_answers_of_a_student() -> None:
    """A student answers at most 90 % of the questions, so too few questions are refused."""
    error = fails(["data/generate_sample.py", "--size", "full", "--questions", "313"])
    assert "expected at least 314" in error
    assert generate_sample.settings("full", 314)


def test_real_files_are_never_overwritten(data: Path) -> None:
    # This file stands for a file of real answers. It differs from the simulated file only in its
    # content, not in its size.
    real = data / TRAIN["1_2"]
    real.write_bytes(real.read_bytes().replace(b",1\n", b",2\n", 1))
    before = content(data)
    message = fails(["data/generate_sample.py", "--size", "tiny", "--output_dir", data])
    assert str(real) in message
    assert "--output_dir" in message
    assert content(data) == before


# ---- Likeness to the real answers --------------------------------------------------------------

DECILES = (0.1, 0.5, 0.9)


@cache
def simulate(size: str, tasks: str) -> Any:
    """Return the simulated answers of two tasks, with further variables such as quiz and cohort."""
    setting = getattr(generate_sample.settings(size), tasks)
    return generate_sample.simulate(np.random.default_rng(0), setting, make_subjects())


def majority_accuracy(train: Any, test: Any) -> float:
    """Return the accuracy of predicting for each question the outcome of most training answers."""
    share_right = train.groupby("QuestionId").IsCorrect.mean()
    prediction = test.QuestionId.map(share_right) > 0.5
    return float((prediction == test.IsCorrect).mean())


def rasch_accuracy(train: Any, test: Any) -> float:
    """Return the accuracy of a Rasch model: a logistic regression on students and questions."""
    columns = ["UserId", "QuestionId"]
    # A feature for each student and each question says whether the answer belongs to it.
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train[columns])
    # The ability of each student and the easiness of each question have a normal prior, whose
    # variance is C.
    model = LogisticRegression(C=2, fit_intercept=False, tol=1e-7)
    model.fit(encoder.transform(train[columns]), train.IsCorrect)
    return float(model.score(encoder.transform(test[columns]), test.IsCorrect))


def test_tasks_3_and_4_have_the_official_counts() -> None:
    answers = simulate("full", "tasks_3_4").answers
    counts = answers.groupby("part").UserId.value_counts()
    assert counts.groupby("part").size().tolist() == [4_918, 615, 615]
    assert counts.groupby("part").sum()[:2].tolist() == [1_382_727, 74_891]
    assert answers[answers.part == 0].QuestionId.nunique() == 948


# The next tests compare simulated answers with real answers. Their tolerances are not derived from
# standard errors: they say how much the two may differ.


def training_answers_of_tasks_3_and_4() -> Any:
    """Return the simulated training answers, at full size."""
    answers = simulate("full", "tasks_3_4").answers
    # Part 0 is the training file. Parts 1 and 2 are the public and private test files.
    return answers[answers.part == 0]


@pytest.mark.parametrize(
    ("part", "deciles"), [(0, [70, 262, 553]), (1, [57, 101, 225])], ids=["training", "public test"]
)
def test_students_of_tasks_3_and_4_have_as_many_answers_as_real_ones(
    part: int, deciles: list[int]
) -> None:
    answers = simulate("full", "tasks_3_4").answers
    n_answers = answers[answers.part == part].UserId.value_counts()
    assert n_answers.quantile(DECILES).to_numpy() == pytest.approx(deciles, rel=0.2)


def test_questions_of_tasks_3_and_4_have_as_many_answers_as_real_ones() -> None:
    """The expected deciles are published statistics of all 1,382,727 real training answers."""
    n_answers = training_answers_of_tasks_3_and_4().QuestionId.value_counts()
    deciles = n_answers.quantile(DECILES).tolist()
    assert np.log(deciles) == pytest.approx(np.log([81, 1684, 2647]), abs=0.3)


def test_questions_of_tasks_3_and_4_are_as_difficult_as_real_ones() -> None:
    """The expected figures are published statistics of all 1,382,727 real training answers."""
    train = training_answers_of_tasks_3_and_4()
    assert train.IsCorrect.mean() == pytest.approx(0.5373, abs=0.03)
    share_right = train.groupby("QuestionId").IsCorrect.mean()
    assert share_right.quantile(DECILES).tolist() == pytest.approx([0.306, 0.495, 0.725], abs=0.06)


def test_students_of_tasks_3_and_4_are_as_able_as_real_ones() -> None:
    """The expected deciles come from the 861 students whose answers are released in full."""
    share_right = training_answers_of_tasks_3_and_4().groupby("UserId").IsCorrect.mean()
    assert share_right.quantile(DECILES).tolist() == pytest.approx([0.32, 0.54, 0.80], abs=0.05)


def test_options_of_tasks_3_and_4_are_chosen_as_often_as_in_real_answers() -> None:
    chosen = training_answers_of_tasks_3_and_4().AnswerValue
    shares = chosen.value_counts(normalize=True).sort_index().tolist()
    assert shares == pytest.approx([0.241, 0.274, 0.279, 0.206], abs=0.03)


def test_tasks_3_and_4_are_as_hard_to_predict_as_the_real_answers() -> None:
    """A majority model and a Rasch model are as accurate on simulated as on real answers.

    The expected accuracies come from 1,785 real students, with a fifth of answers held out.
    """
    answers = simulate("full", "tasks_3_4").answers
    # Pick about as many simulated students as there were real ones: 30 % of 6,148, which is about
    # 1,800. Their UserIds are 0 to 6147.
    is_picked = np.random.default_rng(0).random(6148) < 0.3
    picked = answers[is_picked[answers.UserId]]
    is_held_out = np.random.default_rng(0).random(len(picked)) < 0.2
    train = picked[~is_held_out]
    test = picked[is_held_out]
    # Some 80,000 answers are predicted, so the standard error of an accuracy is only 0.0017.
    assert majority_accuracy(train, test) == pytest.approx(0.627, abs=0.015)
    assert rasch_accuracy(train, test) == pytest.approx(0.705, abs=0.015)


def test_the_limits_of_accuracy_in_tasks_3_and_4() -> None:
    """The limit is the accuracy of a model that knows the true probability of each answer.

    One limit is for predicting right or wrong, the other for predicting the chosen option.
    """
    limit_of_outcomes, limit_of_options = simulate("full", "tasks_3_4").limits.values()
    assert limit_of_outcomes == pytest.approx(0.759, abs=0.01)
    assert limit_of_options == pytest.approx(0.616, abs=0.01)


def judge_pairs(school: Any) -> Any:
    """Return judgements of 2,000 pairs of questions by simulated experts.

    A pair is a question on the left and a question on the right. The table has a row for each pair,
    with their QuestionIds in the columns `left` and `right`, and a column for each expert. A
    judgement of 2 prefers the question on the right.
    """
    # With each seed, `judge` makes a public and a private file. A file holds a table of 25 pairs of
    # questions. So 40 seeds make 2,000 pairs.
    tables = []
    for seed in range(40):
        for file in generate_sample.judge(np.random.default_rng(seed), school):
            tables += file.tables
    return pd.concat(tables)


def entropy_of_options(answers: Any) -> Any:
    """Return the entropy of the options that students choose, in the order of the QuestionIds."""
    share = answers.groupby("QuestionId").AnswerValue.value_counts(normalize=True)
    return -(share * np.log(share)).groupby("QuestionId").sum().to_numpy()


def test_experts_agree_with_each_other_and_with_the_answers() -> None:
    """Simulated experts agree with each other, and with the entropy of the options chosen.

    The experts judge a question's quality, with errors. The answers show this quality, too: the
    better a question, the higher is the entropy of the options that students choose.
    """
    school = simulate("full", "tasks_3_4")
    judged = judge_pairs(school)
    prefers_right_side = judged[list(generate_sample.EXPERTS)] == 2
    # The QuestionIds count from 0, so they are positions in `entropy`.
    entropy = entropy_of_options(school.answers)
    right_side_has_more_entropy = entropy[judged.right] > entropy[judged.left]

    # Real experts agree with the entropy on 52 % to 64 % of the 25 public pairs, and with each
    # other on 60 % to 76 %. On so few pairs, a share has a standard error of about 10 points.
    agrees_with_entropy = prefers_right_side.eq(right_side_has_more_entropy, axis=0)
    assert agrees_with_entropy.mean().between(0.54, 0.70).all()
    for one, other in combinations(prefers_right_side.columns, 2):
        share_of_agreement = (prefers_right_side[one] == prefers_right_side[other]).mean()
        assert 0.6 < share_of_agreement < 0.82


def correlation_in_groups(answers: Any, *by: str, max_size: int = 12) -> Any:
    """Return the correlation between the residuals of two answers in the same group.

    The answers of a group have equal values in the columns `by`, for instance the same student and
    the same quiz. A residual is IsCorrect minus the student's share of right answers. Groups of
    more than `max_size` answers are left out.
    """
    residual = answers.IsCorrect - answers.groupby("UserId").IsCorrect.transform("mean")
    table = answers.assign(residual=residual, square=residual**2)
    groups = table.groupby(list(by)).agg(
        size=("residual", "size"),
        sum_of_residuals=("residual", "sum"),
        sum_of_squares=("square", "sum"),
    )
    groups = groups[groups["size"] <= max_size]
    # In a group, the products r_i r_j of the residuals of all pairs i ≠ j sum to (Σ r)² − Σ r².
    sum_of_products = (groups["sum_of_residuals"] ** 2 - groups["sum_of_squares"]).sum()
    n_pairs = (groups["size"] * (groups["size"] - 1)).sum()
    # Residuals have the mean 0, so the mean product is their covariance and the mean square is
    # their variance.
    covariance = sum_of_products / n_pairs
    variance = (residual**2).mean()
    return covariance / variance


def test_tasks_1_and_2_have_the_official_counts() -> None:
    full = generate_sample.settings("full").tasks_1_2
    assert full.n_questions == 27_613
    assert full.students == (118_971,)
    # Four fifths of the answers are for training.
    assert sum(full.answers) * 4 // 5 == 15_867_850


def test_answers_in_a_quiz_are_correlated_as_in_a_real_sample() -> None:
    """Answers in a quiz are correlated, mostly because a quiz is easy for a whole class.

    The expected figures come from a real sample of 66 students.
    """
    answers = simulate("small", "tasks_1_2").answers
    assert answers.IsCorrect.mean() == pytest.approx(0.64, abs=0.03)
    within_student = correlation_in_groups(answers, "quiz", "UserId")
    assert within_student == pytest.approx(0.103, abs=0.03)
    within_class = correlation_in_groups(answers, "quiz", "cohort", max_size=10_000)
    assert 0.55 < within_class / within_student < 0.8


def test_students_who_are_surer_are_right_more_often() -> None:
    """The limits come from real answers, with a margin.

    Real answers are right in 28 % of cases at confidence 0, and in 75 % at confidence 100.
    """
    answers = simulate("small", "tasks_1_2").answers
    asked = answers[answers.confidence >= 0]
    by_level = asked.groupby("confidence").IsCorrect.mean()
    assert by_level.is_monotonic_increasing
    assert by_level[0] < 0.4
    assert by_level[100] > 0.7
    assert len(asked) / len(answers) == pytest.approx(0.064, abs=0.02)


def test_confidence_follows_the_option_chosen_and_not_the_right_one() -> None:
    """Among wrong answers, confidence is higher if the student chose a popular wrong option."""
    answers = simulate("small", "tasks_1_2").answers
    wrong = answers[answers.IsCorrect == 0]
    # The popularity of the option that a wrong answer chooses: the share of the wrong answers to
    # the question that choose this option.
    n_same_option = wrong.groupby(["QuestionId", "AnswerValue"]).AnswerValue.transform("size")
    n_wrong = wrong.groupby("QuestionId").AnswerValue.transform("size")
    popularity = n_same_option / n_wrong

    # The confidence -1 means that the student has stated none.
    has_confidence = wrong.confidence >= 0
    popular = wrong.confidence[has_confidence & (popularity > 0.5)]
    rare = wrong.confidence[has_confidence & (popularity < 0.25)]

    # There are 3,399 popular and 2,119 rare choices. Their confidences have a standard deviation of
    # 32 points, so the difference of the two means has a standard error of 0.9 points. The
    # difference is 16 points. If the simulator derived confidence from the right option instead of
    # the chosen option, the difference would be -4 points.
    assert popular.mean() - rare.mean() > 8
