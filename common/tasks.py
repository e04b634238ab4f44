"""The four tasks of the challenge: their files, what is predicted, and what a score measures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from common import layout, schema
from common.schema import Column

# A score belongs to a phase: the official test data have the phases `layout.PHASES`. This name
# stands for the local split, which holds out some training answers.
LOCAL = "local"
# The name in place of a phase for a cross-validation on the training answers.
CROSS_VALIDATION = "cross-validation"
# The name in place of a phase for a test on true answers of the user's own.
OWN = "own"


class Form(Enum):
    """The kinds of submissions."""

    # Tasks 1 and 2.
    PREDICTIONS = "a prediction for each pair of a student and a question"
    # Task 3.
    RANKING = "a ranking of all questions"
    # Task 4.
    ENTRY = "code that asks each student ten questions, then predicts"


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """Names of the official files that two tasks share."""

    # The numbers of the two tasks, as in the names of their files: "1_2" or "3_4".
    tasks: str
    train: str
    question_metadata: str
    student_metadata: str
    answer_metadata: str

    @property
    def metadata(self) -> tuple[str, str, str]:
        """The two tasks' metadata files, without the file of subjects, which all tasks share."""
        return self.question_metadata, self.student_metadata, self.answer_metadata


@dataclass(frozen=True, kw_only=True)
class Task:
    """One of the four tasks."""

    number: int
    # The title on pages: "Task 1: right or wrong".
    title: str
    form: Form

    # ---- What is predicted ----
    # The column that a submission fills in. In task 4, whose submission is code, the column with
    # which its predictions are compared.
    column: Column
    # Names of the values of `column`, in increasing order of the values: "wrong", "right". Empty
    # for ranks, which need no names, and for options, whose number depends on the data; see
    # `name_values`.
    value_names: tuple[str, ...] = ()
    # Whether training answers must have the columns CorrectAnswer and AnswerValue.
    needs_options: bool = False
    # Name of the column in a file of predicted probabilities; "" in task 3, which has no such file.
    # In task 2, there is a column for each option: the number of the option follows this name. See
    # `probability_columns`.
    probability_column: str = ""
    # The event whose probability is predicted, in words for charts: "answered correctly".
    event: str = ""
    # A key in SIMULATED.json, a file beside simulated data. Its value is the accuracy that the best
    # possible model is expected to reach. "" if there is none.
    best_possible_key: str = ""

    # ---- How the task is scored ----
    # Name of the metric in a table of scores.
    metric: str
    # The metric explained in a sentence.
    metric_sentence: str
    # A score may have parts: one for each expert (task 3), mask (task 4) or fold. If this is True,
    # the score is the best part's score. Otherwise it is the mean of the parts' scores.
    scores_best_part: bool = False
    # The lowest possible score: 0 for a share such as accuracy, -1 for a correlation.
    lowest_score: int = 0
    # The plural name of the things that are predicted right or wrong, such as "answers", for
    # messages and pages.
    scored_items: str = "answers"
    # The plural name of the things that a bootstrap draws with replacement, such as "students", for
    # messages and pages.
    drawn_units: str = "students"

    # ---- The files of the task ----
    data: DataFiles
    # The simplest sample model. In tasks 1 to 3, this is the name of a script without
    # `sample_model_`. In task 4, it is the name of a package.
    simplest_model: str
    # Name of the template that a submission fills in; None in task 4.
    template: str | None
    # Name of the file in the uploaded zip. In tasks 1 to 3 it is also the file's name on disk.
    submission: str
    # Name of the file of released answers in data/test_data; {phase} in it stands for the phase. In
    # task 3, the file holds experts' judgements. In task 4, it holds answers and ten masks. A mask
    # says which answers are to be predicted.
    released_answers: str
    # Names of the local split's files in data/test_input. Only tasks 1 and 2 have a template there.
    local_train: str
    local_answers: str
    local_template: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the task's scripts."""
        return layout.ROOT / f"task_{self.number}"

    def name_values(self, column: Column) -> tuple[str, ...]:
        """Return the names of the values of `column`, in increasing order; none for task 3.

        `column` is the task's column as it is in the data (`answer_options.column_in`).
        """
        if self.needs_options:
            return tuple(f"option {option}" for option in column.values)
        return self.value_names

    def probability_columns(self, n_options: int) -> tuple[str, ...]:
        """Return the columns of a file of probabilities.

        In task 2, there is a column for each of the `n_options` options. Other tasks do not use
        `n_options`.
        """
        if self.needs_options:
            return tuple(f"{self.probability_column}{k}" for k in range(1, n_options + 1))
        return (self.probability_column,) if self.probability_column else ()

    @property
    def template_names(self) -> tuple[str, ...]:
        """The names of the task's templates: for the upload and, if any, for the local split."""
        return tuple(name for name in (self.template, self.local_template) if name is not None)

    def train_path(self, phase: str) -> Path:
        """Return the path of the training answers.

        Both phases of the challenge have the same training answers. For any other `phase`, the
        answers are those of the local split.
        """
        if phase in layout.PHASES:
            return layout.TRAIN_DIR / self.data.train
        return layout.TEST_INPUT_DIR / self.local_train

    @property
    def local_submission(self) -> str:
        """Name on disk of a submission for the local split, which holds out training answers.

        In its zip, the file is named `self.submission`, like a submission for the official test
        data.
        """
        return f"test_{self.submission}"

    def answers_name(self, phase: str) -> str:
        """Return the name of the file of true answers of a phase.

        If `phase` is no phase of the challenge, this is the file of the local split.
        """
        if phase in layout.PHASES:
            return self.released_answers.format(phase=phase)
        return self.local_answers

    def answers_path(self, phase: str) -> Path:
        """Return the path of the file of true answers of a phase.

        If `phase` is no phase of the challenge, this is the file of the local split.
        """
        is_released = phase in layout.PHASES
        folder = layout.TEST_DIR if is_released else layout.TEST_INPUT_DIR
        return folder / self.answers_name(phase)

    def phase_of(self, phase: str, reference_name: str | None) -> str:
        """Return the phase to which a score belongs, or `OWN` for a test on the user's own answers.

        A user may name a file of true answers with --ref_data. If its name, `reference_name`,
        differs from the usual name of the file (`answers_name`), the result is `OWN`.
        """
        if reference_name and Path(reference_name).name != self.answers_name(phase):
            return OWN
        return phase

    def submission_path(self, phase: str) -> Path:
        """Return the default path of a submission for a phase or the local split (tasks 1 to 3).

        `phase` is "public" or "private", the two phases of the challenge, or another word for the
        local split. A submission for the local split may lie in data/test_output or, as the
        challenge's guide says, in data/test_input. If both files exist, the newer file counts.
        """
        if phase in layout.PHASES:
            return layout.SUBMISSION_DIR / self.submission
        in_output = layout.TEST_OUTPUT_DIR / self.local_submission
        in_input = layout.TEST_INPUT_DIR / self.local_submission
        if not in_input.is_file():
            return in_output
        if not in_output.is_file():
            return in_input
        is_input_newer = in_input.stat().st_mtime > in_output.stat().st_mtime
        return in_input if is_input_newer else in_output


