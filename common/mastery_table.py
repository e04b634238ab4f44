"""The table mastery.csv: the share of each subject that each student is expected to know.

`tools/mastery.py` and `task_4/student_report.py` write this table in the same form.
"""

import pandas as pd

FILE_NAME = "mastery.csv"
# Share is the part of the subject's questions that the student is expected to answer correctly. Low
# and High are the ends of its 90 % interval.
COLUMNS = (
    "UserId",
    "Level",
    "SubjectId",
    "Name",
    "Answers",
    "Share",
    "Low",
    "High",
)


def columns_of_file(mastery: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table of mastery that mastery.csv has, rounded to four decimals."""
    return mastery[list(COLUMNS)].round(4)
