"""The simulated files: complete, in the official formats, reproducible, and like the real ones."""

import csv
import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate_sample
import numpy as np
import pandas as pd
import pytest
import simulation
from conftest import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from subject_tree import make_subjects

from common import layout, provenance
from common.schema import EXPERT_NAMES

Says = Callable[..., str]
GROUPS = ("1_2", "3_4")
PAIR = "QuestionId,UserId,AnswerId"
ANSWER = f"{PAIR},IsCorrect,CorrectAnswer,AnswerValue"
MASKS = [f"IsTarget_{mask}" for mask in range(10)]
TRAIN = {group: f"train_data/train_task_{group}.csv" for group in GROUPS}
TEST = {
    "1_2": [f"test_data/{layout.test_answers_name(1, phase)}" for phase in layout.PHASES],
    "3_4": [f"test_data/{layout.test_masks_name(phase)}" for phase in layout.PHASES],
}
HEADERS = {
    "metadata/subject_metadata.csv": "\ufeffSubjectId,Name,ParentId,Level",
    "test_data/test_private_task_4.csv": f"{ANSWER},IsTarget",
    "submission_templates/submission_task_1_2.csv": f",{PAIR}",
    "submission_templates/submission_task_3.csv": "QuestionId,ranking",
}
for _group in GROUPS:
    HEADERS[TRAIN[_group]] = ANSWER
    HEADERS[f"metadata/question_metadata_task_{_group}.csv"] = "QuestionId,SubjectId"
    HEADERS[f"metadata/student_metadata_task_{_group}.csv"] = (
        "UserId,Gender,DateOfBirth,PremiumPupil"
    )
    HEADERS[f"metadata/answer_metadata_task_{_group}.csv"] = (
        "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId"
    )
for _phase in layout.PHASES:
    HEADERS[f"test_data/test_{_phase}_answers_task_1.csv"] = f"{PAIR},IsCorrect"
    HEADERS[f"test_data/test_{_phase}_answers_task_2.csv"] = f"{PAIR},AnswerValue"
    HEADERS[f"test_data/test_{_phase}_task_4_more_splits.csv"] = ",".join([ANSWER, *MASKS])
    HEADERS[f"test_data/quality_response_remapped_{_phase}.csv"] = (
        ",Unnamed: 0,left,right,T1_ALR,T2_CL,T3_GF,T4_MQ,T5_NS"
    )