_DATA_1_2 = DataFiles(
    tasks="1_2",
    train=layout.TRAIN_TASK_1_2,
    question_metadata=layout.QUESTION_METADATA_TASK_1_2,
    student_metadata=layout.STUDENT_METADATA_TASK_1_2,
    answer_metadata=layout.ANSWER_METADATA_TASK_1_2,
)
_DATA_3_4 = DataFiles(
    tasks="3_4",
    train=layout.TRAIN_TASK_3_4,
    question_metadata=layout.QUESTION_METADATA_TASK_3_4,
    student_metadata=layout.STUDENT_METADATA_TASK_3_4,
    answer_metadata=layout.ANSWER_METADATA_TASK_3_4,
)

TASK_1 = Task(
    number=1,
    title="Task 1: right or wrong",
    form=Form.PREDICTIONS,
    column=schema.IS_CORRECT,
    value_names=("wrong", "right"),
    probability_column="ProbabilityCorrect",
    event="answered correctly",
    best_possible_key="right_or_wrong",
    metric="accuracy",
    metric_sentence="Accuracy: the share of pairs predicted correctly",
    data=_DATA_1_2,
    simplest_model="majority",
    template=layout.TEMPLATE_TASK_1_2,
    submission="submission_task_1.csv",
    released_answers=layout.RELEASED_ANSWERS_TASK_1,
    local_train=layout.TRAIN_TASK_1_2,
    local_answers=layout.VALID_TASK_1_2,
    local_template=layout.LOCAL_TEMPLATE_TASK_1_2,
)
TASK_2 = Task(
    number=2,
    title="Task 2: the option chosen",
    form=Form.PREDICTIONS,
    column=schema.ANSWER_VALUE,
    needs_options=True,
    probability_column="ProbabilityOption",
    event="chosen",
    best_possible_key="option",
    metric="accuracy",
    metric_sentence="Accuracy: the share of pairs predicted correctly",
    data=_DATA_1_2,
    simplest_model="majority",
    template=layout.TEMPLATE_TASK_1_2,
    submission="submission_task_2.csv",
    released_answers="test_{phase}_answers_task_2.csv",
    local_train=layout.TRAIN_TASK_1_2,
    local_answers=layout.VALID_TASK_1_2,
    local_template=layout.LOCAL_TEMPLATE_TASK_1_2,
)
TASK_3 = Task(
    number=3,
    title="Task 3: question quality",
    form=Form.RANKING,
    column=schema.RANKING,
    metric="agreement with the best expert",
    metric_sentence="Share of pairs on which the ranking agrees with its best expert",
    scores_best_part=True,
    # On the local split, the score is a rank correlation.
    lowest_score=-1,
    scored_items="judgements",
    drawn_units="pairs",
    data=_DATA_3_4,
    simplest_model="entropy",
    template=layout.TEMPLATE_TASK_3,
    submission="submission_task_3.csv",
    released_answers="quality_response_remapped_{phase}.csv",
    local_train=layout.TRAIN_TASK_3,
    local_answers=layout.VALID_TASK_3,
)
TASK_4 = Task(
    number=4,
    title="Task 4: ten questions for each student",
    form=Form.ENTRY,
    column=schema.IS_CORRECT,
    value_names=("wrong", "right"),
    probability_column="ProbabilityCorrect",
    event="answered correctly",
    metric="accuracy after ten questions",
    metric_sentence="Accuracy on the targets after 10 questions, mean over the target masks",
    scored_items="targets",
    data=_DATA_3_4,
    simplest_model="numpy",
    template=None,
    submission="submission_model_task_4.py",
    released_answers="test_{phase}_task_4_more_splits.csv",
    local_train=layout.TRAIN_TASK_4,
    local_answers=layout.VALID_TASK_4,
)
# The tasks by number.
TASKS = {task.number: task for task in (TASK_1, TASK_2, TASK_3, TASK_4)}


def name_of_phase(phase: str) -> str:
    """Return a phase's name in words, such as "local split" or "public test".

    The name is empty for a challenge without phases.
    """
    names = {
        "": "",
        LOCAL: "local split",
        CROSS_VALIDATION: CROSS_VALIDATION,
        OWN: "test of your own",
    }
    return names.get(phase, f"{phase} test")


def title_of(task: int | str) -> str:
    """Return the title of a task by its number, or of a related challenge by its folder's name."""
    if isinstance(task, str):
        return task.replace("_", " ").capitalize()
    # A user may have edited the record of scores, so that it names a task that does not exist.
    return TASKS[task].title if task in TASKS else f"Task {task}"
