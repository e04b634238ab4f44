"""The ways in which the page of tasks 1 and 2 divides the answers scored into groups.

A grouping's key names a column of `PairFacts.pairs`; its title and note are shown on the page.
"""

from dataclasses import dataclass

import numpy as np

# The day on which ages are computed. A school year in England begins on this day, and it lies in
# the middle of the time of the answers, 2018 to 2020.
AGE_DAY = np.datetime64("2019-09-01")


@dataclass(frozen=True)
class Grouping:
    """One way to divide answers into groups."""

    # Name of the column in `PairFacts.pairs`.
    key: str
    title: str
    # An explanation of the groups, if the title does not suffice.
    note: str = ""
    # If the groups are subjects: their level in the tree, where 0 is the root. Otherwise None.
    subject_level: int | None = None


DIFFICULTY = Grouping(
    "difficulty",
    "By difficulty of the question",
    "Share of the training answers to the question that are right.",
)
ANSWERS_OF_STUDENT = Grouping("answers_of_student", "By number of known answers of the student")
ANSWERS_TO_QUESTION = Grouping("answers_to_question", "By number of known answers to the question")
RIGHT_OPTION = Grouping("right_option", "By which option is right")
SUBJECT = Grouping(
    "subject",
    "By subject",
    "A question of several subjects counts in each of them.",
    subject_level=1,
)
SUBJECT_BELOW = Grouping("subject_below", "By subject, one level further down", subject_level=2)
QUIZ = Grouping(
    "quiz",
    "By known or unknown quiz",
    "Whether training answers of the same student in the same quiz are known.",
)
GENDER = Grouping("gender", "Gender")
PUPIL_PREMIUM = Grouping("pupil_premium", "Pupil premium")
AGE = Grouping("age", f"Age in years on {AGE_DAY}")

# The groupings that the page shows as charts, in this order.
OF_ANSWERS = (
    DIFFICULTY,
    ANSWERS_OF_STUDENT,
    ANSWERS_TO_QUESTION,
    RIGHT_OPTION,
    SUBJECT,
    SUBJECT_BELOW,
    QUIZ,
)
# The groupings of students that the page shows as tables, in this order.
OF_STUDENTS = (GENDER, PUPIL_PREMIUM, AGE)