def generate(folder: Path, seed: int = 0) -> Path:
    generate_sample.generate(folder, folder / layout.TEMPLATE_DIR.name, "tiny", seed)
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny simulated tree: only read from it."""
    return generate(tmp_path_factory.mktemp("simulated") / "data")


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


# ---- The files -----------------------------------------------------------------------------------


def test_every_official_file_is_there_with_its_columns(tree: Path) -> None:
    found = {
        name: data.split(b"\n")[0].decode()
        for name, data in content(tree).items()
        if name.endswith(".csv")
    }
    assert found == HEADERS


def test_marker_tells_simulated_from_other_files(tree: Path, tmp_path: Path) -> None:
    marker = json.loads((tree / layout.SIMULATED_MARKER_NAME).read_text())
    assert (marker["size"], marker["seed"]) == ("tiny", 0)
    tables = {name for name in HEADERS if not name.startswith("submission_templates")}
    pictures = {f"images/{question}.jpg" for question in range(80)}
    assert marker["files"].keys() == tables | pictures
    assert set(provenance.simulated_files(tree)) == {tree / name for name in tables | pictures}
    changed = Path(shutil.copytree(tree, tmp_path / "changed"))
    path, other = (changed / TRAIN[group] for group in GROUPS)
    # Another answer, the same size: each file is judged by its own contents.
    data = path.read_bytes()
    path.write_bytes(data[:-2] + (b"2\n" if data[-2:-1] != b"2" else b"3\n"))
    assert not provenance.is_simulated(path)
    assert provenance.is_simulated(other)
    assert provenance.is_simulated(path, other)


@pytest.mark.parametrize("group", GROUPS)
def test_answers_keep_the_rules_of_the_official_files(tree: Path, group: str) -> None:
    setting = next(g.setting for g in generate_sample.settings("tiny") if g.name == group)
    answers = all_answers(tree, group)
    assert len(answers) == sum(setting.answers)
    assert not answers.duplicated(["UserId", "QuestionId"]).any()
    # Ids count from 0 without gaps; those of answers run through all files, in no order.
    assert sorted(answers.AnswerId) == list(range(len(answers)))
    assert abs(np.corrcoef(answers.AnswerId, answers.UserId)[0, 1]) < 0.05
    assert abs(np.corrcoef(answers.AnswerId, np.arange(len(answers)))[0, 1]) < 0.05
    assert sorted(answers.UserId.unique()) == list(range(sum(setting.students)))
    assert sorted(answers.QuestionId.unique()) == list(range(setting.n_questions))
    assert answers.groupby("UserId").size().min() >= 50
    assert answers.groupby("QuestionId").size().min() >= {"1_2": 50, "3_4": 5}[group]
    complete = read(tree, TRAIN[group])
    assert (complete.IsCorrect == (complete.AnswerValue == complete.CorrectAnswer)).all()
    assert complete.AnswerValue.isin([1, 2, 3, 4]).all()
    # Of tasks 3/4 three questions have had their key changed.
    keys = answers.dropna().groupby("QuestionId").CorrectAnswer.nunique()
    n_changed = {"1_2": 0, "3_4": 3}[group]
    assert sorted(keys) == [1] * (len(keys) - n_changed) + [2] * n_changed


def test_tasks_1_2_are_split_by_answers_and_tasks_3_4_by_students(tree: Path) -> None:
    train = read(tree, TRAIN["1_2"])
    key = train.groupby("QuestionId").CorrectAnswer.first()
    assert len(train) == 12_800
    for phase in layout.PHASES:
        first, second = (
            read(tree, f"test_data/{layout.test_answers_name(task, phase)}") for task in (1, 2)
        )
        assert len(first) == 1_600
        assert first[PAIR.split(",")].equals(second[PAIR.split(",")])
        # The two files agree on the key that the training file shows.
        assert (first.IsCorrect == (second.AnswerValue == second.QuestionId.map(key))).all()
    students = [set(read(tree, name).UserId) for name in (TRAIN["3_4"], *TEST["3_4"])]
    assert [len(part) for part in students] == [200, 25, 25]
    assert len(set.union(*students)) == 250


@pytest.mark.parametrize("phase", layout.PHASES)
def test_task_4_masks_hide_a_fifth_each(tree: Path, phase: str) -> None:
    masked = read(tree, f"test_data/{layout.test_masks_name(phase)}")
    shares = masked[MASKS].mean()
    assert shares.between(0.14, 0.26).all()
    assert shares.nunique() > 5
    for mask in MASKS:
        assert masked.groupby("UserId")[mask].agg(["min", "max"]).eq([0, 1]).all(axis=None)
    if phase == "private":
        single = read(tree, "test_data/test_private_task_4.csv")
        assert single[ANSWER.split(",")].equals(masked[ANSWER.split(",")])
        assert single.IsTarget.isin([0, 1]).all()


@pytest.mark.parametrize("group", GROUPS)
def test_answer_metadata_describe_every_answer(tree: Path, group: str) -> None:
    metadata = read(tree, f"metadata/answer_metadata_task_{group}.csv", dtype=str)
    assert 0 < metadata.AnswerId.isna().sum() < 0.01 * len(metadata)
    metadata = metadata.dropna(subset="AnswerId")
    assert metadata.AnswerId.str.fullmatch(r"\d+\.0").all()
    answers = all_answers(tree, group)
    metadata["AnswerId"] = metadata.AnswerId.astype(float).astype(int)
    assert sorted(metadata.AnswerId) == sorted(answers.AnswerId)
    assert metadata.Confidence.isna().mean() > 0.85
    assert set(metadata.Confidence.dropna()) == {"0.0", "25.0", "50.0", "75.0", "100.0"}
    assert 0 < metadata.SchemeOfWorkId.isna().mean() < 0.6
    assert metadata.DateAnswered.str.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:00\.000").all()
    date = pd.to_datetime(metadata.DateAnswered)
    assert date.min() >= pd.Timestamp("2018-09-03" if group == "1_2" else "2020-01-06")
    assert date.max() < pd.Timestamp("2020-06-01")
    assert date.dt.day_of_week.max() <= 4
    # A student answers a quiz without a break: minute after minute, in one class.
    metadata["date"] = date
    sittings = answers.merge(metadata, on="AnswerId").groupby(["UserId", "QuizId"])
    minutes = sittings.date.agg(lambda times: (times.max() - times.min()).total_seconds() / 60)
    assert ((minutes == sittings.size() - 1) | (sittings.size() == 1)).mean() > 0.9
    assert (sittings.GroupId.nunique() == 1).mean() > 0.95
    assert sittings.size().max() <= 2 * simulation.QUIZ_LENGTH


@pytest.mark.parametrize("group", GROUPS)
def test_student_metadata_cover_all_students_with_gaps(tree: Path, group: str) -> None:
    students = read(tree, f"metadata/student_metadata_task_{group}.csv", dtype=str)
    assert sorted(students.UserId.astype(int)) == list(range(len(students)))
    assert set(students.Gender) >= {"0", "1", "2"}
    assert set(students.Gender) <= {"0", "1", "2", "3"}
    premium = students.PremiumPupil.dropna()
    assert set(premium) == {"0.0", "1.0"}
    # About a quarter is entitled to it.
    assert 0.1 < (premium == "1.0").mean() < 0.45
    births = students.DateOfBirth.dropna()
    assert births.str.fullmatch(r"\d{4}-\d\d-01 00:00:00\.000").all()
    assert 0.15 < students.DateOfBirth.isna().mean() < 0.7
    assert students.PremiumPupil.isna().mean() > students.DateOfBirth.isna().mean()


def test_subjects_are_a_tree_and_questions_hang_in_it(tree: Path) -> None:
    subjects = read(tree, "metadata/subject_metadata.csv", keep_default_na=False)
    assert len(subjects) == 388
    assert subjects.SubjectId.is_monotonic_increasing
    assert subjects.SubjectId.is_unique
    assert subjects.Name.is_unique
    level = dict(zip(subjects.SubjectId, subjects.Level, strict=True))
    parent = dict(zip(subjects.SubjectId, subjects.ParentId, strict=True))
    for subject, above in parent.items():
        assert level[subject] == (0 if above == "NULL" else level[int(above)] + 1)
    for group, setting in (("1_2", 100), ("3_4", 80)):
        with (tree / f"metadata/question_metadata_task_{group}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert sorted(int(row["QuestionId"]) for row in rows) == list(range(setting))
        for row in rows:
            own = json.loads(row["SubjectId"])
            assert own == sorted(set(own))
            assert {level[subject] for subject in own} == {0, 1, 2, 3}
            assert all(parent[subject] == "NULL" or int(parent[subject]) in own for subject in own)
        lists = [row["SubjectId"] for row in rows]
        assert len(set(lists)) > 10


def test_judgements_look_like_the_official_ones(tree: Path) -> None:
    text = {
        phase: read(tree, f"test_data/{layout.expert_judgements_name(phase)}", dtype=str)
        for phase in layout.PHASES
    }
    both = pd.concat(text.values())
    assert [len(part) for part in text.values()] == [25, 25]
    assert sorted(both["Unnamed: 0"].astype(int)) == list(range(50))
    assert (both.left != both.right).all()
    assert set(both.T1_ALR) | set(both.T5_NS) == {"1", "2"}
    # One column is written with decimals, since it has gaps; they are all in the private file.
    assert set(both.T4_MQ.dropna()) == {"1.0", "2.0"}
    assert text["public"].notna().all(axis=None)
    assert text["private"].T4_MQ.isna().sum() == 2


def test_templates_hold_the_pairs_of_both_phases_and_all_questions(tree: Path) -> None:
    pairs = read(tree, "submission_templates/submission_task_1_2.csv")
    wanted = pd.concat([read(tree, name) for name in TEST["1_2"]]).sort_values("AnswerId")
    assert pairs.iloc[:, 0].tolist() == list(range(len(pairs)))
    ids = PAIR.split(",")
    assert pairs[ids].to_numpy().tolist() == wanted[ids].to_numpy().tolist()
    text = (tree / "submission_templates/submission_task_3.csv").read_text()
    assert text == "QuestionId,ranking\n" + "".join(f"{question},\n" for question in range(80))


def test_templates_that_cannot_be_built_are_left_out_and_named(
    tree: Path, tmp_path: Path, succeeds: Says, fails: Says
) -> None:
    partial = Path(shutil.copytree(tree, tmp_path / "data"))
    (partial / "test_data/test_private_answers_task_1.csv").unlink()
    command = ["-m", "common.templates", "--input_dir", partial, "--output_dir"]
    said = succeeds([*command, tmp_path / "templates"])
    assert "left out: submission_task_1_2.csv, because there is no" in said
    assert "test_private_answers_task_1.csv" in said
    names = {path.name for path in (tmp_path / "templates").iterdir()}
    assert names == {"submission_task_3.csv", "template_task_3.json"}
    (partial / "metadata/question_metadata_task_3_4.csv").unlink()
    assert fails([*command, tmp_path / "none"]).startswith(
        "no template can be built: submission_task_1_2"
    )
    assert not (tmp_path / "none").exists()


def test_pictures_show_every_question_of_tasks_3_and_4(tree: Path) -> None:
    """A picture is white with black text on it, and no two are the same."""
    paths = sorted((tree / "images").iterdir())
    assert {path.name for path in paths} == {f"{question}.jpg" for question in range(80)}
    assert len({path.read_bytes() for path in paths}) == 80
    for path in paths[:5]:
        with Image.open(path) as image:
            assert image.size == generate_sample.IMAGE_SIZE
            pixels = np.asarray(image)
        assert np.median(pixels) > 250
        assert 0.02 < (pixels < 100).mean() < 0.3


# ---- The command ---------------------------------------------------------------------------------


def test_simulated_files_are_replaced_and_a_seed_makes_the_same_bytes_again(
    succeeds: Says, tree: Path, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(tree, tmp_path / "data"))
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", data]
    said = succeeds([*command, "--seed", 5])
    assert said == f"simulated data (tiny) in {data}, templates in {data}/submission_templates\n"
    other = content(data)
    assert other.keys() == content(tree).keys()
    assert other[TRAIN["1_2"]] != content(tree)[TRAIN["1_2"]]
    assert json.loads(other[layout.SIMULATED_MARKER_NAME])["seed"] == 5
    assert set(provenance.simulated_files(data)) >= set((data / "train_data").iterdir())
    succeeds(command)
    assert content(data) == content(tree)


def test_another_number_of_questions(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir", data]
    done = run([*command, "--questions", "130"])
    assert done.returncode == 0, done.stderr
    metadata = read(data, "metadata/question_metadata_task_3_4.csv")
    assert sorted(metadata.QuestionId) == list(range(130))
    assert len(list((data / "images").iterdir())) == 130
    # The students and their answers are as many as without it, and 1/2 stays as it was.
    assert len(read(data, TRAIN["3_4"])) == 12_000
    assert len(read(data, "metadata/question_metadata_task_1_2.csv")) == 100
    # Going back removes what is no longer simulated.
    assert run(command).returncode == 0
    assert len(list((data / "images").iterdir())) == 80
    refused = run([*command, "--questions", "79"])
    assert refused.returncode == 2 and "79 is not from 80 to 5000" in refused.stderr


def test_real_files_are_never_overwritten(fails: Says, tree: Path, tmp_path: Path) -> None:
    command = ["data/generate_sample.py", "--size", "tiny", "--output_dir"]
    real = tmp_path / "data/metadata/subject_metadata.csv"
    real.parent.mkdir(parents=True)
    real.write_text("SubjectId,Name,ParentId,Level\n3,Maths,NULL,0\n")
    message = fails([*command, tmp_path / "data"])
    assert str(real) in message and "--output_dir" in message
    assert content(tmp_path / "data").keys() == {"metadata/subject_metadata.csv"}
    # The same if a real file has taken the place of a simulated one.
    mixed = Path(shutil.copytree(tree, tmp_path / "mixed"))
    (mixed / TRAIN["1_2"]).write_text(f"{ANSWER}\n1,2,3,1,4,4\n")
    before = content(mixed)
    fails([*command, mixed])
    assert content(mixed) == before


def test_a_failed_run_leaves_the_previous_files_whole(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(tree, tmp_path / "data"))

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(generate_sample, "write_judgements", full_disk)
    with pytest.raises(OSError, match="No space left"):
        generate(data, seed=7)
    assert content(data) == content(tree)


def test_full_size_has_the_official_counts() -> None:
    first, second = (group.setting for group in generate_sample.settings("full"))
    assert (first.n_questions, first.students) == (27_613, (118_971,))
    assert sum(first.answers) * 4 // 5 == 15_867_850
    assert first.min_answers == first.min_answers_per_question == second.min_answers == 50
    assert (second.n_questions, second.students) == (948, (4_918, 615, 615))
    assert second.answers[:2] == (1_382_727, 74_891)


# ---- The parts of the simulation -----------------------------------------------------------------


def small_setting(n_questions: int, least: int) -> simulation.SchoolSetting:
    """Return a setting of four classes, with so many answers to each question at least."""
    return dataclasses.replace(
        generate_sample.settings("tiny")[0].setting,
        n_questions=n_questions,
        n_quizzes=n_questions // 4,
        n_cohorts=4,
        min_answers_per_question=least,
    )


@given(
    n_students=st.integers(60, 120),
    n_questions=st.integers(40, 80),
    mean=st.integers(20, 34),
    share=st.floats(0, 0.8),
    seed=st.integers(0, 100),
)
@settings(max_examples=15)
def test_incidence_is_exact_and_without_repetition(
    n_students: int, n_questions: int, mean: int, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # There must be as many answers as the questions need together, and some to exchange.
    least = int(share * n_students * mean / n_questions)
    setting = small_setting(n_questions, least)
    targets = simulation.draw_counts(
        rng, n_students, n_students * mean, (0, 1, 5), 1, n_questions - 1
    )
    topic = np.sort(rng.integers(0, 6, n_questions)).astype(np.int32)
    quizzes = simulation.draw_quizzes(rng, topic, setting.n_quizzes)
    assert set(quizzes.ravel()) == set(range(n_questions))
    assert all(len(set(quiz)) == simulation.QUIZ_LENGTH for quiz in quizzes.tolist())
    level = rng.random(setting.n_quizzes)
    incidence = simulation.draw_incidence(rng, setting, targets, quizzes, level)
    assert (np.bincount(incidence.student, minlength=n_students) == targets).all()
    pairs = incidence.student.astype(np.int64) * n_questions + incidence.question
    assert len(np.unique(pairs)) == len(pairs)
    assert np.bincount(incidence.question, minlength=n_questions).min() >= least
    # Every question belongs to the quiz in which it is answered.
    quiz = incidence.sittings.quiz[incidence.sitting]
    assert (quizzes[quiz] == incidence.question[:, None]).any(axis=1).all()


def test_more_answers_to_each_question_than_there_are_is_an_error() -> None:
    rng = np.random.default_rng(0)
    quizzes = simulation.draw_quizzes(rng, np.zeros(61, np.int32), 15)
    with pytest.raises(ValueError, match="too few answers or students for 20 answers"):
        # 1,200 answers, where 1,220 are needed.
        simulation.draw_incidence(
            rng, small_setting(61, 20), np.full(60, 20), quizzes, rng.random(15)
        )


def test_best_expected_accuracy_is_that_of_the_true_probabilities() -> None:
    """Half know the answer, the others guess: 0.5 + 0.5 / 4 choose the key."""
    n = 40_000
    zeros = np.zeros(n, np.int32)
    one, flat = np.zeros(1, np.float32), np.zeros((1, 4), np.float32)
    sitting = simulation.Sittings(*[zeros[:1]] * 4, alone=zeros[:1] > 0)
    incidence = simulation.Incidence(sitting, zeros, zeros, zeros.astype(np.int8))
    questions = simulation.Questions(zeros[:1], one, one, np.array([2], np.int8), flat, flat)
    ability = np.zeros((1, 1), np.float32)
    choices = simulation.draw_choices(np.random.default_rng(0), incidence, questions, ability)
    assert choices.limit_is_correct == pytest.approx(0.625, abs=1e-6)
    assert choices.limit_option == pytest.approx(0.625, abs=1e-6)
    shares = np.bincount(choices.option, minlength=4) / n
    assert shares == pytest.approx([0.125, 0.125, 0.625, 0.125], abs=0.01)


def test_form_is_shared_by_class_student_and_day() -> None:
    """Of 200 classes of 20 students, each student sits two quizzes on each of two days."""
    n_cohorts, n_students, n_quizzes = 200, 4000, 4
    student = np.repeat(np.arange(n_students, dtype=np.int32), n_quizzes)
    quiz = np.tile(np.arange(n_quizzes, dtype=np.int32), n_students)
    sittings = simulation.Sittings(
        student=student,
        quiz=quiz,
        cohort=student % np.int32(n_cohorts),
        minute=quiz // 2 * np.int32(1440) + quiz,
        alone=np.zeros(len(student), bool),
    )
    form = simulation.draw_form(np.random.default_rng(0), sittings)
    form = form.reshape(-1, n_cohorts, n_quizzes)  # student in the class, class, quiz
    of_quiz, of_day = simulation.QUIZ_SD**2, simulation.DAY_SD**2
    assert form.var() == pytest.approx(of_quiz + of_day, rel=0.1)
    classmates = np.mean(form[0::2] * form[1::2])
    assert classmates == pytest.approx(of_quiz * simulation.COHORT_QUIZ_SHARE, rel=0.15)
    # What is a student's own: less what classmates share.
    own = form - form.mean(axis=0)
    assert np.mean(own[:, :, 0] * own[:, :, 1]) == pytest.approx(of_day, rel=0.3)
    assert np.mean(own[:, :, 0] * own[:, :, 2]) == pytest.approx(0, abs=of_day / 3)


# ---- Beside the real files -----------------------------------------------------------------------

# Figures of the real files are constants here; if the files are available,
# `test_constants_are_those_of_the_real_files` computes them again.
DECILES = (0.1, 0.5, 0.9)
# Tasks 3/4, all 1,382,727 training answers: published statistics per question.
SHARE_CORRECT = 0.5373
QUESTION_COUNT_DECILES = (81, 1684, 2647)
QUESTION_RATE_DECILES = (0.306, 0.495, 0.725)
# Students and options: 861 students whose answers are released in full.
STUDENT_RATE_DECILES = (0.32, 0.54, 0.80)
OPTION_SHARES = (0.241, 0.274, 0.279, 0.206)
WRONG_SHARES = (0.486, 0.304, 0.210)  # of the wrong answers, by attraction; ≥ 100 answers
# Right or wrong, a fifth of the answers of 1,785 students held out.
MAJORITY_ACCURACY, RASCH_ACCURACY = 0.627, 0.705
# Tasks 1/2, the answers of 66 students whose quizzes are known.
QUIZ_CORRELATION = 0.103


def simulate(size: str, place: int) -> generate_sample.School:
    group = generate_sample.settings(size)[place]
    return generate_sample.simulate(np.random.default_rng(0), group, make_subjects())[0]


@pytest.fixture(scope="module")
def school() -> generate_sample.School:
    """Tasks 3/4 at the official size."""
    return simulate("full", 1)


@pytest.fixture(scope="module")
def small_school() -> generate_sample.School:
    """Tasks 1/2, thousands of students."""
    return simulate("small", 0)


def wrong_shares(question: Any, option: Any, key: Any) -> Any:
    """Mean shares of the three wrong options among wrong answers, most attractive first."""
    wrong = option != key
    counts = np.zeros((int(question.max()) + 1, 4))
    np.add.at(counts, (question[wrong], option[wrong]), 1)
    counts = counts[np.bincount(question, minlength=len(counts)) >= 100]
    return np.sort(counts / counts.sum(axis=1, keepdims=True), axis=1)[:, :0:-1].mean(axis=0)


def rates(who: Any, is_correct: Any) -> Any:
    n = np.bincount(who)
    return (np.bincount(who, is_correct) / np.maximum(n, 1))[n > 0]


def test_marginals_of_tasks_3_4_are_like_the_real_ones(school: Any) -> None:
    student = school.incidence.student
    train = school.part_of_student[student] == 0
    question, option = school.incidence.question[train], school.choices.option[train]
    is_correct = option == school.key[train]
    assert is_correct.mean() == pytest.approx(SHARE_CORRECT, abs=0.03)
    counts = np.quantile(np.bincount(question), DECILES)
    assert np.log(counts) == pytest.approx(np.log(QUESTION_COUNT_DECILES), abs=0.8)
    assert counts[1:] == pytest.approx(QUESTION_COUNT_DECILES[1:], rel=0.25)
    of_question = np.quantile(rates(question, is_correct), DECILES)
    assert of_question == pytest.approx(QUESTION_RATE_DECILES, abs=0.06)
    of_student = np.quantile(rates(student[train], is_correct), DECILES)
    assert of_student == pytest.approx(STUDENT_RATE_DECILES, abs=0.05)
    assert np.bincount(option) / len(option) == pytest.approx(OPTION_SHARES, abs=0.03)
    wrong = wrong_shares(question, option, school.questions.key[question])
    assert wrong == pytest.approx(WRONG_SHARES, abs=0.05)
    counts = np.bincount(student)
    public = np.quantile(counts[school.part_of_student == 1], DECILES)
    assert public == pytest.approx([57, 101, 225], rel=0.15)
    train = np.quantile(counts[school.part_of_student == 0], DECILES)
    assert train == pytest.approx([70, 262, 553], rel=0.2)


def rasch_accuracy(student: Any, question: Any, is_correct: Any) -> tuple[float, float]:
    """Accuracy on a fifth of the answers: of each question's majority, and of a Rasch model."""
    _, student = np.unique(student, return_inverse=True)
    held_out = np.random.default_rng(0).random(len(student)) < 0.2
    s, q, y = student[~held_out], question[~held_out], is_correct[~held_out].astype(float)
    ability, easiness = np.zeros(student.max() + 1), np.zeros(question.max() + 1)
    for _ in range(12):
        # Newton steps for each side in turn, with normal priors of variance 2.
        for values, index in ((easiness, q), (ability, s)):
            p = 1 / (1 + np.exp(-ability[s] - easiness[q]))
            slope = np.bincount(index, y - p, minlength=len(values)) - values / 2
            values += slope / (np.bincount(index, p * (1 - p), minlength=len(values)) + 0.5)
    s, q, y = student[held_out], question[held_out], is_correct[held_out]
    n = np.bincount(question[~held_out], minlength=len(easiness))
    majority = np.bincount(question[~held_out], is_correct[~held_out], len(easiness)) > n / 2
    return (majority[q] == y).mean(), ((ability[s] + easiness[q] > 0) == y).mean()


