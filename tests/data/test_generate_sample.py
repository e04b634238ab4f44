"""The simulated files: complete, in the official formats, reproducible, and like the real ones."""

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

GROUPS = ("1_2", "3_4")
IDS = ["QuestionId", "UserId", "AnswerId"]
PAIR = ",".join(IDS)
ANSWER = f"{PAIR},IsCorrect,CorrectAnswer,AnswerValue"
MASKS = [f"IsTarget_{mask}" for mask in range(10)]
TRAIN = {group: f"train_data/train_task_{group}.csv" for group in GROUPS}
TEST = {
    "1_2": [f"test_data/{TASKS[1].answers_name(phase)}" for phase in layout.PHASES],
    "3_4": [f"test_data/{TASKS[4].answers_name(phase)}" for phase in layout.PHASES],
}
PICTURES = {f"images/{question}.jpg" for question in range(80)}
HEADERS = {
    name.format(group=group, phase=phase): header
    for group, phase in zip(GROUPS, layout.PHASES, strict=True)
    for name, header in {
        "train_data/train_task_{group}.csv": ANSWER,
        "metadata/subject_metadata.csv": "\ufeffSubjectId,Name,ParentId,Level",
        "metadata/question_metadata_task_{group}.csv": "QuestionId,SubjectId",
        "metadata/student_metadata_task_{group}.csv": "UserId,Gender,DateOfBirth,PremiumPupil",
        "metadata/answer_metadata_task_{group}.csv": "AnswerId,DateAnswered,Confidence,GroupId,"
        "QuizId,SchemeOfWorkId",
        "test_data/test_{phase}_answers_task_1.csv": f"{PAIR},IsCorrect",
        "test_data/test_{phase}_answers_task_2.csv": f"{PAIR},AnswerValue",
        "test_data/test_{phase}_task_4_more_splits.csv": ",".join([ANSWER, *MASKS]),
        "test_data/test_private_task_4.csv": f"{ANSWER},IsTarget",
        "test_data/quality_response_remapped_{phase}.csv": ",Unnamed: 0,left,right,T1_ALR,T2_CL,"
        "T3_GF,T4_MQ,T5_NS",
        "submission_templates/submission_task_1_2.csv": f",{PAIR}",
        "submission_templates/submission_task_3.csv": "QuestionId,ranking",
    }.items()
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny simulated tree: only read from it."""
    folder = tmp_path_factory.mktemp("simulated") / "data"
    generate_sample.generate(folder, "tiny", 0)
    return folder


@pytest.fixture
def data(tree: Path, tmp_path: Path) -> Path:
    """Return a copy of the tree that a test may change."""
    return Path(shutil.copytree(tree, tmp_path / "data"))


def read(tree: Path, name: str, **options: Any) -> Any:
    return pd.read_csv(tree / name, encoding="utf-8-sig", **options)


def all_answers(tree: Path, group: str) -> Any:
    return pd.concat([read(tree, name) for name in (TRAIN[group], *TEST[group])])


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_official_file_is_there_and_marked_as_simulated(tree: Path) -> None:
    files = content(tree)
    tables = {name: data for name, data in files.items() if name.endswith(".csv")}
    assert {name: data.split(b"\n")[0].decode() for name, data in tables.items()} == HEADERS
    marker = json.loads(files[layout.SIMULATED_MARKER_NAME])
    assert (marker["size"], marker["seed"]) == ("tiny", 0)
    marked = {name for name in HEADERS if not name.startswith("submission_templates")} | PICTURES
    assert marker["files"].keys() == marked
    assert set(fingerprints.simulated_files(tree)) == {tree / name for name in marked}
    assert len({files[name] for name in PICTURES}) == 80
    with Image.open(tree / "images/0.jpg") as image:
        assert image.size == (240, 180)


@pytest.mark.parametrize(
    ("group", "sizes", "least", "n_changed_keys"),
    [("1_2", (100, 240, 16_000), 50, 0), ("3_4", (80, 250, 14_725), 5, 3)],
)
def test_answers_keep_the_rules_of_the_official_files(
    tree: Path, group: str, sizes: tuple[int, ...], least: int, n_changed_keys: int
) -> None:
    answers = all_answers(tree, group)
    assert not answers.duplicated(["UserId", "QuestionId"]).any()
    # Ids count from 0 without gaps; those of answers run through all files, in no order.
    for name, n in zip(IDS, sizes, strict=True):
        assert sorted(answers[name].unique()) == list(range(n))
    assert len(answers) == sizes[-1]
    for other in (answers.UserId, np.arange(len(answers))):
        assert abs(np.corrcoef(answers.AnswerId, other)[0, 1]) < 0.05
    assert answers.UserId.value_counts().min() >= 50
    assert answers.QuestionId.value_counts().min() >= least
    keys = answers.dropna().groupby("QuestionId").CorrectAnswer.nunique()
    assert sorted(keys) == [1] * (sizes[0] - n_changed_keys) + [2] * n_changed_keys


def test_tasks_1_2_are_split_by_answers_and_tasks_3_4_by_students(tree: Path) -> None:
    train = read(tree, TRAIN["1_2"])
    key = train.groupby("QuestionId").CorrectAnswer.first()
    for phase in layout.PHASES:
        names = [f"test_data/{TASKS[task].answers_name(phase)}" for task in (1, 2)]
        first, second = (read(tree, name) for name in names)
        assert len(first) == 1_600
        assert first[IDS].equals(second[IDS])
        # The two files agree on the key that the training file shows.
        assert (first.IsCorrect == (second.AnswerValue == second.QuestionId.map(key))).all()
    students = [set(read(tree, name).UserId) for name in (TRAIN["3_4"], *TEST["3_4"])]
    assert [len(part) for part in students] == [200, 25, 25]
    assert len(set.union(*students)) == 250
    # Ten masks hide a fifth of the answers each.
    for name in TEST["3_4"]:
        masked = read(tree, name)
        assert masked[MASKS].mean().between(0.14, 0.26).all()
        assert masked.groupby("UserId")[MASKS].agg(["min", "max"]).eq([0, 1] * 10).all(axis=None)
    single = read(tree, "test_data/test_private_task_4.csv")
    assert single[ANSWER.split(",")].equals(masked[ANSWER.split(",")])
    assert set(single.IsTarget) == {0, 1}


@pytest.mark.parametrize("group", GROUPS)
def test_metadata_describe_every_answer_and_student_with_gaps(tree: Path, group: str) -> None:
    metadata = read(tree, f"metadata/answer_metadata_task_{group}.csv", dtype=str)
    assert 0 < metadata.AnswerId.isna().sum() < 0.01 * len(metadata)
    metadata = metadata.dropna(subset="AnswerId")
    assert metadata.AnswerId.str.fullmatch(r"\d+\.0").all()
    answers = all_answers(tree, group)
    metadata["AnswerId"] = metadata.AnswerId.astype(float).astype(int)
    assert sorted(metadata.AnswerId) == sorted(answers.AnswerId)
    assert metadata.Confidence.isna().mean() > 0.85
    assert set(metadata.Confidence.dropna()) == {"0.0", "25.0", "50.0", "75.0", "100.0"}
    assert metadata.DateAnswered.str.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:00\.000").all()
    date = pd.to_datetime(metadata.DateAnswered)
    assert date.min() >= pd.Timestamp("2018-09-03" if group == "1_2" else "2020-01-06")
    assert date.max() < pd.Timestamp("2020-06-01")
    assert date.dt.day_of_week.max() <= 4
    # A student answers a quiz of ten in one class.
    joined = answers.merge(metadata, on="AnswerId")
    assert joined.groupby("QuizId").QuestionId.nunique().max() <= 10
    assert (joined.groupby(["UserId", "QuizId"]).GroupId.nunique() == 1).mean() > 0.95

    students = read(tree, f"metadata/student_metadata_task_{group}.csv", dtype=str)
    assert sorted(students.UserId.astype(int)) == list(range(len(students)))
    assert {"0", "1", "2"} <= set(students.Gender) <= {"0", "1", "2", "3"}
    premium, births = students.PremiumPupil.dropna(), students.DateOfBirth.dropna()
    assert set(premium) == {"0.0", "1.0"}
    assert births.str.fullmatch(r"\d{4}-\d\d-01 00:00:00\.000").all()
    assert 0.15 < students.DateOfBirth.isna().mean() < students.PremiumPupil.isna().mean()


def test_subjects_are_a_tree_and_questions_hang_in_it(tree: Path) -> None:
    subjects = read(tree, "metadata/subject_metadata.csv", keep_default_na=False)
    assert len(subjects) == 388
    assert subjects.SubjectId.is_monotonic_increasing and subjects.Name.is_unique
    # That they are a tree, the kit's reader checks for the page about the data.
    level = dict(zip(subjects.SubjectId, subjects.Level, strict=True))
    parent = dict(zip(subjects.SubjectId, subjects.ParentId, strict=True))
    for group, n_questions in (("1_2", 100), ("3_4", 80)):
        questions = read(tree, f"metadata/question_metadata_task_{group}.csv")
        assert sorted(questions.QuestionId) == list(range(n_questions))
        for own in questions.SubjectId.map(json.loads):
            assert own == sorted(set(own))
            assert {level[subject] for subject in own} == {0, 1, 2, 3}
            assert all(parent[subject] == "NULL" or int(parent[subject]) in own for subject in own)


def test_judgements_and_templates_look_like_the_official_ones(tree: Path) -> None:
    names = [f"test_data/{TASKS[3].answers_name(phase)}" for phase in layout.PHASES]
    public, private = (read(tree, name, dtype=str) for name in names)
    both = pd.concat([public, private])
    assert len(public) == len(private) == 25
    assert sorted(both["Unnamed: 0"].astype(int)) == list(range(50))
    assert set(both.T1_ALR) == set(both.T5_NS) == {"1", "2"}
    # One column is written with decimals, since it has gaps; they are all in the private file.
    assert set(both.T4_MQ.dropna()) == {"1.0", "2.0"}
    assert public.notna().all(axis=None) and private.T4_MQ.isna().any()
    # The pairs of both phases, and all questions.
    pairs = read(tree, "submission_templates/submission_task_1_2.csv")
    wanted = pd.concat([read(tree, name) for name in TEST["1_2"]]).sort_values("AnswerId")
    assert pairs.iloc[:, 0].tolist() == list(range(len(pairs)))
    assert pairs[IDS].to_numpy().tolist() == wanted[IDS].to_numpy().tolist()
    text = (tree / "submission_templates/submission_task_3.csv").read_text()
    assert text == "QuestionId,ranking\n" + "".join(f"{question},\n" for question in range(80))


def test_templates_that_cannot_be_built_are_left_out_and_named(data: Path, tmp_path: Path) -> None:
    made = tmp_path / "templates"
    (data / "test_data/test_private_answers_task_1.csv").unlink()
    said = succeeds(["-m", "tools.templates", "--input_dir", data, "--output_dir", made])
    assert "left out: submission_task_1_2.csv, because there is no" in said
    assert {path.suffix for path in made.glob("*_task_3.*")} == {".csv", ".json"}
    (data / "metadata/question_metadata_task_3_4.csv").unlink()
    said = fails(["-m", "tools.templates", "--input_dir", data, "--output_dir", made / "none"])
    assert said.startswith("no template can be built: submission_task_1_2")
    assert not (made / "none").exists()


def test_seed_and_number_of_questions_and_the_same_bytes_again(tree: Path, data: Path) -> None:
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", data]
    succeeds([*command, "--seed", 5, "--questions", 130])
    other, before = content(data), content(tree)
    assert other[TRAIN["1_2"]] != before[TRAIN["1_2"]]
    assert json.loads(other[layout.SIMULATED_MARKER_NAME])["seed"] == 5
    assert set(fingerprints.simulated_files(data)) >= set((data / "train_data").iterdir())
    # The students and their answers are as many as before, and so are the questions of tasks 1/2.
    questions = [read(data, f"metadata/question_metadata_task_{group}.csv") for group in GROUPS]
    assert [sorted(each.QuestionId) for each in questions] == [[*range(100)], [*range(130)]]
    assert [len(read(data, TRAIN[group])) for group in GROUPS] == [12_800, 12_000]
    # So many questions have enough answers only because some were exchanged.
    answers = all_answers(data, "3_4")
    assert answers.QuestionId.value_counts().min() >= 5 and not answers.duplicated(IDS[:2]).any()
    # Going back removes what is no longer simulated.
    succeeds(command)
    assert content(data) == before
    refused = run([*command, "--questions", "79"])
    assert refused.returncode == 2 and "79 is not from 80 to 5000" in refused.stderr
    told = "3,000 questions are too many for 14,725 answers, expected at most 2,945"
    assert fails([*command, "--questions", 3000]).startswith(told)
    few = fails(["data/generate_sample.py", "--size", "full", "--questions", "313"])
    assert "expected at least 314" in few and generate_sample.settings("full", 314)


def test_real_files_are_never_overwritten(data: Path) -> None:
    # Of the same size as the simulated one whose place it has taken.
    real = data / TRAIN["1_2"]
    real.write_bytes(real.read_bytes().replace(b",1\n", b",2\n", 1))
    before = content(data)
    message = fails(["data/generate_sample.py", "--size", "tiny", "--output_dir", data])
    assert str(real) in message and "--output_dir" in message
    assert content(data) == before


DECILES = (0.1, 0.5, 0.9)


@cache
def simulate(size: str, tasks: str) -> Any:
    setting = getattr(generate_sample.settings(size), tasks)
    return generate_sample.simulate(np.random.default_rng(0), setting, make_subjects())


def rasch_accuracy(answers: Any) -> tuple[float, float]:
    """Accuracy on a fifth of the answers: of each question's majority, and of a Rasch model."""
    held_out = np.random.default_rng(0).random(len(answers)) < 0.2
    train, test = answers[~held_out], answers[held_out]
    majority = test.QuestionId.map(train.groupby("QuestionId").IsCorrect.mean()) > 0.5
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train[["UserId", "QuestionId"]])
    x = [encoder.transform(part[["UserId", "QuestionId"]]) for part in (train, test)]
    # C is the variance of the normal priors.
    model = LogisticRegression(C=2, fit_intercept=False, tol=1e-7).fit(x[0], train.IsCorrect)
    return (majority == test.IsCorrect).mean(), model.score(x[1], test.IsCorrect)


