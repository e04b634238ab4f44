"""The rules of task 4: what an entry sees, what it may do, how it is scored."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.adaptive import game
from common.adaptive.game import N_ROUNDS, Game, LocalEntry, Reference, Rules
from common.adaptive.training import count_questions
from common.errors import InputError
from common.sandbox import EntryError

import numpy as np
import pandas as pd
import pytest
from conftest import Write, answers_frame
from task_4_models import as_reference

# A mask is a column that marks target answers, which the entry must predict. The students below
# have one mask.
MASK = "IsTarget"
Array = np.ndarray[Any, Any]


def make_students(n_students: int) -> Reference:
    """Draw answers of students 100, 103, … to 40 questions, and choose the targets.

    A target is an answer that the entry has to predict. By default, the entry may not ask for it.
    No answer to questions 0 to 9 is a target. Every answer to question 15 is a target, and so is a
    fifth of the other answers.
    """
    rng = np.random.default_rng(0)
    # All students have answered questions 0 to 19, and about half have answered each later one.
    has_answered = rng.random((n_students, 40)) < 0.5
    has_answered[:, :20] = True
    # From here on, an element of each array belongs to one answer.
    student, question = np.nonzero(has_answered)

    is_target = rng.random(len(student)) < 0.2
    # Ten questions are never targets, so that no student runs out of questions in ten rounds.
    is_target[question < N_ROUNDS] = False
    # The tests below have faulty entries that choose or predict question 15.
    is_target[question == 15] = True

    option, correct = rng.integers(1, 5, (2, len(student))).astype(np.int8)
    is_correct = (option == correct).astype(np.int8)
    # The option chosen at questions 3, 10, 17, … is not known; -1 stands for it.
    option[question % 7 == 3] = -1
    answers = answers_frame(100 + 3 * student, question, is_correct, option, correct)
    return game.make_reference("students.csv", answers, {MASK: is_target})


STUDENTS = make_students(7)


class StubEntry:
    """An entry that asks every student the first question allowed, and predicts 1 everywhere.

    Tests replace its choices or its predictions by others, which may be faulty.

    Parameters
    ----------
    select : callable, optional
        Takes the first question that each student may be asked, of shape (students,). Returns the
        questions to ask instead.
    predict : callable, optional
        Takes the options revealed so far, of shape (students, questions). Returns the predictions.
    probabilities : array_like, optional
        Probabilities to return, broadcast to shape (students, questions). Without them, the entry
        has no method ``predict_probabilities``.
    """

    def __init__(
        self,
        select: Callable[[Array], Any] = lambda chosen: chosen,
        predict: Callable[[Array], Any] = lambda data: np.ones(data.shape, int),
        probabilities: Any = None,
    ) -> None:
        def select_questions(options: Array, outcomes: Array, can_query: Array) -> Any:
            # In each row of `can_query`, argmax finds the first question that may be asked.
            first_allowed = can_query.argmax(axis=1)
            return select(first_allowed)

        def update_model(options: Array, outcomes: Array, can_query: Array) -> None:
            """Learn nothing."""

        def predict_outcomes(options: Array, outcomes: Array) -> Any:
            return predict(options)

        def predict_probabilities(options: Array, outcomes: Array) -> Array:
            return np.broadcast_to(probabilities, options.shape)

        # These functions are the methods that the game calls. They are set here and not defined in
        # the class, because an entry without `probabilities` must lack the last one.
        self.select_questions = select_questions
        self.update_model = update_model
        self.predict = predict_outcomes
        if probabilities is not None:
            self.predict_probabilities = predict_probabilities


def play_with(entry: Any, *rules: Rules) -> Game:
    """Let an entry play a game in this process with the seven students of `STUDENTS`."""
    return game.play(LocalEntry(entry), STUDENTS, MASK, *rules)


# ---- What an entry sees ------------------------------------------------------------------------


class Spy:
    """An entry that keeps what it sees, and then overwrites it.

    The entry gets copies of the game's arrays. Overwriting a copy must change nothing in the game.
    """

    def __init__(self) -> None:
        # For each call of one of the entry's methods, copies of the arrays that the method got.
        self.seen: list[list[Array]] = []

    def look(self, *arrays: Array) -> Any:
        """Keep copies of the arrays, overwrite the arrays, and predict 1 everywhere."""
        self.seen.append([array.copy() for array in arrays])
        for array in arrays:
            array[:] = 1
        return np.ones(arrays[0].shape, bool)

    def select_questions(self, data: Array, binary: Array, can_query: Array) -> Any:
        """Ask the last question that may be asked."""
        # `argmax` finds the first allowed question in a reversed row: the number of columns after
        # the last one that may be asked.
        n_after = can_query[:, ::-1].argmax(axis=1)
        chosen = can_query.shape[1] - 1 - n_after
        self.look(data, binary, can_query)
        return chosen

    update_model = look
    predict = look


@pytest.mark.parametrize("targets_queryable", [False, True])
@pytest.mark.parametrize("unobserved", [-1, 0])
def test_an_entry_sees_only_what_is_revealed(targets_queryable: bool, unobserved: int) -> None:
    """The number `unobserved` stands in the place of every answer that is not revealed.

    In each round, the game calls `select_questions`, reveals the answers to the questions chosen,
    and calls `update_model`. After the last round, it calls `predict`.
    """
    entry = Spy()
    rules = Rules(targets_queryable, unobserved)

    played = play_with(entry, rules)

    # `select_questions` and `update_model` get three arrays: options, outcomes, and the questions
    # that may still be asked. `predict` gets options and outcomes.
    assert [len(arrays) for arrays in entry.seen] == [3, 3] * N_ROUNDS + [2]
    calls = iter(entry.seen)
    # Whether each question has been asked, shape (students, questions).
    is_asked = np.zeros(STUDENTS.is_correct.shape, bool)
    all_students = np.arange(len(is_asked))
    for round_number in range(N_ROUNDS):
        seen_by_select_questions = next(calls)
        assert_sees_what_is_revealed(seen_by_select_questions, is_asked, rules)
        # The question that each student was asked in this round.
        chosen = played.chosen[:, round_number]
        is_asked[all_students, chosen] = True
        seen_by_update_model = next(calls)
        assert_sees_what_is_revealed(seen_by_update_model, is_asked, rules)
    seen_by_predict = next(calls)
    assert_sees_what_is_revealed(seen_by_predict, is_asked, rules)
    # The entry asks a target if, and only if, the rules allow it.
    assert (is_asked & STUDENTS.targets[MASK]).any() == targets_queryable


def assert_sees_what_is_revealed(seen: list[Array], is_asked: Array, rules: Rules) -> None:
    """Check that an entry has seen exactly what is revealed by the questions asked so far.

    `seen` holds the options, the outcomes, and in some calls the questions that may still be asked.
    """
    is_target = STUDENTS.targets[MASK]
    # In `STUDENTS`, -1 stands for an outcome or an option that is not known.
    has_answered = STUDENTS.is_correct != -1
    has_known_option = STUDENTS.option != -1
    may_be_asked = has_answered if rules.targets_queryable else has_answered & ~is_target

    options = np.where(is_asked & has_known_option, STUDENTS.option, rules.unobserved)
    outcomes = np.where(is_asked, STUDENTS.is_correct, rules.unobserved)
    expected = [options, outcomes]
    # `predict` gets two arrays. The other methods get a third: the questions that may still be
    # asked.
    if len(seen) == 3:
        expected.append(may_be_asked & ~is_asked)

    for seen_array, expected_array in zip(seen, expected, strict=True):
        assert seen_array.dtype == np.int64
        assert np.array_equal(seen_array, expected_array)


# ---- What an entry returns ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            StubEntry(lambda chosen: chosen.tolist(), lambda data: np.ones(data.shape, bool)),
            id="list and booleans",
        ),
        pytest.param(
            StubEntry(
                lambda chosen: chosen[:, None], lambda data: np.ones(data.shape, "f2").tolist()
            ),
            id="column and floats",
        ),
        pytest.param(
            StubEntry(predict=lambda data: np.where(STUDENTS.targets[MASK], 1, np.nan)),
            id="NaN where there is no target",
        ),
    ],
)
def test_numbers_of_many_types_are_accepted(entry: StubEntry) -> None:
    expected = play_with(StubEntry())
    played = play_with(entry)
    assert np.array_equal(played.prediction, expected.prediction)
    assert np.array_equal(played.chosen, expected.chosen)


def predicting_once(value: float) -> StubEntry:
    """Return an entry that predicts `value` for a single target, and 1 for all others."""
    # Question 15 is a target of all seven students. The single target belongs to the student in row
    # 3.
    prediction = np.ones((7, 40))
    prediction[3, 15] = value
    return StubEntry(predict=lambda data: prediction)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        # Column 15 is a target of every student: an answer to predict, which must not be asked. The
        # questions have the columns 0 to 39, so column 40 does not exist.
        pytest.param(
            object(),
            "select_questions: class Submission has no method select_questions or select_f",
            id="no method",
        ),
        pytest.param(
            StubEntry(lambda chosen: None),
            "returned nothing, expected one column index for each of the",
            id="no choice",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen[:-1]),
            r"returned shape \(6,\), expected one column index",
            id="no question for one student",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen.astype(float)),
            "returned float64 values, expected whole numbers",
            id="fractions as choice",
        ),
        pytest.param(
            StubEntry(lambda chosen: [*chosen[:-1], [1, 2]]),
            "returned a list that is not an array",
            id="two questions for one student",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen * 0 - 1),
            r"student 0 \(UserId 100\): chose column -1, expected",
            id="negative column",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen * 0 + 40),
            "chose column 40, expected 0 to 39",
            id="column beyond the last one",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen * 0 + 15),
            r"chose QuestionId 15, which is a target \(7 such students\)",
            id="target",
        ),
        pytest.param(
            StubEntry(lambda chosen: chosen * 0),
            "2, select_questions: .* was asked in round 1 already",
            id="the same question again",
        ),
        pytest.param(
            StubEntry(lambda _: (STUDENTS.is_correct < 0).argmax(1)),
            "which the student has not",
            id="question that the student has not answered",
        ),
        pytest.param(
            StubEntry(predict=lambda data: None),
            "predict: returned nothing, expected an array of",
            id="no prediction",
        ),
        pytest.param(
            predicting_once(0.7),
            r"student 3 \(UserId 109\): predicted 0.7 for QuestionId 15 \(1 such targets\)",
            id="fraction as prediction",
        ),
        pytest.param(
            predicting_once(2), "predicted 2.0 for QuestionId 15", id="prediction above 1"
        ),
        pytest.param(
            predicting_once(np.nan),
            "predicted nan for QuestionId 15 .* expected 0 or 1",
            id="NaN as prediction",
        ),
        pytest.param(
            StubEntry(predict=lambda data: [1] * 40),
            r"returned shape \(40,\), expected an .* \(7, 40",
            id="predictions of one student",
        ),
        pytest.param(
            StubEntry(),
            "--probabilities asks for: class Submission has no method predict_prob",
            id="no method for probabilities",
        ),
        pytest.param(
            StubEntry(probabilities=1.01),
            r"predicted 1\.01 for QuestionId 1\d .* a number from 0 to 1",
            id="probability above 1",
        ),
        pytest.param(
            StubEntry(probabilities=np.nan), "predicted nan for QuestionId", id="NaN as probability"
        ),
        pytest.param(
            StubEntry(probabilities=-1), "predicted -1 for QuestionId", id="negative probability"
        ),
        pytest.param(
            StubEntry(probabilities=np.full((7, 40), "half")),
            "values, expected numbers",
            id="text as probability",
        ),
    ],
)
def test_an_entry_that_breaks_a_rule_is_told_which(entry: Any, fault: str) -> None:
    with pytest.raises(EntryError, match=f"^(after )?round .*{fault}"):
        game.play(LocalEntry(entry), STUDENTS, MASK, with_probability=True)


def test_a_random_choice_keeps_the_rules_and_chooses_equally_often() -> None:
    students = make_students(300)
    chosen = game.choose_at_random(students, MASK, seed=3)
    state = game.GameState(students, MASK, Rules())
    for round_number in range(N_ROUNDS):
        # This raises an error if a question may not be asked.
        state.reveal(state.check_selection(chosen[:, round_number]))
    # All students may be asked the first ten questions, so these must be chosen about equally
    # often. Other questions are left out, because some students have not answered them.
    counts = np.bincount(chosen.ravel())[:N_ROUNDS]
    assert counts.min() > 0.6 * counts.mean()


def test_a_seed_makes_the_same_random_choice() -> None:
    first = game.choose_at_random(STUDENTS, MASK, seed=3)
    second = game.choose_at_random(STUDENTS, MASK, seed=3)
    assert np.array_equal(first, second)


# ---- Students and files ------------------------------------------------------------------------


def test_a_student_with_too_few_answers_to_ask_is_named() -> None:
    # Each of two students has answered ten questions. The answer to the first question is a target,
    # so only nine answers may be asked.
    students = as_reference(np.ones((2, 10)), np.arange(20) % 10 == 0)
    fault = "UserId 0 has 9 answers that may be asked with mask 'mask', expected at least 10$"
    with pytest.raises(InputError, match=f"^students.csv: {fault}"):
        game.play(LocalEntry(StubEntry()), students, "mask")
    # If targets may be asked, ten answers are enough for the ten rounds.
    game.play(LocalEntry(StubEntry()), students, "mask", Rules(targets_queryable=True))


CSV = "QuestionId,UserId,IsCorrect,IsTarget\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (CSV.replace("Target", "Target_a"), "'IsTarget' is missing .*or several, numbered: 'Is"),
        (CSV + "1,2,1,0\n", "column 'IsTarget': is 0 in every row"),
        (CSV + "9999999,2,1,1\n" + "".join(f"1,{u},0,0\n" for u in range(20)), "file of task 4"),
    ],
)
def test_a_faulty_file_is_refused(write: Write, text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        game.read_reference(write("valid.csv", text))


MASKS = """\
IsTarget_1,QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue,IsTarget_0
0,4,9,1,1,3,3,1
1,2,9,2,0,3,1,0
0,4,7,3,0,3,4,1
"""


def test_students_and_masks_are_read_into_a_row_for_each_student(write: Write) -> None:
    path = write("masks.csv", MASKS.replace("\n", "\r\n"))
    students = game.read_reference(path, n_questions=6)
    assert students.student.tolist() == [7, 9]
    # -1 stands for no answer.
    assert students.is_correct.tolist() == [[-1, -1, -1, -1, 0, -1], [-1, -1, 0, -1, 1, -1]]
    assert students.option.tolist() == [[-1, -1, -1, -1, 4, -1], [-1, -1, 1, -1, 3, -1]]
    targets = {name: np.argwhere(mask).tolist() for name, mask in students.targets.items()}
    assert targets == {"IsTarget_1": [[1, 2]], "IsTarget_0": [[0, 4], [1, 4]]}


def test_without_a_number_of_questions_the_largest_id_decides(write: Write) -> None:
    assert game.read_reference(write("masks.csv", MASKS)).is_correct.shape == (2, 5)


def test_the_most_popular_answer_scores_on_real_students_as_the_organisers_say(
    real_data: Path,
) -> None:
    """The organisers' baseline predicts each question's most frequent outcome.

    They publish its score, 0.6365: the mean accuracy over the ten masks of the public test.
    """
    folder = real_data / "eedi_tasks_3_4"
    statistics = pd.read_csv(folder / "train_task_3_4_question_stats.csv")
    path = folder / "test_data" / "test_public_task_4_more_splits.csv"
    students = game.read_reference(path, count_questions(None, folder / "metadata"))
    n_questions = 948
    assert students.is_correct.shape == (615, n_questions)
    assert len(students.targets) == 10

    # Whether most answers to each question are right, in the order of the questions' ids.
    majority = statistics.set_index("QuestionId").MajorityCorrect.reindex(range(n_questions))
    entry = LocalEntry(StubEntry(predict=lambda options: np.tile(majority, (len(options), 1))))
    scores = []
    for mask in students.targets:
        played = game.play(entry, students, mask)
        scores.append(np.mean(played.truth == played.prediction))
    assert np.mean(scores) == pytest.approx(0.6365, abs=0.0001)
