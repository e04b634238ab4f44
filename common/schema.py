"""The columns of the challenge's files: name, type and range of each, in one place."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

# As in NumPy; text is read unchanged, dates with or without a time of day in minutes.
INT8, INT32, FLOAT32, FLOAT64, TEXT = "int8", "int32", "float32", "float64", "text"
DATE = "datetime64[m]"
INT32_MAX = 2**31 - 1
# Some ids index arrays directly, so they are bounded.
_ID_MAX = 2**24 - 1
# Stands for a whole number that is not known, or was reported as faulty.
UNREADABLE = -1

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of a CSV file and the values that it may hold."""

    name: str
    # What the values are read into, one of the types above.
    dtype: str = INT32
    # Both inclusive.
    low: int = 0
    high: int = INT32_MAX
    # An empty cell is read as `missing`.
    may_be_empty: bool = False
    whole: bool = True
    # Whether True and False are valid too and stand for 1 and 0, as in what pandas writes.
    is_boolean: bool = False

    @property
    def expected(self) -> str:
        """The valid values in words, for messages."""
        if self.dtype == TEXT:
            return "text"
        if self.dtype == DATE:
            return "a date such as 2020-02-11 14:05:00.000" + self.may_be_empty * " or nothing"
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low} to {self.high}" + self.may_be_empty * " or nothing"

    @property
    def missing(self) -> Any:
        """What stands for a value that is not there: -1, NaN, NaT or an empty text."""
        gaps = {INT8: UNREADABLE, INT32: UNREADABLE, TEXT: "", DATE: np.datetime64("NaT")}
        return gaps.get(self.dtype, np.nan)

    def parse(self, cell: str) -> Any:
        """Return the value that the text of a cell stands for; None if it is not valid."""
        text = cell.strip()
        if self.dtype == TEXT:
            return cell if text or self.may_be_empty else None
        if not text:
            return self.missing if self.may_be_empty else None
        if self.dtype == DATE:
            is_date = _DATE.fullmatch(text)
            try:
                # Without the fraction of a second, which not all of Python's versions read.
                return np.datetime64(datetime.fromisoformat(text[:19])) if is_date else None
            except ValueError:
                return None
        if self.is_boolean:
            text = {"true": "1", "false": "0"}.get(text.lower(), text)
        number = float(text) if _NUMBER.fullmatch(text) else np.nan
        is_valid = self.low <= number <= self.high and (not self.whole or number.is_integer())
        return number if is_valid else None


# Question ids index arrays directly, so they are bounded; the largest official one is 27,612.
QUESTION_ID = Column("QuestionId", high=9_999_999)
USER_ID = Column("UserId")
ANSWER_ID = Column("AnswerId")
IS_CORRECT = Column("IsCorrect", INT8, 0, 1, is_boolean=True)
CORRECT_ANSWER = Column("CorrectAnswer", INT8, 1, 4)
ANSWER_VALUE = Column("AnswerValue", INT8, 1, 4)
ANSWER_COLUMNS = (QUESTION_ID, USER_ID, ANSWER_ID, IS_CORRECT, CORRECT_ANSWER, ANSWER_VALUE)

OPTIONS = (1, 2, 3, 4)

# Task 3: a ranking of all questions, 1 the best; experts' columns may have any name.
RANKING = Column("ranking", low=1)
LEFT = Column("left")
RIGHT = Column("right")


def expert_judgement(name: str) -> Column:
    """Column of an expert's judgements: 1 the left question is better, 2 the right, or nothing."""
    return Column(name, FLOAT32, 1, 2, may_be_empty=True)


# Task 4: target answers are 1; the files with ten masks number the columns from 0.
IS_TARGET = "IsTarget"


def target_column(name: str = IS_TARGET) -> Column | None:
    """Column that marks what to predict, ``IsTarget`` or ``IsTarget_0`` and so on, or None."""
    return Column(name, INT8, 0, 1) if re.fullmatch(IS_TARGET + r"(_\d+)?", name) else None


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
