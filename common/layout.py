"""The folders and the file names of the kit."""

import os
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DATA_DIR = ROOT / "data"
TEMPLATE_DIR = ROOT / "submission_templates"
SUBMISSION_DIR = ROOT / "submissions"
RELATED_DIR = ROOT / "related_challenges"

TRAIN_DIR = DATA_DIR / "train_data"
METADATA_DIR = DATA_DIR / "metadata"
TEST_DIR = DATA_DIR / "test_data"
TEST_INPUT_DIR = DATA_DIR / "test_input"
TEST_OUTPUT_DIR = DATA_DIR / "test_output"
IMAGES_DIR = DATA_DIR / "images"
SIMULATED_MARKER_NAME = "SIMULATED.json"
OFFICIAL_MARKER_NAME = "OFFICIAL.json"

TRAIN_TASK_1_2 = "train_task_1_2.csv"
TRAIN_TASK_3_4 = "train_task_3_4.csv"

# Tasks 1 and 2 share their files, and so do tasks 3 and 4.
TASK_PAIRS = ("1/2", "3/4")

QUESTION_METADATA_TASK_1_2 = "question_metadata_task_1_2.csv"
STUDENT_METADATA_TASK_1_2 = "student_metadata_task_1_2.csv"
ANSWER_METADATA_TASK_1_2 = "answer_metadata_task_1_2.csv"
QUESTION_METADATA_TASK_3_4 = "question_metadata_task_3_4.csv"
STUDENT_METADATA_TASK_3_4 = "student_metadata_task_3_4.csv"
ANSWER_METADATA_TASK_3_4 = "answer_metadata_task_3_4.csv"
SUBJECT_METADATA = "subject_metadata.csv"

# Files in TEST_INPUT_DIR. A local split divides the training answers into files for training and
# for validation, and makes a template for tasks 1 and 2. In some related challenges, a local split
# makes a file that assigns the answers to folds.
VALID_TASK_1_2 = "valid_task_1_2.csv"
LOCAL_TEMPLATE_TASK_1_2 = "test_submission_task_1_2.csv"
TRAIN_TASK_3 = "train_task_3.csv"
VALID_TASK_3 = "valid_task_3.csv"
TRAIN_TASK_4 = "train_task_4.csv"
VALID_TASK_4 = "valid_task_4.csv"
FOLDS = "folds.csv"
# The local split of the debiasing challenge writes one file with the answers of all phases, and one
# file for each phase. In the name of the file for a phase, {} stands for the number of the phase.
DEBIASING_ANSWERS = "debias_track_answer.csv"
DEBIASING_TRUE_CLICKS = "underexpose_test_qtime_with_answer-{}.csv"
DEBIASING_PHASES = range(10)

# Submission templates in TEMPLATE_DIR.
TEMPLATE_TASK_1_2 = "submission_task_1_2.csv"
TEMPLATE_TASK_3 = "submission_task_3.csv"

# Files that a script makes together share a record: a JSON file beside them that says how they were
# made (see `common.provenance`). The keys are the names of the records, and the values are the
# names of the files that share a record.
_FILES_OF_RECORD = {
    "split_task_1_2.json": (TRAIN_TASK_1_2, VALID_TASK_1_2, LOCAL_TEMPLATE_TASK_1_2),
    "split_task_3.json": (TRAIN_TASK_3, VALID_TASK_3),
    "split_task_4.json": (TRAIN_TASK_4, VALID_TASK_4),
    "template_task_1_2.json": (TEMPLATE_TASK_1_2,),
    "template_task_3.json": (TEMPLATE_TASK_3,),
    "folds.json": (FOLDS,),
    "split_debiasing.json": (
        DEBIASING_ANSWERS,
        *map(DEBIASING_TRUE_CLICKS.format, DEBIASING_PHASES),
    ),
}
# The reverse of `_FILES_OF_RECORD`: for the name of each file, the name of its record.
RECORD_OF_FILE = {name: record for record, names in _FILES_OF_RECORD.items() for name in names}

# Files and folders that the evaluations and the scoreboard write to TEST_OUTPUT_DIR.
RESULTS_NAME = "results.jsonl"
SCOREBOARD_NAME = "scoreboard.html"
OUTCOMES_NAME = "outcomes"

# The two parts of the official test data, which are scored separately.
PHASES = ("public", "private")
# The file of the true answers of task 1 in a phase.
RELEASED_ANSWERS_TASK_1 = "test_{phase}_answers_task_1.csv"
# The files in a data folder that each submission template is made from.
SOURCES_OF_TEMPLATE = {
    TEMPLATE_TASK_1_2: [
        f"{TEST_DIR.name}/{RELEASED_ANSWERS_TASK_1.format(phase=phase)}" for phase in PHASES
    ],
    TEMPLATE_TASK_3: [f"{METADATA_DIR.name}/{QUESTION_METADATA_TASK_3_4}"],
}


def template_dir_of(data_dir: Path) -> Path:
    """Return the folder of the templates that belong to a data folder.

    The templates of the kit's folder data/ lie beside data/. The templates of another data folder
    lie inside that folder.
    """
    is_default = data_dir.resolve() == DATA_DIR
    return TEMPLATE_DIR if is_default else data_dir / TEMPLATE_DIR.name


def missing_sources(template: str, data_dir: Path) -> list[Path]:
    """Return the files that a submission template is made from and that do not exist."""
    paths = [data_dir / source for source in SOURCES_OF_TEMPLATE[template]]
    # A broken symlink counts as a file, so that reading it raises an error.
    return [path for path in paths if not os.path.lexists(path)]


def ending_of(tasks: str) -> str:
    """Return the end of the file names of a pair of tasks: task_1_2.csv for ``1/2``."""
    return f"task_{tasks.replace('/', '_')}.csv"


def is_input(path: Path) -> bool:
    """Return whether a path lies in a folder of inputs, in the kit or in a related challenge.

    The folders of inputs are submission_templates and, inside a folder called data, the folders
    train_data, metadata, test_data, test_input and images.
    """
    real_path = Path(os.path.realpath(path))
    if not real_path.is_relative_to(ROOT):
        return False
    folders = real_path.relative_to(ROOT).parts[:-1]
    # Only the kit itself has a folder of submission templates; a related challenge has none.
    if folders == (TEMPLATE_DIR.name,):
        return True
    # Look for data/train_data and so on at any depth: a related challenge has these folders too.
    data_folders = (TRAIN_DIR, METADATA_DIR, TEST_DIR, TEST_INPUT_DIR, IMAGES_DIR)
    names = {folder.name for folder in data_folders}
    # `pairwise` yields each folder on the path together with the folder above it.
    return any(parent == DATA_DIR.name and folder in names for parent, folder in pairwise(folders))
