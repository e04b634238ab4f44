"""The map of misconceptions: it finds planted groups, finds none by chance, and says how sure."""

import re
from pathlib import Path

from common import layout
from common.arrays import BoolArray, IntArray
from common.errors import InputError
from common.schema import N_OPTIONS

import generate_sample
import misconception_groups as groups
import misconceptions
import numpy as np
import pandas as pd
import pytest
from browser import needs_browser, open_browser
from conftest import fails, succeeds
from misconception_groups import Pairs, Ratio, WrongAnswers
from page_reading import read_page
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from subject_tree import make_subjects

N_STUDENTS = 3000
N_QUESTIONS = 40
# Each planted group holds option 1 of four questions in a row; the last half has no group.
PLANTED = np.full(N_QUESTIONS * N_OPTIONS, -1)
PLANTED[1 : N_QUESTIONS * N_OPTIONS // 2 : N_OPTIONS] = np.repeat(np.arange(5), 4)


def draw(share: float, seed: int = 0) -> WrongAnswers:
    """Draw wrong answers: option 0 is right, the others have equal probability without a group.

    In each planted group, a share of the students chooses the group's option in nine of ten
    answers. The model of answers knows how popular each option is, and no more.
    """
    rng = np.random.default_rng(seed)
    student, question = np.nonzero(rng.random((N_STUDENTS, N_QUESTIONS)) < 0.8)
    group = PLANTED[question * N_OPTIONS + 1]
    has_group = rng.random((N_STUDENTS, 5)) < share
    follows = (group >= 0) & has_group[student, group] & (rng.random(len(student)) < 0.85)
    option = np.where(follows, 1, rng.integers(1, N_OPTIONS, len(student)))
    p_group_option = np.where(group >= 0, 1 / 3 + share * 0.85 * 2 / 3, 1 / 3)
    other = (1 - p_group_option) / 2
    probability = np.stack([np.zeros(len(student)), p_group_option, other, other], axis=1)
    return WrongAnswers(
        student.astype(np.int32),
        question.astype(np.int32),
        option.astype(np.int8),
        probability.astype(np.float32),
        N_STUDENTS,
        N_QUESTIONS,
    )


def first_students(n: int) -> BoolArray:
    """Return a mask of the first n students."""
    return np.arange(N_STUDENTS) < n


def permute_within_questions(wrong: WrongAnswers, seed: int = 0) -> WrongAnswers:
    """Exchange the options chosen among the students who got the same question wrong."""
    rng = np.random.default_rng(seed)
    order = np.argsort(wrong.question, kind="stable")
    shuffled = np.lexsort((rng.random(len(order)), wrong.question))
    option = wrong.option.copy()
    option[order] = wrong.option[shuffled]
    return WrongAnswers(
        wrong.student,
        wrong.question,
        option,
        wrong.probability,
        wrong.n_students,
        wrong.n_questions,
    )


def find(wrong: WrongAnswers) -> IntArray:
    """Find groups on the first 1,800 students, and choose among them on the next 600."""
    pairs = groups.compare_pairs(wrong.of_students(first_students(1800)))
    choosing = wrong.of_students(first_students(2400) & ~first_students(1800))
    return groups.choose_groups(pairs, choosing)


# ---- Finding groups ------------------------------------------------------------------------------


def test_planted_groups_are_found_exactly() -> None:
    """A pair's evidence is about 8 standard deviations.

    1,800 · 0.8² students got both questions wrong. Followers choose the option with probability
    0.9 and others with 1/3: the covariance of both choices is 0.25 · 0.75 · 0.567² = 0.06, and the
    variance of the product of the residuals (0.475 · 0.525)² = 0.062. √1152 · 0.06 / 0.25 = 8.
    """
    group = find(draw(share=0.25))
    assert ((group >= 0) == (PLANTED >= 0)).all()
    assert adjusted_rand_score(PLANTED, group) == 1


@pytest.mark.parametrize("seed", range(5))
def test_permuted_options_have_no_group_that_other_students_confirm(seed: int) -> None:
    """The gain of students who took no part in the search is at chance."""
    permuted = permute_within_questions(draw(share=0.25, seed=seed), seed)
    group = find(permuted)
    checking = permuted.of_students(~first_students(2400))
    gain = groups.ratio_by_student(*groups.gain_by_student(checking, checking, group))
    # Four standard errors: at most one false alarm in 30,000.
    error = (gain.high - gain.low) / (2 * groups.Z_95)
    assert gain.value <= 4 * error
    assert (group >= 0).sum() <= 4


def test_groups_predict_the_choices_of_students_who_took_no_part_in_the_search() -> None:
    wrong = draw(share=0.25)
    checking = wrong.of_students(~first_students(2400))
    gain = groups.ratio_by_student(*groups.gain_by_student(checking, checking, find(wrong)))
    assert gain.low > 0.005


def test_without_enough_students_no_group_is_found() -> None:
    wrong = draw(share=0.25).of_students(first_students(10))
    pairs = groups.compare_pairs(wrong)
    assert (groups.choose_groups(pairs, wrong) == -1).all()


def test_two_options_of_one_question_are_never_in_one_group() -> None:
    """Items 0 and 1 are of one question; both go with item 2, and item 1 more."""
    covariance = np.array([[0.0, 99.0, 6.0], [99.0, 0.0, 7.0], [6.0, 7.0, 0.0]])
    group = groups.merge_groups(covariance, np.ones((3, 3)), np.array([0, 0, 1]), 5.0)
    assert group.tolist() == [-1, 0, 0]


def test_evidence_of_pairs_adds_up_when_groups_are_merged() -> None:
    """Item 2 goes with 0 and 1 by 2.9 each: together 5.8 / √2 = 4.1 standard deviations."""
    covariance = np.array([[0.0, 9.0, 2.9], [9.0, 0.0, 2.9], [2.9, 2.9, 0.0]])
    question = np.arange(3)
    assert groups.merge_groups(covariance, np.ones((3, 3)), question, 4.0).tolist() == [0, 0, 0]
    assert groups.merge_groups(covariance, np.ones((3, 3)), question, 4.2).tolist() == [0, 0, -1]


def test_pairs_are_sums_over_the_students_who_got_both_questions_wrong() -> None:
    """Three students get both questions wrong, a fourth only the first."""
    probability = np.array([[0, 0.5, 0.3, 0.2]] * 7, np.float32)
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1, 2, 2, 3], np.int32),
        question=np.array([0, 1, 0, 1, 0, 1, 0], np.int32),
        option=np.array([1, 1, 1, 2, 3, 1, 1], np.int8),
        probability=probability,
        n_students=4,
        n_questions=2,
    )
    pairs = groups.compare_pairs(wrong)
    # Items 1 and 5 are option 1 of both questions. Residuals: 0.5 if chosen, −0.5 if not.
    assert pairs.covariance[1, 5] == pytest.approx(0.25 - 0.25 - 0.25)
    assert pairs.variance[1, 5] == pytest.approx(3 * 0.25 * 0.25 + groups.EXTRA_VARIANCE)
    assert pairs.covariance[1, 2] == 0
    # Each pair has one entry.
    assert pairs.covariance[5, 1] == 0