def test_models_score_on_simulated_as_on_real_answers(school: Any) -> None:
    picked = (np.random.default_rng(0).random(6148) < 0.3)[school.incidence.student]
    majority, rasch = rasch_accuracy(
        school.incidence.student[picked],
        school.incidence.question[picked],
        (school.choices.option == school.key)[picked],
    )
    assert majority == pytest.approx(MAJORITY_ACCURACY, abs=0.02)
    assert rasch == pytest.approx(RASCH_ACCURACY, abs=0.015)
    assert rasch + 0.01 < school.choices.limit_is_correct < 0.78


def test_experts_agree_with_each_other_and_with_the_answers(tmp_path: Path, school: Any) -> None:
    """With many pairs: experts are noisy, yet judge the same quality, which answers show."""
    parts = []
    for seed in range(40):
        generate_sample.write_judgements(np.random.default_rng(seed), tmp_path, school)
        parts += [
            pd.read_csv(tmp_path / layout.expert_judgements_name(phase)) for phase in layout.PHASES
        ]
    judged = pd.concat(parts)
    counts = np.zeros((len(school.question_id), 4))
    np.add.at(counts, (school.incidence.question, school.choices.option), 1)
    share = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    entropy = np.empty(len(share))
    entropy[school.question_id] = -(share * np.log(share)).sum(axis=1)
    says = judged[list(EXPERT_NAMES)] == 2
    with_entropy = says.eq(entropy[judged.right] > entropy[judged.left], axis=0).mean()
    # Real experts, 25 public pairs: 0.52 to 0.64 with the entropy, 0.60 to 0.76 with each other.
    assert with_entropy.between(0.54, 0.70).all()
    for k, first in enumerate(says):
        for second in list(says)[k + 1 :]:
            assert 0.6 < (says[first] == says[second]).mean() < 0.82