def test_tasks_3_4_have_the_official_counts_and_marginals_like_the_real_ones() -> None:
    school = simulate("full", "tasks_3_4")
    answers = school.answers
    counts = answers.groupby("part").UserId.value_counts()
    assert counts.groupby("part").size().tolist() == [4_918, 615, 615]
    assert counts.groupby("part").sum()[:2].tolist() == [1_382_727, 74_891]
    for part, expected in enumerate(([70, 262, 553], [57, 101, 225])):
        assert counts[part].quantile(DECILES).to_numpy() == pytest.approx(expected, rel=0.2)
    train = answers[answers.part == 0]
    by_question, by_student = (train.groupby(name).IsCorrect for name in ("QuestionId", "UserId"))
    assert by_question.ngroups == 948
    # In the real files, of all 1,382,727 training answers: published statistics per question.
    assert train.IsCorrect.mean() == pytest.approx(0.5373, abs=0.03)
    n_answers = by_question.size().quantile(DECILES).tolist()
    assert np.log(n_answers) == pytest.approx(np.log([81, 1684, 2647]), abs=0.3)
    right = by_question.mean().quantile(DECILES).tolist()
    assert right == pytest.approx([0.306, 0.495, 0.725], abs=0.06)
    # Of 861 students whose answers are released in full.
    right = by_student.mean().quantile(DECILES).tolist()
    assert right == pytest.approx([0.32, 0.54, 0.80], abs=0.05)
    options = train.AnswerValue.value_counts(normalize=True).sort_index().tolist()
    assert options == pytest.approx([0.241, 0.274, 0.279, 0.206], abs=0.03)
    # Right or wrong, a fifth of the answers of 1,785 students held out.
    picked = answers[answers.UserId.map(np.random.default_rng(0).random(6148).__getitem__) < 0.3]
    # Some 80,000 answers are predicted: a standard error of 0.0017. The rest of the interval is how
    # unlike the real answers simulated ones may be, as in every comparison here.
    assert rasch_accuracy(picked) == pytest.approx((0.627, 0.705), abs=0.015)
    # What no prediction of right or wrong, and of the option, exceeds.
    assert [*school.limits.values()] == pytest.approx((0.759, 0.616), abs=0.01)