def test_pairs_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = draw(share=0.25).of_students(first_students(300))
    whole = groups.compare_pairs(wrong)
    monkeypatch.setattr(groups, "BLOCK", 7)
    parts = groups.compare_pairs(wrong)
    assert whole.covariance.nnz == 9 * N_QUESTIONS * (N_QUESTIONS - 1) / 2
    for one, other in ((whole.covariance, parts.covariance), (whole.variance, parts.variance)):
        assert one.nnz == other.nnz
        # Sums of float32 in another order.
        assert abs(one - other).max() < 1e-3


def test_pairs_that_few_students_got_wrong_are_left_out_first() -> None:
    """Of 780 pairs of questions, at most 400 are compared."""
    wrong = draw(share=0.25)
    least, questions = groups._frequent_questions(groups._wrong_matrix(wrong), most_pairs=400)
    n_common = (groups._wrong_matrix(wrong).T @ groups._wrong_matrix(wrong)).toarray()
    counts = n_common[np.triu_indices(N_QUESTIONS, 1)]
    assert (counts >= least).sum() <= 400 < (counts >= least - 1).sum()
    first, second = np.triu_indices(N_QUESTIONS, 1)
    in_pair = np.union1d(first[counts >= least], second[counts >= least])
    assert questions.tolist() == in_pair.tolist()
    pairs = groups.compare_pairs(wrong, most_pairs=400)
    # Each pair of questions has 3 · 3 pairs of wrong options.
    assert pairs.covariance.nnz == 9 * (counts >= least).sum()


# ---- How sure groups are -------------------------------------------------------------------------


