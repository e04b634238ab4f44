"""The number of options of questions: how files state it, and which statements are refused."""

from collections.abc import Callable, Sequence
from pathlib import Path

from common import answer_options, reading, schema
from common.answers import read_answers, read_right_or_wrong
from common.errors import InputError

import numpy as np
import pandas as pd
import pytest
from conftest import Write
from numpy.testing import assert_allclose

# Question 7 has the right option 2, question 9 the right option 1.
OWN_HEADER = "QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue"
OWN_ROWS = ("7,0,1,2,2", "7,1,0,2,1", "9,0,1,1,1", "9,1,0,1,3")


def to_csv(header: str, rows: Sequence[str]) -> str:
    return "\n".join([header, *rows]) + "\n"


def with_column(name: str, cells: Sequence[object]) -> str:
    """Return the CSV text of `OWN_ROWS` with one more column."""
    rows = [f"{row},{cell}" for row, cell in zip(OWN_ROWS, cells, strict=True)]
    return to_csv(f"{OWN_HEADER},{name}", rows)


@pytest.mark.parametrize("highest", [2, 3, 5, 8])
def test_without_the_column_the_highest_option_of_the_file_is_the_number(
    write: Write, highest: int
) -> None:
    rows = [*OWN_ROWS[:3], f"9,1,0,1,{highest}"]
    answers = read_answers(write("own.csv", to_csv(OWN_HEADER, rows)))
    assert answers["NumberOfOptions"].tolist() == [highest] * 4
    assert answer_options.count_options(answers) == highest


def test_answers_to_questions_with_four_options_get_no_column(write: Write) -> None:
    answers = read_answers(write("own.csv", to_csv(OWN_HEADER, [*OWN_ROWS[:3], "9,1,0,1,4"])))
    assert "NumberOfOptions" not in answers
    assert answer_options.count_options(answers) == 4
    assert answer_options.number_of_each(answers).tolist() == [4] * 4


def test_a_file_with_answer_ids_has_four_options(write: Write) -> None:
    """A file with AnswerIds is a file of the challenge, whose questions have four options.

    `OWN_ROWS` has no option above 3. Without AnswerIds, the number of options would be 3.
    """
    path = write("challenge.csv", with_column("AnswerId", range(4)))
    assert answer_options.count_options(read_answers(path)) == 4


@pytest.mark.parametrize("read", [read_answers, read_right_or_wrong])
def test_a_fifth_option_is_a_fault_in_a_file_with_answer_ids(
    write: Write, read: Callable[[Path], pd.DataFrame]
) -> None:
    """In a user's own file, task 1 (`read_right_or_wrong`) ignores options that it cannot use.

    In a file with AnswerIds, which is a file of the challenge, an option above 4 is a fault.
    """
    # In the last row, the student chooses option 5 (the second cell from the right).
    rows = ["7,0,1,2,2,0", "9,1,0,1,5,1"]
    path = write("above.csv", to_csv(f"{OWN_HEADER},AnswerId", rows))
    with pytest.raises(InputError) as fault:
        read(path)
    expected = "column 'AnswerValue': row 3 is '5', expected a whole number from 1 to 4"
    assert str(fault.value) == f"{path}: {expected}"


def test_the_column_counts_even_if_there_are_answer_ids(write: Write) -> None:
    rows = ["7,0,1,2,2,0,2", "9,1,0,1,5,1,6"]
    path = write("own.csv", to_csv(f"{OWN_HEADER},AnswerId,NumberOfOptions", rows))
    answers = read_answers(path)
    assert answer_options.count_options(answers) == 6
    number = answer_options.number_by_question(answers, np.array([0, 1]), 3)
    assert number.tolist() == [2, 6, 6]
    assert answer_options.number_by_id(answers, np.array([9, 8, 7])).tolist() == [6, 6, 2]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([4, 4, 2, 2], "'AnswerValue': row 5 is 3 .1 such rows., expected .* from 1 to 2, the Num"),
        ([4, 3, 5, 5], "'NumberOfOptions': row 3 is 3, but QuestionId 7 has 4 in an earlier row"),
        ([4, 4, 9, 9], "'NumberOfOptions': row 4 is '9'; .* expected a whole number from 2 to 8"),
    ],
)
def test_numbers_that_cannot_be_are_named(write: Write, numbers: list[int], message: str) -> None:
    path = write("own.csv", with_column("NumberOfOptions", numbers))
    with pytest.raises(InputError, match=message):
        read_answers(path)