def test_experts_agree_with_each_other_and_with_the_answers() -> None:
    """With many pairs: experts are noisy, yet judge the same quality, which answers show."""
    school = simulate("full", "tasks_3_4")
    drawn = (generate_sample.judge(np.random.default_rng(seed), school) for seed in range(40))
    judged = pd.concat(table for files in drawn for file in files for table in file.tables)
    share = school.answers.groupby("QuestionId").AnswerValue.value_counts(normalize=True)
    entropy = -(share * np.log(share)).groupby("QuestionId").sum().to_numpy()
    says = judged[list(generate_sample.EXPERTS)] == 2
    with_entropy = says.eq(entropy[judged.right] > entropy[judged.left], axis=0).mean()
    # Real experts, 25 public pairs: 0.52 to 0.64 with the entropy, 0.60 to 0.76 with each other.
    assert with_entropy.between(0.54, 0.70).all()
    for first, second in combinations(says, 2):
        assert 0.6 < (says[first] == says[second]).mean() < 0.82


def quiz_correlation(answers: Any, *by: str, most: int = 12) -> Any:
    """Correlation of answers, beyond the student's own rate, that have these columns alike."""
    residual = answers.IsCorrect - answers.groupby("UserId").IsCorrect.transform("mean")
    together = residual.groupby([answers[name] for name in by])
    size, total = together.size(), together.sum()
    squares = (residual**2).groupby(together.ngroup()).sum()
    few = (size <= most).to_numpy()
    products = (total.to_numpy() ** 2 - squares.to_numpy())[few].sum()
    return products / (size * (size - 1))[few].sum() / (residual**2).mean()


