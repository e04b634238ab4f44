"""The columns of the challenge's files: the name, type and range of each."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

# Types of columns. Numbers are those of NumPy.
INT8 = "int8"
INT32 = "int32"
FLOAT32 = "float32"
FLOAT64 = "float64"
# Text is read unchanged.
TEXT = "text"
# Dates are read with or without a time of day, to the minute.
DATE = "datetime64[m]"

INT32_MAX = 2**31 - 1
# Upper bound on ids that index arrays directly.
_ID_MAX = 2**24 - 1
# Stands for a whole number that is unknown, or that was reported as faulty.
UNREADABLE = -1

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of a CSV file and the values that it may hold."""

    name: str
    # The type of the values, one of the constants above.
    dtype: str = INT32
    # The lowest and the highest valid number.
    low: int = 0
    high: int = INT32_MAX
    # Whether a cell may be empty; it is read as `missing`.
    may_be_empty: bool = False
    # Whether numbers must be whole.
    whole: bool = True
    # Whether the texts True and False, which pandas writes, are valid too. They stand for 1 and 0.
    is_boolean: bool = False

    @property
    def expected(self) -> str:
        """The valid values in words, for messages."""
        if self.dtype == TEXT:
            return "text"
        or_nothing = " or nothing" if self.may_be_empty else ""
        if self.dtype == DATE:
            return f"a date such as 2020-02-11 14:05:00.000{or_nothing}"
        number = "a whole number" if self.whole else "a number"
        return f"{number} from {self.low} to {self.high}{or_nothing}"

    @property
    def missing(self) -> Any:
        """The value of an empty cell: -1, NaN, NaT or an empty text."""
        missing_by_type = {
            INT8: UNREADABLE,
            INT32: UNREADABLE,
            TEXT: "",
            DATE: np.datetime64("NaT"),
        }
        return missing_by_type.get(self.dtype, np.nan)

    def parse(self, cell: str) -> Any:
        """Return the value of a cell; None if it is not valid."""
        text = cell.strip()
        if self.dtype == TEXT:
            return cell if text or self.may_be_empty else None
        if not text:
            return self.missing if self.may_be_empty else None
        if self.dtype == DATE:
            return _parse_date(text)
        return self._parse_number(text)

    def _parse_number(self, text: str) -> float | None:
        """Return the number that a text stands for; None if it is not valid."""
        if self.is_boolean:
            text = {"true": "1", "false": "0"}.get(text.lower(), text)
        if not _NUMBER.fullmatch(text):
            return None
        number = float(text)
        if self.whole and not number.is_integer():
            return None
        return number if self.low <= number <= self.high else None


def _parse_date(text: str) -> np.datetime64 | None:
    """Return the date that a text stands for; None if it is not valid."""
    if not _DATE.fullmatch(text):
        return None
    try:
        # Some versions of Python cannot read a fraction of a second.
        return np.datetime64(datetime.fromisoformat(text[:19]))
    except ValueError:
        return None


# Question ids index arrays directly, so they are bounded; the largest official one is 27,612.
QUESTION_ID = Column("QuestionId", high=9_999_999)
USER_ID = Column("UserId")
ANSWER_ID = Column("AnswerId")
IS_CORRECT = Column("IsCorrect", INT8, 0, 1, is_boolean=True)
CORRECT_ANSWER = Column("CorrectAnswer", INT8, 1, 4)
ANSWER_VALUE = Column("AnswerValue", INT8, 1, 4)
ANSWER_COLUMNS = (QUESTION_ID, USER_ID, ANSWER_ID, IS_CORRECT, CORRECT_ANSWER, ANSWER_VALUE)

OPTIONS = (1, 2, 3, 4)

# Task 3: a ranking of all questions, where 1 is the best. Columns of experts may have any name.
RANKING = Column("ranking", low=1)
LEFT = Column("left")
RIGHT = Column("right")


def expert_judgement(name: str) -> Column:
    """Return the column of an expert's judgements.

    A judgement is 1 if the left question is better, 2 if the right one is; it may be empty.
    """
    return Column(name, FLOAT32, 1, 2, may_be_empty=True)


# Task 4: target answers are 1, others 0. Files with ten masks number the columns from 0.
IS_TARGET = "IsTarget"


def target_column(name: str = IS_TARGET) -> Column | None:
    """Return the column of a target mask by its name: ``IsTarget``, ``IsTarget_0`` and so on.

    Returns None if the name is not that of a target mask.
    """
    if not re.fullmatch(rf"{IS_TARGET}(_\d+)?", name):
        return None
    return Column(name, INT8, 0, 1)


SUBJECT_LIST = Column("SubjectId", TEXT)
SUBJECT_ID = Column("SubjectId")
SUBJECT_NAME = Column("Name", TEXT)
PARENT_ID = Column("ParentId", TEXT, may_be_empty=True)
LEVEL = Column("Level", INT8, 0, 127)
ANSWER_ID_OR_EMPTY = Column("AnswerId", may_be_empty=True)
GENDER = Column("Gender", INT8, 0, 3)
DATE_OF_BIRTH = Column("DateOfBirth", DATE, may_be_empty=True)
PREMIUM_PUPIL = Column("PremiumPupil", INT8, 0, 1, may_be_empty=True)
DATE_ANSWERED = Column("DateAnswered", DATE, may_be_empty=True)
CONFIDENCE = Column("Confidence", FLOAT32, 0, 100, may_be_empty=True, whole=False)
GROUP_ID = Column("GroupId", high=_ID_MAX, may_be_empty=True)
QUIZ_ID = Column("QuizId", high=_ID_MAX, may_be_empty=True)
SCHEME_ID = Column("SchemeOfWorkId", high=_ID_MAX, may_be_empty=True)
STUDENT_COLUMNS = (GENDER, DATE_OF_BIRTH, PREMIUM_PUPIL)
CIRCUMSTANCES = (DATE_ANSWERED, CONFIDENCE, GROUP_ID, QUIZ_ID, SCHEME_ID)