def test_lift_is_one_where_choices_are_independent_and_higher_in_planted_groups() -> None:
    """With a share s of followers, the lift is E[p²] / E[p]² over both kinds of students.

    Followers choose the option with probability 0.9, others with 1/3; a quarter follow. So the lift
    is (0.25 · 0.81 + 0.75 / 9) / 0.475² = 1.267. It may miss by four standard errors, at most 0.2.
    """
    wrong = draw(share=0.25)
    permuted = permute_within_questions(wrong)
    for expected, answers in ((1.267, wrong), (1, permuted)):
        for lift in groups.measure_lift(answers, PLANTED):
            width = 4 * (lift.high - lift.low) / (2 * groups.Z_95)
            assert width < 0.2
            assert lift.value == pytest.approx(expected, abs=width)


def test_a_ratio_of_few_students_has_no_interval() -> None:
    few = groups.ratio_by_student(np.ones(19), np.full(19, 0.5))
    assert few.value == 2 and np.isnan(few.low) and np.isnan(few.high)
    enough = groups.ratio_by_student(np.ones(20), np.full(20, 0.5))
    assert enough == Ratio(2, 2, 2)
    assert np.isnan(groups.ratio_by_student(np.zeros(3), np.zeros(3)).value)


def test_each_answer_is_predicted_from_the_others_alone() -> None:
    """Exchanging the chosen option of one answer leaves its own prediction the same."""
    wrong = draw(share=0.25).of_students(first_students(50))
    before = groups.predict_with_groups(wrong, wrong, PLANTED)
    # An answer with the option of a group.
    row = int((PLANTED[wrong.question * N_OPTIONS + wrong.option] >= 0).argmax())
    option = wrong.option.copy()
    option[row] = 2
    changed = WrongAnswers(
        wrong.student, wrong.question, option, wrong.probability, N_STUDENTS, N_QUESTIONS
    )
    after = groups.predict_with_groups(changed, changed, PLANTED)
    np.testing.assert_allclose(after[row], before[row], rtol=1e-12)
    assert (np.abs(after - before).max(axis=1) > 1e-6).any()


def test_a_student_concerns_a_group_with_two_of_its_options() -> None:
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1], np.int32),
        question=np.array([0, 1, 0, 1], np.int32),
        option=np.array([1, 1, 1, 2], np.int8),
        probability=np.full((4, N_OPTIONS), 0.25, np.float32),
        n_students=2,
        n_questions=2,
    )
    group = np.array([-1, 0, -1, -1, -1, 0, -1, -1])
    assert groups.count_students(wrong, group).tolist() == [1]


def test_the_subjects_of_a_group_are_those_of_most_questions_and_may_hold_a_comma() -> None:
    def option(*subjects: str) -> misconceptions.WrongOption:
        return misconceptions.WrongOption(1, 2, 3, 0.5, 10, list(subjects), "", "")

    options = [option("Area, volume"), option("Area, volume", "Angles"), option("Angles"), option()]
    group = misconceptions.Group(5, Ratio(1.0, 1.0, 1.0), [*options, option("Area, volume")])
    assert group.common_subjects == ["Area, volume"]


def test_a_few_rare_choices_are_no_evidence_of_a_misconception() -> None:
    """Three students get two questions wrong, and all choose an option with probability 0.05."""
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1, 2, 2], np.int32),
        question=np.array([0, 1, 0, 1, 0, 1], np.int32),
        option=np.full(6, 1, np.int8),
        probability=np.array([[0, 0.05, 0.5, 0.45]] * 6, np.float32),
        n_students=3,
        n_questions=2,
    )
    pairs = groups.compare_pairs(wrong)
    # 3 · 0.95² = 2.7; without EXTRA_VARIANCE, the evidence would be 2.7 / (√3 · 0.0475) = 33.
    assert pairs.covariance[1, 5] == pytest.approx(2.7, abs=0.01)
    assert (groups.find_groups(pairs, 3.5) == -1).all()


def test_choices_in_other_answers_are_counted_for_each_group() -> None:
    """A student chose the group's option once in known answers, and in one of two asked ones."""
    group = np.array([-1, 0, -1, -1] * 3)

    def answers(question: list[int], option: list[int]) -> WrongAnswers:
        probability = np.array([[0, 0.5, 0.3, 0.2]] * len(question), np.float32)
        return WrongAnswers(
            student=np.zeros(len(question), np.int32),
            question=np.array(question, np.int32),
            option=np.array(option, np.int8),
            probability=probability,
            n_students=1,
            n_questions=3,
        )

    choices = groups.pair_choices(answers([0], [1]), answers([1, 2], [1, 2]), group)
    assert (choices.n_pairs[0, 0], choices.n_expected[0, 0]) == (1, 1)
    # Among three answers, two choices make two ordered pairs; each expects 0.5 + 0.5 others.
    wrong = answers([0, 1, 2], [1, 1, 2])
    choices = groups.pair_choices(wrong, wrong, group)
    assert (choices.n_pairs[0, 0], choices.n_expected[0, 0]) == (2, 2)