def test_tasks_1_2_have_their_share_correct_and_heavy_tails(small_school: Any) -> None:
    is_correct = small_school.choices.option == small_school.key
    assert is_correct.mean() == pytest.approx(0.64, abs=0.03)
    # Real students of tasks 1/2, a sample: options 0.249, 0.257, 0.269, 0.225.
    shares = np.bincount(small_school.choices.option) / len(is_correct)
    assert shares == pytest.approx([0.249, 0.257, 0.269, 0.225], abs=0.03)
    for who in (small_school.incidence.student, small_school.incidence.question):
        counts = np.bincount(who)
        assert np.quantile(counts, 0.98) > 2.5 * np.median(counts)


def test_confidence_tells_something_about_the_answer(small_school: Any) -> None:
    """Real students of tasks 1/2 are right in 0.28 of cases at 0, and in 0.75 at 100."""
    is_correct = small_school.choices.option == small_school.key
    confidence = small_school.choices.confidence
    by_level = [is_correct[confidence == level].mean() for level in (0, 25, 50, 75, 100)]
    assert by_level == sorted(by_level)
    assert by_level[0] < 0.4
    assert by_level[-1] > 0.7
    assert (confidence != simulation.EMPTY).mean() == pytest.approx(0.064, abs=0.02)


def quiz_correlation(student: Any, quiz: Any, is_correct: Any) -> float:
    """Correlation of two answers of a student in one quiz, beyond how often the student is right.

    Of quizzes with at most 12 answers; the difficulty of the questions counts as the quiz's.
    """
    _, student = np.unique(student, return_inverse=True)
    residual = is_correct - (np.bincount(student, is_correct) / np.bincount(student))[student]
    pair = student * np.int64(1 << 32) + quiz
    _, sitting, size = np.unique(pair, return_inverse=True, return_counts=True)
    total, squares = (np.bincount(sitting, residual**power) for power in (1, 2))
    short = size <= 12
    products = (total**2 - squares)[short].sum() / (size * (size - 1))[short].sum()
    return float(products / (residual**2).mean())


