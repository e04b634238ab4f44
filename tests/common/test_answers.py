"""Answers keep the order of the file, occur once, and are as right as the options say."""

from common.answers import read_answers
from common.errors import InputError

import numpy as np
import pytest
from conftest import Write

HEADER = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue\n"


def test_answers_stay_in_the_order_of_the_file(write: Write) -> None:
    """The answers keep their order even if the file is so long that it is read in blocks."""
    # A file is read in blocks of 4 MiB. A file with 400,000 rows is longer than two blocks.
    block_size = 4 << 20
    n_answers = 400_000
    rng = np.random.default_rng(0)
    answer_id = rng.permutation(n_answers)
    # 800 students answer all of 500 questions.
    student = answer_id // 500 + 100_000
    question = answer_id % 500
    option, right_option = rng.integers(1, 5, (2, n_answers))
    is_right = option == right_option
    # The columns in the order of `HEADER`.
    columns = [question, student, answer_id, is_right, right_option, option]
    rows = np.column_stack(columns).tolist()
    lines = [",".join(map(str, row)) + "\n" for row in rows]
    path = write("a.csv", HEADER + "".join(lines))
    assert path.stat().st_size > 2 * block_size

    answers = read_answers(path, ids=True)

    assert [*answers] == HEADER.strip().split(",")
    # Ids are stored in four bytes, outcomes and options in one byte.
    assert [str(dtype) for dtype in answers.dtypes] == 3 * ["int32"] + 3 * ["int8"]
    for name, values in zip(answers, columns, strict=True):
        assert np.array_equal(answers[name], values)


# In the second row, IsCorrect is 1, but the chosen option is wrong. In the third row, IsCorrect is
# 0, but the chosen option is right.
CONTRADICTING = HEADER + "5,9,100,1,2,2\n6,9,101,1,1,4\n7,9,102,0,1,1\n"


def test_an_outcome_that_contradicts_the_options_is_refused(write: Write) -> None:
    with pytest.raises(InputError) as raised:
        read_answers(write("a.csv", CONTRADICTING))
    fault = "row 3: column 'IsCorrect' is 1, but AnswerValue is 4 and CorrectAnswer is 1"
    assert fault in str(raised.value)
    assert "(2 such rows)" in str(raised.value)


def test_options_that_are_not_asked_for_are_not_compared(write: Write) -> None:
    assert len(read_answers(write("a.csv", CONTRADICTING), options=False)) == 3


def test_a_missing_column_of_options_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="column 'CorrectAnswer' is missing"):
        read_answers(write("half.csv", "QuestionId,UserId,IsCorrect,AnswerValue\n5,9,1,2\n"))


def test_a_pair_that_occurs_twice_is_refused(write: Write) -> None:
    path = write("b.csv", HEADER + "5,9,100,1,2,2\n5,8,101,0,2,4\n5,9,102,0,2,4\n")
    with pytest.raises(InputError, match="row 4 repeats row 2: UserId 9 and QuestionId 5"):
        read_answers(path)


@pytest.mark.parametrize(("first_id", "is_rounded"), [("123457000", True), ("123457001", False)])
def test_repeats_of_rounded_ids_are_told_apart(
    write: Write, first_id: str, is_rounded: bool
) -> None:
    """The message about repeated answers guesses the reason from their UserIds.

    If all these UserIds end in zeros, perhaps different ids were rounded to the same id. Otherwise,
    the file may hold its answers twice.
    """
    rows = "".join(f"5,{int(first_id) + 1000 * k},{k},1,2,2\n" for k in range(3))
    with pytest.raises(InputError, match=rf"UserId {first_id} .*\(3 repeated rows\)") as raised:
        read_answers(write("a.csv", HEADER + rows + rows))
    assert ("all these UserIds end in zeros" in str(raised.value)) == is_rounded
