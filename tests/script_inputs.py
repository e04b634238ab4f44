"""Every file that a script reads, with the columns that the script reads, for malformed.py.

A file that several scripts read in the same way is listed once, with the first of these scripts.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from common import schema
from common.schema import (
    ANSWER_ID,
    ANSWER_ID_OR_EMPTY,
    ANSWER_VALUE,
    CONFIDENCE,
    CORRECT_ANSWER,
    DATE_OF_BIRTH,
    GENDER,
    GROUP_ID,
    IS_CORRECT,
    LEFT,
    LEVEL,
    PARENT_ID,
    PREMIUM_PUPIL,
    QUESTION_ID,
    QUIZ_ID,
    RANKING,
    RIGHT,
    SUBJECT_ID,
    SUBJECT_LIST,
    TEXT,
    USER_ID,
    Column,
)

from run_scripts import Done, run_script


@dataclass(frozen=True)
class InputColumn:
    """A column that a script reads, and which changes of it the script accepts without an error."""

    column: Column
    # Whether the script works without the column.
    is_optional: bool = False
    # Whether any text is a valid cell.
    may_hold_any_text: bool = False
    # Whether the script also finds the column under any other name.
    may_have_any_name: bool = False
    # Whether the script accepts every text that Python's `int` accepts, for example -1 and 1_0.
    is_read_by_int: bool = False


def required(*columns: Column) -> tuple[InputColumn, ...]:
    """Return columns that a file must have: a script refuses the file without them."""
    return tuple(InputColumn(column) for column in columns)


def optional(*columns: Column) -> tuple[InputColumn, ...]:
    """Return columns that a script uses if the file has them."""
    return tuple(InputColumn(column, is_optional=True) for column in columns)


def ids_or_labels(*names: str) -> tuple[InputColumn, ...]:
    """Return columns of text that may hold only certain texts, such as labels or known ids."""
    return required(*(Column(name, TEXT) for name in names))


def any_text(*names: str) -> tuple[InputColumn, ...]:
    """Return columns in which every text is valid, such as the wording of a question."""
    columns = [Column(name, TEXT) for name in names]
    return tuple(InputColumn(column, may_hold_any_text=True) for column in columns)


def expert_judgements(*names: str) -> tuple[InputColumn, ...]:
    """Return a column of judgements for each expert. The tests may rename these columns freely."""
    columns = [schema.expert_judgement(name) for name in names]
    return tuple(InputColumn(column, may_have_any_name=True) for column in columns)


@dataclass(frozen=True)
class InputFile:
    """A file that a script reads, how to run the script, and the columns that it reads there.

    Tests damage the file, for example in these columns.
    """

    # The beginning of the command, before its flags: a script's path, or `-m` and a module's name.
    # If the script checks submissions, the path of the checked submission follows.
    script: str
    # The file's path from the kit's folder.
    path: str
    # If the file is a CSV, the columns that the script reads there.
    columns: tuple[InputColumn, ...] = ()
    # The flags of the command except `--output_dir`, separated by blanks.
    flags: str = ""
    # Whether the script takes the flag `--output_dir`.
    has_output_dir: bool = True
    # Whether the script works if the file at `path` is missing.
    may_be_missing: bool = False
    # If the file is a CSV, whether the script accepts two equal rows.
    may_repeat_rows: bool = False
    # Whether the first row of a CSV holds the columns' names.
    has_header: bool = True

    @property
    def kind(self) -> str:
        """The type of the file: the ending of its name without the dot, such as "csv"."""
        return Path(self.path).suffix[1:]

    @property
    def command(self) -> str:
        """The script and all its flags, separated by blanks."""
        output = "--output_dir out" if self.has_output_dir else ""
        return " ".join(f"{self.script} {self.flags} {output}".split())

    def run(self, kit: Path) -> Done:
        """Run the script in a kit."""
        return run_script(self.command.split(), kit=kit, cwd=kit)


# ---- Columns that several files have -----------------------------------------------------------

ID_PAIR = required(QUESTION_ID, USER_ID)
# The column with the predictions in a submission to a task.
PREDICTED = {1: IS_CORRECT, 2: ANSWER_VALUE}
# The columns of the training file that the sample models of a task learn from, besides the ids.
LEARNED = {1: required(IS_CORRECT), 2: required(CORRECT_ANSWER, ANSWER_VALUE)}
ANSWERS = ID_PAIR + optional(ANSWER_ID) + required(IS_CORRECT, CORRECT_ANSWER, ANSWER_VALUE)

CLICKING_USER = Column("user_id", high=9_999_999)
CLICKED_ITEM = Column("item_id", high=9_999_999)
CLICK_TIME = Column("time", "float64", 0, 1, whole=False)
CLICK = required(CLICKING_USER, CLICKED_ITEM, CLICK_TIME)
# The file of a fitted model.
SAVED_MODEL = "data/test_output/model.npz"
FIFTY_ITEMS = [Column(f"item_{rank}", high=9_999_999) for rank in range(1, 51)]
FOLD_OF_ID = ids_or_labels("id") + required(Column("fold", high=9_999))
EXAM_QUESTION = any_text("id", "prompt", *"ABCDE")

# ---- The files ---------------------------------------------------------------------------------


def find_inputs() -> list[InputFile]:
    """Return every file that a script reads.

    If scripts read a file in different ways, for example different columns of it, the file is
    listed once for each way.
    """
    # tools/templates.py reads these answers to make the templates of all tasks. So the file belongs
    # to no single task.
    private_answers = InputFile(
        "-m tools.templates",
        "data/test_data/test_private_answers_task_1.csv",
        ID_PAIR + required(ANSWER_ID),
        may_be_missing=True,
        may_repeat_rows=True,
    )
    return [
        *files_of_task_1_or_2(1),
        *files_of_task_1_or_2(2),
        *files_of_task_3(),
        *files_of_task_4(),
        private_answers,
        # SAVED_MODEL is a model that has been fitted to the answers of tasks 1 and 2.
        InputFile("-m tools.mastery", SAVED_MODEL, flags=f"--tasks 1/2 --model {SAVED_MODEL}"),
        *files_of_cloze(),
        *files_of_science_exam(),
        *files_of_student_response(),
        *files_of_debiasing(),
    ]


def checked_submission(
    checker: str, path: str, columns: tuple[InputColumn, ...], *, has_header: bool = True
) -> InputFile:
    """Return the file that a script for checking submissions reads: the submission itself."""
    return InputFile(
        f"{checker} {path}", path, columns, has_output_dir=False, has_header=has_header
    )


def files_of_task_1_or_2(task: int) -> list[InputFile]:
    """Return the files that scripts of task 1, or of task 2, read.

    `ID_PAIR` holds the columns QuestionId and UserId, and `required` returns columns that a file
    must have. `PREDICTED` holds the column that a submission predicts, and `LEARNED` the columns
    that a model learns from.
    """
    folder = f"task_{task}"
    majority = f"{folder}/sample_model_majority.py"
    evaluation = f"{folder}/local_evaluation.py"
    prediction = ID_PAIR + required(PREDICTED[task])
    submission = f"submissions/submission_task_{task}.csv"
    probabilities = f"data/test_output/p_{task}.parquet"
    return [
        InputFile(f"{folder}/local_data_split.py", "data/train_data/train_task_1_2.csv", ANSWERS),
        InputFile(majority, "data/train_data/train_task_1_2.csv", ID_PAIR + LEARNED[task]),
        InputFile(majority, "submission_templates/submission_task_1_2.csv", ID_PAIR),
        *metadata_files(folder),
        InputFile(evaluation, "data/test_input/valid_task_1_2.csv", prediction),
        InputFile(
            evaluation,
            f"data/test_output/test_submission_task_{task}.csv",
            prediction,
            # If the CSV is missing, the evaluation reads the zip beside it.
            may_be_missing=True,
        ),
        InputFile(
            evaluation,
            f"data/test_output/test_submission_task_{task}.zip",
            flags=f"--submit_data test_submission_task_{task}.zip",
        ),
        InputFile(evaluation, probabilities, flags=f"--probabilities {probabilities}"),
        InputFile(
            evaluation,
            f"data/test_data/test_private_answers_task_{task}.csv",
            ID_PAIR,
            flags="--phase public",
        ),
        checked_submission("-m tools.check_submission", submission, prediction),
    ]


def metadata_files(folder: str) -> list[InputFile]:
    """Return the metadata that sample models of task 1, or of task 2, read."""
    boosting = f"{folder}/sample_model_gradient_boosting.py"
    features_flag = "--features rates subjects students"
    return [
        InputFile(
            f"{folder}/sample_model_item_response.py",
            "data/metadata/answer_metadata_task_1_2.csv",
            required(ANSWER_ID_OR_EMPTY) + optional(GROUP_ID, QUIZ_ID),
            may_be_missing=True,
        ),
        InputFile(
            boosting,
            "data/metadata/student_metadata_task_1_2.csv",
            required(USER_ID) + optional(GENDER, DATE_OF_BIRTH, PREMIUM_PUPIL),
            flags=features_flag,
            may_be_missing=True,
        ),
        InputFile(
            boosting,
            "data/metadata/question_metadata_task_1_2.csv",
            required(QUESTION_ID, SUBJECT_LIST),
            flags=features_flag,
            may_be_missing=True,
        ),
        InputFile(
            boosting,
            "data/metadata/subject_metadata.csv",
            required(SUBJECT_ID, PARENT_ID, LEVEL),
            flags=features_flag,
            may_be_missing=True,
        ),
    ]


def files_of_task_3() -> list[InputFile]:
    """Return the files that scripts of task 3 read."""
    evaluation = "task_3/local_evaluation.py"
    entropy = "task_3/sample_model_entropy.py"
    submission = "submissions/submission_task_3.csv"
    ranking = required(QUESTION_ID, RANKING)
    return [
        InputFile(
            entropy,
            "data/train_data/train_task_3_4.csv",
            ID_PAIR + LEARNED[2] + required(IS_CORRECT),
        ),
        InputFile(entropy, "submission_templates/submission_task_3.csv", required(QUESTION_ID)),
        InputFile(
            "task_3/sample_model_confidence.py",
            "data/metadata/answer_metadata_task_3_4.csv",
            required(ANSWER_ID_OR_EMPTY, CONFIDENCE, GROUP_ID, QUIZ_ID),
        ),
        InputFile(
            "task_3/question_report.py",
            "data/metadata/question_metadata_task_3_4.csv",
            required(QUESTION_ID, SUBJECT_LIST),
            flags="--question 1",
            may_be_missing=True,
        ),
        InputFile(evaluation, submission, ranking, flags="--phase public"),
        InputFile(
            evaluation,
            "data/test_data/quality_response_remapped_public.csv",
            required(LEFT, RIGHT) + expert_judgements("T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS"),
            flags="--phase public",
            may_repeat_rows=True,
        ),
        InputFile(
            evaluation,
            "submission_templates/submission_task_3.csv",
            required(QUESTION_ID),
            flags="--phase public",
        ),
        InputFile(
            evaluation,
            "submissions/submission_task_3.zip",
            flags="--phase public --submit_data submission_task_3.zip",
        ),
        checked_submission("-m tools.check_submission", submission, ranking),
    ]


def files_of_task_4() -> list[InputFile]:
    """Return the files that scripts of task 4 read."""
    # Training overwrites the weights in the script's folder, but the evaluation below needs the
    # weights in task_4/numpy. So the training script runs in task_4/trainer, a copy of task_4/numpy
    # that `write_inputs` makes.
    trainer = "task_4/trainer/train_model.py"
    evaluation = "task_4/numpy/local_evaluation.py"
    target = schema.target_column()
    assert target is not None
    return [
        InputFile("task_4/local_data_split.py", "data/train_data/train_task_3_4.csv", ANSWERS),
        InputFile(
            trainer,
            "data/train_data/train_task_3_4.csv",
            ID_PAIR + LEARNED[1],
            has_output_dir=False,
        ),
        InputFile(
            trainer,
            "data/metadata/question_metadata_task_3_4.csv",
            required(QUESTION_ID),
            has_output_dir=False,
            may_be_missing=True,
            may_repeat_rows=True,
        ),
        InputFile(
            evaluation,
            "task_4/numpy/model_task_4_students.npy",
            flags="--skip_curve",
            may_be_missing=True,
        ),
        InputFile(
            evaluation,
            "data/test_input/valid_task_4.csv",
            ID_PAIR + LEARNED[2] + required(IS_CORRECT, target),
            flags="--skip_curve",
        ),
        InputFile(
            evaluation,
            "data/test_input/train_task_4.csv",
            ID_PAIR,
            flags="--skip_curve",
            may_be_missing=True,
            may_repeat_rows=True,
        ),
    ]


def files_of_cloze() -> list[InputFile]:
    """Return the files that scripts of the cloze test read."""
    folder = "related_challenges/cloze"
    model = f"{folder}/sample_model_frequent.py"
    submission = f"{folder}/data/test_output/submission.csv"
    # A submission has a row for each query: its id, and a JSON list of the guessed words (`ret`).
    guesses = ids_or_labels("id", "ret")
    return [
        InputFile(
            f"{folder}/local_data_split.py", f"{folder}/data/train_data/KCT_train_public.txt"
        ),
        InputFile(model, f"{folder}/data/train_data/KCT_test_public.txt"),
        InputFile(model, f"{folder}/data/test_input/folds.csv", FOLD_OF_ID, flags="--local"),
        InputFile(f"{folder}/local_evaluation.py", submission, guesses),
        checked_submission(f"{folder}/check_submission.py", submission, guesses),
    ]


def files_of_science_exam() -> list[InputFile]:
    """Return the files that scripts of the science exam read."""
    folder = "related_challenges/science_exam"
    evaluation = f"{folder}/local_evaluation.py"
    submission = f"{folder}/data/test_output/submission.csv"
    # A prediction may be empty.
    guesses = ids_or_labels("id") + required(Column("prediction", TEXT, may_be_empty=True))
    return [
        InputFile(
            f"{folder}/sample_model_longest_option.py",
            f"{folder}/data/train_data/test.csv",
            EXAM_QUESTION,
        ),
        InputFile(
            evaluation,
            f"{folder}/data/train_data/train.csv",
            EXAM_QUESTION + ids_or_labels("answer"),
        ),
        InputFile(evaluation, submission, guesses),
        checked_submission(f"{folder}/check_submission.py", submission, guesses),
    ]


def files_of_student_response() -> list[InputFile]:
    """Return the files that scripts of student response analysis read.

    `ids_or_labels` and `any_text` return text columns with the given names. In the columns of the
    first, only certain texts are valid; in those of the second, every text is valid.
    """
    folder = "related_challenges/student_response"
    submission = f"{folder}/data/test_output/submission.csv"
    labels = ids_or_labels("id", "label")
    # The facet of an annotation is a part of the reference answer. It may be any text, or empty.
    facet = InputColumn(Column("facet", TEXT, may_be_empty=True), may_hold_any_text=True)
    return [
        InputFile(
            f"{folder}/local_data_split.py",
            # The script reads one file for each question. The tests damage only the file D0-3.xml.
            # If that file is missing, the script works with the other questions.
            f"{folder}/data/train_data/D0-3.xml",
            may_be_missing=True,
        ),
        InputFile(
            f"{folder}/sample_model_majority.py", f"{folder}/data/test_input/folds.csv", FOLD_OF_ID
        ),
        InputFile(f"{folder}/local_evaluation.py", submission, labels),
        checked_submission(f"{folder}/check_submission.py", submission, labels),
        InputFile(
            f"{folder}/prepare.py",
            f"{folder}/data/annotated_data/annotations.csv",
            ids_or_labels("id", "label") + any_text("annotator") + (facet,),
        ),
    ]


def files_of_debiasing() -> list[InputFile]:
    """Return the files that scripts of the debiasing challenge read; none has a header."""
    folder = "related_challenges/debiasing"
    train = f"{folder}/data/train_data"
    model = f"{folder}/sample_model_popularity.py"
    evaluation = f"{folder}/local_evaluation.py"
    submission = f"{folder}/data/test_output/submission.csv"
    recommended = tuple(
        InputColumn(column, is_read_by_int=True) for column in (CLICKING_USER, *FIFTY_ITEMS)
    )
    phase = Column("phase_id", high=9)
    degree = Column("item_degree")
    return [
        InputFile(
            f"{folder}/local_data_split.py",
            f"{train}/underexpose_train_click-0.csv",
            CLICK,
            may_be_missing=True,
            may_repeat_rows=True,
            has_header=False,
        ),
        InputFile(
            model,
            f"{train}/underexpose_test_click-0.csv",
            CLICK,
            may_repeat_rows=True,
            has_header=False,
        ),
        InputFile(
            model,
            f"{train}/underexpose_test_qtime-0.csv",
            required(CLICKING_USER, CLICK_TIME),
            has_header=False,
        ),
        InputFile(
            evaluation,
            f"{folder}/data/test_input/debias_track_answer.csv",
            required(phase, CLICKING_USER, CLICKED_ITEM, degree),
            may_be_missing=True,
            has_header=False,
        ),
        InputFile(evaluation, submission, recommended, has_header=False),
        checked_submission(
            f"{folder}/check_submission.py", submission, recommended, has_header=False
        ),
    ]


# ---- A kit that holds them ---------------------------------------------------------------------


def write_inputs(kit: Path) -> None:
    """Write valid versions of all files of `find_inputs` into a kit.

    The kit already holds the tiny simulated data of the four tasks.
    """
    run_scripts_that_make_inputs(kit)
    # `files_of_task_4` runs the training script in task_4/trainer, a copy of task_4/numpy. The copy
    # has no weights, since the training writes them.
    weights_and_caches = shutil.ignore_patterns("__pycache__", "model_task_4*")
    shutil.copytree(kit / "task_4/numpy", kit / "task_4/trainer", ignore=weights_and_caches)
    # Remove the records that hold checksums of data files. By these, the scripts would refuse any
    # changed file before they read it, and the tests would not reach the checks of its content.
    for pattern in ("split_*.json", "template_*.json", "folds.json"):
        for record in kit.rglob(pattern):
            record.unlink()


def run_scripts_that_make_inputs(kit: Path) -> None:
    """Run the scripts that write submissions, splits and weights."""
    for name in ("generate_sample.py", "local_data_split.py"):
        for script in kit.glob(f"related_challenges/*/{name}"):
            run_or_fail(str(script.relative_to(kit)), kit)
    for task in (1, 2):
        run_or_fail(f"task_{task}/local_data_split.py", kit)
        majority = f"task_{task}/sample_model_majority.py"
        run_or_fail(majority, kit)
        run_or_fail(f"{majority} --local --probabilities data/test_output/p_{task}.parquet", kit)
    for command in (
        f"task_1/sample_model_item_response.py --save_model {SAVED_MODEL}",
        "task_3/sample_model_entropy.py",
        "task_4/local_data_split.py",
        "task_4/numpy/train_model.py --local",
        "related_challenges/cloze/sample_model_frequent.py --local",
        "related_challenges/science_exam/sample_model_longest_option.py --local",
        "related_challenges/student_response/sample_model_majority.py",
        "related_challenges/debiasing/sample_model_popularity.py --local",
    ):
        run_or_fail(command, kit)


def run_or_fail(command: str, kit: Path) -> None:
    """Run a script in a kit; the test fails if the script does."""
    done = run_script(command.split(), kit=kit, cwd=kit)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