def test_tasks_1_2_have_the_official_counts_and_are_like_a_real_sample() -> None:
    full = generate_sample.settings("full").tasks_1_2
    assert (full.n_questions, full.students) == (27_613, (118_971,))
    assert sum(full.answers) * 4 // 5 == 15_867_850
    answers = simulate("small", "tasks_1_2").answers
    assert answers.IsCorrect.mean() == pytest.approx(0.64, abs=0.03)
    # As of 66 real students. What answers in a quiz tell about each other is mostly the class's.
    own = quiz_correlation(answers, "quiz", "UserId")
    assert own == pytest.approx(0.103, abs=0.03)
    assert 0.55 < quiz_correlation(answers, "quiz", "cohort", most=10_000) / own < 0.8
    # Real students are right in 0.28 of cases at confidence 0, and in 0.75 at 100.
    asked = answers[answers.confidence >= 0]
    by_level = asked.groupby("confidence").IsCorrect.mean()
    assert by_level.is_monotonic_increasing
    assert by_level[0] < 0.4 and by_level[100] > 0.7
    assert len(asked) / len(answers) == pytest.approx(0.064, abs=0.02)


def test_confidence_follows_the_option_chosen_and_not_the_right_one() -> None:
    """Of wrong answers, students are surer of options that many others choose wrongly too."""
    answers = simulate("small", "tasks_1_2").answers
    wrong = answers[answers.IsCorrect == 0]
    n_alike = wrong.groupby(["QuestionId", "AnswerValue"]).AnswerValue.transform("size")
    share_alike = n_alike / wrong.groupby("QuestionId").AnswerValue.transform("size")
    is_asked = wrong.confidence >= 0
    popular = wrong.confidence[is_asked & (share_alike > 0.5)]
    rare = wrong.confidence[is_asked & (share_alike < 0.25)]
    # The means of 3,399 and 2,119 answers, with a deviation of 32, are known to 0.9 points. They
    # are 16 apart; if confidence followed the right option, rare ones would be 4 ahead.
    assert popular.mean() - rare.mean() > 8