def test_no_groups_are_found_without_pairs() -> None:
    nothing = sparse.csr_array((8, 8), dtype=np.float32)
    assert (groups.find_groups(Pairs(nothing, nothing, N_OPTIONS), 4.0) == -1).all()


# ---- Planting misconceptions ---------------------------------------------------------------------


def simulate(n_misconceptions: int) -> generate_sample.School:
    """Simulate the answers of tasks 1/2 of the size tiny."""
    setting = generate_sample.settings("tiny").tasks_1_2
    rng = np.random.default_rng(0)
    return generate_sample.simulate(rng, setting, make_subjects(), n_misconceptions)


def test_planting_changes_only_answers_of_students_with_the_misconception() -> None:
    plain = simulate(0)
    planted = simulate(5)
    assert plain.misconceptions is None and planted.misconceptions is not None
    listed = generate_sample.list_misconceptions(planted, planted.misconceptions)
    assert listed["Misconception"].value_counts().tolist() == [8] * 5
    changing = ("AnswerValue", "IsCorrect", "confidence")
    kept = [column for column in plain.answers if column not in changing]
    pd.testing.assert_frame_equal(plain.answers[kept], planted.answers[kept])
    number_of_question = listed.set_index("QuestionId")["Misconception"]
    number = planted.answers["QuestionId"].map(number_of_question).fillna(-1).astype(int)
    student = np.argsort(planted.students["UserId"].to_numpy())[planted.answers["UserId"]]
    has = (number >= 0) & planted.misconceptions.has[student, number]
    is_changed = plain.answers["AnswerValue"] != planted.answers["AnswerValue"]
    assert is_changed.any() and has[is_changed].all()
    # The probability of the right option is the same, so the shares differ by chance alone: of
    # about 1,200 answers, by four standard errors of 0.02 at most.
    right_before = plain.answers["IsCorrect"][has].mean()
    assert planted.answers["IsCorrect"][has].mean() == pytest.approx(right_before, abs=0.08)


def test_a_planted_misconception_leads_to_its_option() -> None:
    """A fifth of the students has it; they choose its option in eight of ten wrong answers more."""
    planted = simulate(5)
    assert planted.misconceptions is not None
    listed = generate_sample.list_misconceptions(planted, planted.misconceptions)
    answers = planted.answers.merge(listed, on="QuestionId", suffixes=("", "_planted"))
    wrong = answers[answers["IsCorrect"] == 0]
    student = np.argsort(planted.students["UserId"].to_numpy())[wrong["UserId"]]
    has = planted.misconceptions.has[student, wrong["Misconception"]]
    follows = wrong["AnswerValue"] == wrong["AnswerValue_planted"]
    # 0.2 of 1/3 or so remain. About 400 answers: a standard error of 0.02.
    assert follows[has].mean() > 0.75
    assert follows[~has].mean() < 0.5


def test_more_misconceptions_than_the_questions_have_room_for_are_refused() -> None:
    with pytest.raises(InputError, match="100 questions have room for 12 misconceptions"):
        simulate(13)


def test_misconceptions_without_room_are_refused_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks 1/2 of the size small have 1,000 questions, but tasks 3/4 only 300."""
    monkeypatch.delattr(generate_sample, "simulate")
    with pytest.raises(InputError, match="the 300 questions have room for 37 misconceptions"):
        generate_sample.generate(tmp_path / "data", "small", 0, n_misconceptions=38)
    assert not list(tmp_path.rglob("*.csv"))


# ---- The script ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulate small data with few questions, so that 12 misconceptions can be found."""
    folder = tmp_path_factory.mktemp("planted")
    generate_sample.generate(folder, "small", 0, n_questions=120, n_misconceptions=12)
    return folder


def arguments(data: Path, output: Path) -> list[str | Path]:
    """Return a command that writes the map of a data folder."""
    script = Path(misconceptions.__file__)
    folders: list[str | Path] = ["--input_dir", data / "train_data"]
    folders += ["--metadata_dir", data / "metadata", "--images_dir", data / "images"]
    return [script, *folders, "--output_dir", output]