def test_true_answers_tell_the_number(write: Write) -> None:
    def highest_in(header: str, *rows: str) -> int:
        source = reading.file_source(write("answers.csv", to_csv(header, rows)))
        return answer_options.column_in(source, schema.ANSWER_VALUE).high

    assert highest_in("UserId,QuestionId,AnswerId,AnswerValue", "0,7,0,1") == 4
    header = "UserId,QuestionId,AnswerValue"
    assert highest_in(f"{header},AnswerId,NumberOfOptions", "0,7,1,0,3", "0,9,1,1,5") == 5
    # Neither AnswerIds nor NumberOfOptions tell how many options there are: at least four, or the
    # highest in the file.
    assert highest_in(header, "0,7,1") == 4
    assert highest_in(header, "0,7,1", "1,7,6") == 6


def test_a_template_is_about_four_options_unless_it_states_another_number() -> None:
    template = pd.DataFrame({"UserId": [0, 1], "QuestionId": [7, 9]})
    column = schema.ANSWER_VALUE
    assert answer_options.column_for(template, column).high == 4
    template = template.assign(NumberOfOptions=[2, 3])
    assert answer_options.column_for(template, column).high == 3
    assert answer_options.column_for(template, schema.IS_CORRECT) == schema.IS_CORRECT


@pytest.mark.parametrize("answer_value", ["E", "", "0", "2"])
def test_task_1_goes_on_without_options_that_cannot_be_used(
    write: Write, capsys: pytest.CaptureFixture[str], answer_value: str
) -> None:
    """Task 1 needs no options, and ignores the columns of options if a cell is invalid.

    In the last answer, the chosen option is `answer_value`. "E", an empty cell and 0 are no
    options. Option 2 is the right option of the question, but the answer is marked as wrong.
    """
    rows = [*OWN_ROWS[:3], f"7,5,0,2,{answer_value}"]
    path = write("own.csv", to_csv(OWN_HEADER, rows))
    answers = read_right_or_wrong(path)
    assert list(answers) == ["QuestionId", "UserId", "IsCorrect"]
    assert answers["IsCorrect"].tolist() == [1, 0, 1, 0]
    assert "task 1 goes on without the options" in capsys.readouterr().out
    with pytest.raises(InputError):
        read_answers(path)


def test_other_faults_are_not_passed_over_in_task_1(write: Write) -> None:
    path = write("own.csv", to_csv(OWN_HEADER, [*OWN_ROWS, "7,0,1,2,2"]))
    with pytest.raises(InputError, match="repeats row 2"):
        read_right_or_wrong(path)


def test_answers_in_memory_state_the_number_only_if_it_is_not_four(write: Write) -> None:
    source = reading.file_source(write("own.csv", to_csv(OWN_HEADER, OWN_ROWS)))
    answers = pd.DataFrame({"CorrectAnswer": [1, 2], "AnswerValue": [1, 3]})
    header = OWN_HEADER.split(",")
    stated = answer_options.add_number_of_options(source, answers, header)
    assert stated["NumberOfOptions"].tolist() == [3, 3]
    of_challenge = answer_options.add_number_of_options(source, answers, [*header, "AnswerId"])
    assert "NumberOfOptions" not in of_challenge


def test_probabilities_are_divided_among_the_options_that_each_question_has() -> None:
    """A model gives probabilities of four options for each question, but questions have 2, 3 and 5.

    Options that a question lacks get the probability 0. An option that the model lacks first gets
    1 / (number of options of the question). Then the probabilities of each question are divided by
    their sum.
    """
    template = pd.DataFrame({"QuestionId": [1, 2, 3], "UserId": 1, "NumberOfOptions": [2, 3, 5]})
    p_option = np.array([[0.2, 0.2, 0.2, 0.4]] * 3)
    expected = [
        [0.5, 0.5, 0, 0, 0],
        [1 / 3, 1 / 3, 1 / 3, 0, 0],
        # The fifth option gets 1 / 5, and the sum is 1.2.
        np.array([0.2, 0.2, 0.2, 0.4, 0.2]) / 1.2,
    ]
    assert_allclose(answer_options.for_template(p_option, template), expected)
    # The first two questions have at most three options, so the result has three columns.
    expected_of_two = [row[:3] for row in expected[:2]]
    assert_allclose(answer_options.for_template(p_option[:2], template[:2]), expected_of_two)
    # Without the column NumberOfOptions, the function returns the probabilities unchanged.
    without = template.drop(columns="NumberOfOptions")
    assert answer_options.for_template(p_option, without) is p_option
