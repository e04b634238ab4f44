"""The columns of the challenge's files: the name, type and range of each."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

# Types of columns. The types of numbers have NumPy's names.
INT8 = "int8"
INT32 = "int32"
FLOAT32 = "float32"
FLOAT64 = "float64"
# A text, exactly as it stands in the file.
TEXT = "text"
# A date with or without a time of day, to the minute.
DATE = "datetime64[m]"

INT32_MAX = 2**31 - 1
# The highest valid GroupId, QuizId and SchemeOfWorkId. `common.answer_features` makes arrays that
# are indexed by these ids, so a very high id would need much memory.
_ID_MAX = 2**24 - 1
# Stands for a whole number that is unknown or could not be read.
UNKNOWN = -1

# A number with an exponent, such as 1.23457E+11. Some spreadsheets write 1,23457E+11.
_SCIENTIFIC = re.compile(r"\b\d[.,](\d+)[eE]\+(\d{1,3})\b", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(
    r"""
    (?P<local>\d{4}-\d{2}-\d{2} ([ ]|T) \d{2}:\d{2} (:\d{2})?) (\.\d{1,9})?
    # A time zone: +01:00, +0100, +01, Z or UTC.
    ([ ]?(?P<zone>Z|UTC|[+-]\d{2}(:?\d{2})?))?
    | (?P<day>\d{4}-\d{2}-\d{2})
    """,
    re.ASCII | re.VERBOSE,
)


@dataclass(frozen=True)
class Column:
    """A column of a CSV file and the values that it may hold."""

    name: str
    # The type of the values: INT8, INT32, FLOAT32, FLOAT64, TEXT or DATE.
    dtype: str = INT32
    # The lowest and the highest valid number.
    low: int = 0
    high: int = INT32_MAX
    # Whether a cell may be empty. An empty cell is read as the value `missing`.
    may_be_empty: bool = False
    # Whether numbers must be whole.
    whole: bool = True
    # Whether the texts True and False, which pandas writes, are valid too. They stand for 1 and 0.
    is_boolean: bool = False

    @property
    def values(self) -> tuple[int, ...]:
        """The valid whole numbers, in increasing order."""
        return tuple(range(self.low, self.high + 1))

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
            INT8: UNKNOWN,
            INT32: UNKNOWN,
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
        # pandas writes a boolean column as True and False.
        if self.is_boolean:
            text = {"true": "1", "false": "0"}.get(text.lower(), text)
        if not _NUMBER.fullmatch(text):
            return None
        # A spreadsheet shows a long id as 1.23457E+11, and then saves only these digits.
        if self.whole and is_shortened(text):
            return None
        number = float(text)
        if self.whole and not number.is_integer():
            return None
        return number if self.low <= number <= self.high else None


def is_shortened(text: str) -> bool:
    """Return whether a text holds a whole number that a spreadsheet has shortened: 1.23457E+11.

    The last digits of the number are lost, so ids that differ only in these digits become equal. No
    digit is lost in 1.2345E+04, which is the number 12345.
    """
    match = _SCIENTIFIC.search(text)
    return match is not None and int(match[2]) > len(match[1])


def _parse_date(text: str) -> np.datetime64 | None:
    """Return the date that a text stands for, in UTC if it has a time zone; None if not valid."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    # A date without a time matches the group `day`. A date with a time matches `local`, and its
    # time zone matches `zone`. No group holds the fraction of a second, since columns of dates keep
    # only the minute.
    without_zone = match["day"] or match["local"]
    # `fromisoformat` reads Z, but not UTC.
    zone = (match["zone"] or "").replace("UTC", "Z")
    try:
        date = datetime.fromisoformat(without_zone + zone)
        if date.tzinfo is not None:
            date = date.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        # There is no such day, or the day in UTC is before the year 1.
        return None
    return np.datetime64(date)