def test_answers_in_the_same_quiz_tell_about_each_other(small_school: Any) -> None:
    incidence = small_school.incidence
    is_correct = small_school.choices.option == small_school.key
    quiz = incidence.sittings.quiz[incidence.sitting]
    correlation = quiz_correlation(incidence.student, quiz, is_correct)
    assert correlation == pytest.approx(QUIZ_CORRELATION, abs=0.03)
    # Nothing of it is left if answers are put into quizzes at random.
    shuffled = np.random.default_rng(0).permutation(quiz)
    assert quiz_correlation(incidence.student, shuffled, is_correct) < 0.02


def test_constants_are_those_of_the_real_files(real_data: Path) -> None:
    folder = real_data / "eedi_tasks_3_4"
    of_question = read(folder, "train_task_3_4_question_stats.csv")
    share = of_question.NumCorrect.sum() / of_question.NumAnswers.sum()
    complete = pd.concat([read(folder, TRAIN["3_4"]), read(folder, TEST["3_4"][0])])
    chosen = complete.AnswerValue.value_counts(normalize=True).sort_index()
    names = ("QuestionId", "AnswerValue", "CorrectAnswer")
    question, option, key = (complete[name].to_numpy() for name in names)
    more = read(folder, "train_data/train_task_3_4_right_wrong_only.csv")
    names = ("UserId", "QuestionId", "IsCorrect")
    accuracies = rasch_accuracy(*(pd.concat([complete, more])[name].to_numpy() for name in names))
    sample = real_data / "eedi_tasks_1_2_sample"
    circumstances = read(sample, "metadata/answer_metadata_task_1_2_partial.csv")
    sample = read(sample, TRAIN["1_2"]).merge(circumstances, on="AnswerId")
    names = ("UserId", "QuizId", "IsCorrect")
    by_student = complete.groupby("UserId").IsCorrect.mean()
    for found, expected, tolerance in (
        (share, SHARE_CORRECT, 0.0001),
        (of_question.NumAnswers.quantile(DECILES), QUESTION_COUNT_DECILES, 0.5),
        (of_question.CorrectRate.quantile(DECILES), QUESTION_RATE_DECILES, 0.001),
        (by_student.quantile(DECILES), STUDENT_RATE_DECILES, 0.01),
        (chosen, OPTION_SHARES, 0.001),
        (wrong_shares(question, option - 1, key - 1), WRONG_SHARES, 0.005),
        (accuracies, (MAJORITY_ACCURACY, RASCH_ACCURACY), 0.003),
        (quiz_correlation(*(sample[name].to_numpy() for name in names)), QUIZ_CORRELATION, 0.001),
    ):
        assert np.array(found) == pytest.approx(np.array(expected), abs=tolerance)
