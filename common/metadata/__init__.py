"""What is known about answers, students and questions besides the answers themselves.

    circumstances = read_circumstances(path, answer_ids)       date, confidence, class, quiz
    students = read_student_metadata(path, students)           gender, date of birth, need
    tree = read_subject_tree(path)                             the tree of subjects
    subjects = read_question_subjects(path, questions, tree)   the subjects of questions

Each reader takes ids and returns one row for each of them, in their order, with a stated value
where nothing is known: -1 for a whole number, NaN for a number, NaT for a date. `find` says whether
a file is there at all. A column that is not there is not known either, apart from the ids.

Ids of tasks 1/2 have nothing to do with those of tasks 3/4: each has metadata of its own.
"""

from common.metadata.circumstances import Circumstances, read_circumstances
from common.metadata.reading import find
from common.metadata.students import StudentMetadata, read_student_metadata
from common.metadata.subjects import (
    QuestionSubjects,
    SubjectTree,
    name_subjects,
    read_question_subjects,
    read_subject_tree,
)

__all__ = [
    "Circumstances",
    "QuestionSubjects",
    "StudentMetadata",
    "SubjectTree",
    "find",
    "name_subjects",
    "read_circumstances",
    "read_question_subjects",
    "read_student_metadata",
    "read_subject_tree",
]