# QuestionIds have a limit, since task 4 makes arrays that are indexed by QuestionId. The highest
# official QuestionId is 27,612.
QUESTION_ID = Column("QuestionId", high=9_999_999)
USER_ID = Column("UserId")
ANSWER_ID = Column("AnswerId")
IS_CORRECT = Column("IsCorrect", INT8, 0, 1, is_boolean=True)
# The number of options of every question of the challenge.
N_OPTIONS = 4
CORRECT_ANSWER = Column("CorrectAnswer", INT8, 1, N_OPTIONS)
ANSWER_VALUE = Column("AnswerValue", INT8, 1, N_OPTIONS)
ANSWER_COLUMNS = (QUESTION_ID, USER_ID, ANSWER_ID, IS_CORRECT, CORRECT_ANSWER, ANSWER_VALUE)
# Outside the challenge, a question may have fewer or more than four options. This column holds the
# number of options (see `common.answer_options`).
NUMBER_OF_OPTIONS = Column("NumberOfOptions", INT8, 2, 8)

# Task 3: the rank of a question in a submission; 1 is the best.
RANKING = Column("ranking", low=1)
# Task 3: the QuestionIds of the two questions that experts compare. The file also has a column for
# each expert; its name may be any text.
LEFT = Column("left")
RIGHT = Column("right")
# Official files may have columns of row numbers. The name of such a column is empty, or pandas has
# named it "Unnamed: 0", "Unnamed: 0.1" or the like.
ROW_NUMBERS = re.compile(r"(Unnamed: \d+(\.\d+)*)?")


def expert_judgement(name: str) -> Column:
    """Return the column of an expert's judgements.

    A judgement is 1 if the question on the left side is better, and 2 if the question on the right
    side is better. It may be empty.
    """
    return Column(name, FLOAT32, 1, 2, may_be_empty=True)


# Task 4: a mask has the value 1 for an answer that must be predicted (a target), and 0 for any
# other answer. A file with ten masks has the columns IsTarget_0 to IsTarget_9.
IS_TARGET = "IsTarget"


def target_column(name: str = IS_TARGET) -> Column | None:
    """Return the column of the mask with this name, such as ``IsTarget`` or ``IsTarget_0``.

    Returns None if this is not the name of a mask.
    """
    if not re.fullmatch(rf"{IS_TARGET}(_\d+)?", name):
        return None
    return Column(name, INT8, 0, 1)


# Question metadata: a list of the ids of the question's subjects, such as [3, 71, 98, 209].
SUBJECT_LIST = Column("SubjectId", TEXT)
# Subject metadata: the id of one subject.
SUBJECT_ID = Column("SubjectId")
SUBJECT_NAME = Column("Name", TEXT)
PARENT_ID = Column("ParentId", TEXT, may_be_empty=True)
LEVEL = Column("Level", INT8, 0, 127)
# In answer metadata and in templates, an AnswerId may be empty.
ANSWER_ID_OR_EMPTY = Column("AnswerId", may_be_empty=True)
GENDER = Column("Gender", INT8, 0, 3)
DATE_OF_BIRTH = Column("DateOfBirth", DATE, may_be_empty=True)
PREMIUM_PUPIL = Column("PremiumPupil", INT8, 0, 1, may_be_empty=True)
DATE_ANSWERED = Column("DateAnswered", DATE, may_be_empty=True)
CONFIDENCE = Column("Confidence", FLOAT32, 0, 100, may_be_empty=True, whole=False)
GROUP_ID = Column("GroupId", high=_ID_MAX, may_be_empty=True)
QUIZ_ID = Column("QuizId", high=_ID_MAX, may_be_empty=True)
SCHEME_ID = Column("SchemeOfWorkId", high=_ID_MAX, may_be_empty=True)
# The columns of student metadata besides UserId.
STUDENT_COLUMNS = (GENDER, DATE_OF_BIRTH, PREMIUM_PUPIL)
# The columns of answer metadata besides AnswerId.
ANSWER_METADATA_COLUMNS = (DATE_ANSWERED, CONFIDENCE, GROUP_ID, QUIZ_ID, SCHEME_ID)