@pytest.fixture(scope="module")
def planted_map(planted_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the map of the planted data, and with a page of question 5."""
    folder = tmp_path_factory.mktemp("map")
    report = folder / "question_report" / "question_5.html"
    report.parent.mkdir()
    report.touch()
    succeeds(arguments(planted_data, folder))
    return folder


def test_the_page_and_the_table_show_the_planted_misconceptions(
    planted_data: Path, planted_map: Path
) -> None:
    report = planted_map / "question_report" / "question_5.html"
    table = pd.read_csv(planted_map / misconceptions.TABLE)
    keys = ["QuestionId", "AnswerValue"]
    planted_file = planted_data / "test_data" / "planted_misconceptions_task_3_4.csv"
    both = table.merge(pd.read_csv(planted_file), on=keys, how="outer")
    # Options in no group are groups of their own.
    alone = pd.Series(-1.0 - np.arange(len(both)))
    found = both["Group"].fillna(alone)
    planted = both["Misconception"].fillna(alone)
    # The seed gives 0.44. Groups by chance would give 0.
    assert adjusted_rand_score(planted, found) > 0.2
    assert not table.duplicated(["Group", "QuestionId"]).any()
    assert table["Students"].is_monotonic_decreasing

    html = (planted_map / misconceptions.PAGE).read_text(encoding="utf-8")
    links = re.findall(r'href="(file:[^"]*)"', html)
    images = [(planted_data / "images" / f"{q}.jpg").as_uri() for q in table["QuestionId"]]
    page = read_page(re.sub(r"<script>.*</script>", "", html, flags=re.DOTALL), links)
    assert {*links} == {*images, report.resolve().as_uri()}
    assert "From simulated answers" in page.text
    assert f"{table['Group'].max()} groups" in page.text
    first = table[table["Group"] == 1]
    shown = page.table("Group 1:")
    assert shown.column("wrong option") == first["AnswerValue"].astype(str).tolist()
    assert shown.column("subjects") == first["Subjects"].tolist()


@needs_browser
def test_the_search_shows_the_groups_with_all_words(planted_map: Path, tmp_path: Path) -> None:
    """A number finds the question of that number alone; other words may be parts of words."""
    table = pd.read_csv(planted_map / misconceptions.TABLE, keep_default_na=False)
    n_groups = table["Group"].max()
    # The shortest number of a question, which is a part of others.
    number = table["QuestionId"].min()
    by_question = table["Group"][table["QuestionId"] == number].unique().tolist()
    subject = table["Subjects"].iloc[0]
    has_subject = table["Subjects"].str.contains(subject, regex=False)
    by_subject = table["Group"][has_subject].unique().tolist()
    searches = {
        str(number): by_question,
        f"Question {number}": by_question,
        # Capitals and a cut word.
        subject.upper()[:-1]: by_subject,
        f"{subject} no-such-word": [],
        "": list(range(1, n_groups + 1)),
    }
    assert 0 < len(by_question) < n_groups and 0 < len(by_subject) < n_groups
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(planted_map / misconceptions.PAGE)
        assert f"{n_groups} groups" in tab.text()
        tab.click("search")
        for words, expected in searches.items():
            tab.run("document.getElementById('search').select()")
            if words:
                tab.type(words)
            else:
                tab.press("Backspace")
            text = tab.text()
            shown = [int(number) for number in re.findall(r"Group (\d+):", text)]
            assert shown == expected, words
            assert f"{len(expected)} of {n_groups} groups" in text
        assert not tab.complaints


def test_data_without_groups_give_a_page_that_says_so(planted_data: Path, tmp_path: Path) -> None:
    """Ten students are too few for any group."""
    train = pd.read_csv(planted_data / "train_data" / layout.TRAIN_TASK_3_4)
    few = train[train["UserId"].isin(train["UserId"].unique()[:10])]
    folder = tmp_path / "train_data"
    folder.mkdir()
    few.to_csv(folder / layout.TRAIN_TASK_3_4, index=False)
    succeeds(arguments(tmp_path, tmp_path))
    page = read_page((tmp_path / misconceptions.PAGE).read_text(encoding="utf-8"))
    assert "No group was found." in page.text
    assert pd.read_csv(tmp_path / misconceptions.TABLE).empty


def test_answers_without_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train_data").mkdir()
    file = tmp_path / "train_data" / layout.TRAIN_TASK_3_4
    file.write_text("QuestionId,UserId,IsCorrect\n1,1,1\n", encoding="utf-8")
    message = fails(arguments(tmp_path, tmp_path))
    assert "CorrectAnswer" in message and str(file) in message
    assert not (tmp_path / misconceptions.PAGE).exists()


def test_the_three_parts_of_the_students_have_the_shares_they_should() -> None:
    part = misconceptions.draw_parts(10_000, seed=0)
    share = np.bincount(part) / len(part)
    # Four standard errors of a share of 0.6 are 0.02.
    np.testing.assert_allclose(share, misconceptions.SHARES, atol=0.02)
