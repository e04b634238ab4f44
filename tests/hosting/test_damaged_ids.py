"""Ids that a spreadsheet has damaged are refused, before students with equal ids are merged."""

from pathlib import Path

from common.errors import InputError
from common.reading import file_source

import damaged_ids
import numpy as np
import own_answers
import pandas as pd
import pytest
from conftest import Write

HEADER = "QuestionId,UserId,AnswerValue,CorrectAnswer"


def make(write: Write, tmp_path: Path, ids: list[str]) -> list[str]:
    """Make a data folder from answers of the students `ids`, each to the same 20 questions."""
    rng = np.random.default_rng(0)
    rows = [
        f'q{question},"{user}",{rng.integers(1, 5)},{question % 4 + 1}'
        for user in ids
        for question in range(20)
    ]
    path = write("own.csv", "\n".join([HEADER, *rows, ""]))
    return own_answers.make_data_folder(path, tmp_path / "made", [1], rng, min_answers=0)


def with_some(*damaged: str) -> list[str]:
    """Return ids of 30 students: first ids that a spreadsheet damaged, then 100, 101 and so on."""
    n_others = 30 - len(damaged)
    others = [str(100 + number) for number in range(n_others)]
    return [*damaged, *others]


@pytest.mark.parametrize(
    ("damaged", "fault"),
    [
        (["1.23457E+11"], "row 2 is '1.23457E+11': a spreadsheet has shortened long numbers"),
        (["1,23457E+11"], "row 2 is '1,23457E+11': a spreadsheet has shortened long numbers"),
        (["1E+11", "1e+12"], "row 2 is '1E+11'; row 22 is '1e+12': a spreadsheet has shortened"),
        (["2-Jan", "Mar-04"], "row 2 is '2-Jan'; row 22 is 'Mar-04': a spreadsheet has made dates"),
        (["02.01.2020", "3/4/2021"], "row 2 is '02.01.2020'; row 22 is '3/4/2021': a spreadsheet"),
        (["2020-01-02 00:00:00"], "a spreadsheet has made dates of some ids"),
        (["3,0"], "row 2 is '3,0': a spreadsheet has put commas into some numbers"),
        (["1,234", "5,678,9"], "row 2 is '1,234': a spreadsheet has put commas"),
        (["1.000", "1.234"], "row 2 is '1.000'; row 22 is '1.234': a spreadsheet has put points"),
        (["0100"], "row 2 is '0100'; row 22 is '100': a spreadsheet has dropped zeros before some"),
        (["0", "00"], "row 2 is '0'; row 22 is '00': a spreadsheet has dropped zeros"),
    ],
)
def test_a_form_in_which_only_spreadsheets_write_ids_is_refused(
    write: Write, tmp_path: Path, damaged: list[str], fault: str
) -> None:
    with pytest.raises(InputError) as caught:
        make(write, tmp_path, with_some(*damaged))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'own.csv'}: column 'UserId': row 2 is '")
    assert fault in message
    assert "export the answers again, with this column as text" in message
    assert not (tmp_path / "made").exists()


def test_ids_of_questions_are_looked_at_too(write: Write, tmp_path: Path) -> None:
    questions = ["1.23457E+11", *range(19)]
    rows = [f"{question},{user},1,2" for user in range(30) for question in questions]
    path = write("own.csv", "\n".join([HEADER, *rows]))
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"column 'QuestionId': row 2 is '1\.23457E"):
        own_answers.make_data_folder(path, tmp_path / "made", [1], rng, min_answers=0)


@pytest.mark.parametrize(
    "ids",
    [
        # Whole numbers as pandas writes floats, with one decimal place, and with three places.
        [f"{k}.0" for k in range(30)],
        [f"{k}.000" for k in range(30)],
        # Sections of a book.
        [f"{k % 5}.{k}.12" for k in range(30)],
        # A spreadsheet that turns ids into dates damages only some ids of a file. Here all ids look
        # like dates, so the organiser has chosen them.
        [f"{k + 1}-Jan" for k in range(30)],
        # Leading zeros fill all ids to three digits.
        [f"{k:03}" for k in range(30)],
        [f"891e{k}" for k in range(30)],
        [f"1-{k}" for k in range(30)],
        [str(1000 * k) for k in range(30)],
        [f"id {k},5" for k in range(30)],
    ],
    ids=lambda ids: ids[1],
)
def test_ids_that_people_give_are_taken(write: Write, tmp_path: Path, ids: list[str]) -> None:
    make(write, tmp_path, ids)
    students = pd.read_csv(tmp_path / "made/organiser/students.csv")
    assert len(students) == 30


# Ids of thirty students: numbers of 16 digits, which differ only in the last two.
LONG_IDS = [
    str(9_912_140_633_506_400 + int(number))
    for number in np.random.default_rng(0).permutation(90)[:30]
]


def keep_15_digits(number: str) -> str:
    """Round a number of 16 digits as a spreadsheet does: it stores 15 digits and then a 0."""
    return f"{number[:15]}0"


def keep_6_digits(number: str) -> str:
    """Round a number to the six digits that a spreadsheet shows: 9.91214E+15 for example."""
    shown = f"{float(number):.5e}"
    return str(int(float(shown)))


def test_long_numbers_are_kept_as_ids(write: Write, tmp_path: Path) -> None:
    make(write, tmp_path, LONG_IDS)
    students = pd.read_csv(tmp_path / "made/organiser/students.csv", dtype=str)
    assert sorted(students["OwnUserId"]) == sorted(LONG_IDS)


@pytest.mark.parametrize(
    "rounded",
    [
        pytest.param([keep_15_digits(number) for number in LONG_IDS], id="15 digits"),
        pytest.param([keep_6_digits(number) for number in LONG_IDS], id="6 digits"),
        pytest.param(
            [keep_15_digits(number) for number in LONG_IDS[:16]] + LONG_IDS[16:],
            id="15 digits of the first half",
        ),
    ],
)
def test_long_numbers_that_rounding_has_made_equal_are_refused(
    write: Write, tmp_path: Path, rounded: list[str]
) -> None:
    # Twenty other students have ids that rounding has not made equal.
    others = [f"{123457 + number}000000" for number in range(20)]
    with pytest.raises(InputError, match=r"column 'UserId': row .* has probably rounded long"):
        make(write, tmp_path / "again", others + rounded)


def test_repeated_answers_of_whole_numbers_are_later_attempts(write: Write, tmp_path: Path) -> None:
    """Every student answers every question twice; the second answers count as later attempts.

    Equal ids could also be the ids of different students, made equal by a spreadsheet that rounds
    them. But rounded ids of 16 digits end in 0, and nine of ten ids here do not.
    """
    ids = [str(9_912_140_633_506_400 + k) for k in range(30)]
    notes = make(write, tmp_path, [*ids, *ids])
    assert "left out as later attempts: 600 rows" in notes[0]


def test_rounded_ids_without_repeated_answers_are_taken(write: Write) -> None:
    """Rounded ids are accepted if no student seems to answer a question twice."""
    ids = pd.Series([f"{k + 100000}0000" for k in range(20)])
    source = file_source(write("own.csv", "\n".join(["UserId", *ids, ""])))
    no_row_repeated = pd.Series([False] * 20)
    damaged_ids.require_unmerged(source, "UserId", ids, no_row_repeated)
    last_row_repeated = pd.Series([False] * 19 + [True])
    with pytest.raises(InputError, match="row 21 is '1000190000': a spreadsheet has probably"):
        damaged_ids.require_unmerged(source, "UserId", ids, last_row_repeated)
