"""The folders and file names of the kit, each defined once, from the place of this file."""

import os
import re
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

TRAIN_TASK_1_2 = "train_task_1_2.csv"
TRAIN_TASK_3_4 = "train_task_3_4.csv"

QUESTION_METADATA_TASK_1_2 = "question_metadata_task_1_2.csv"
STUDENT_METADATA_TASK_1_2 = "student_metadata_task_1_2.csv"
ANSWER_METADATA_TASK_1_2 = "answer_metadata_task_1_2.csv"
QUESTION_METADATA_TASK_3_4 = "question_metadata_task_3_4.csv"
STUDENT_METADATA_TASK_3_4 = "student_metadata_task_3_4.csv"
ANSWER_METADATA_TASK_3_4 = "answer_metadata_task_3_4.csv"
SUBJECT_METADATA = "subject_metadata.csv"

# Names of the files that the local splits write to TEST_INPUT_DIR.
VALID_TASK_1_2 = "valid_task_1_2.csv"
LOCAL_TEMPLATE_TASK_1_2 = "test_submission_task_1_2.csv"
TRAIN_TASK_3 = "train_task_3.csv"
VALID_TASK_3 = "valid_task_3.csv"
TRAIN_TASK_4 = "train_task_4.csv"
VALID_TASK_4 = "valid_task_4.csv"
FOLDS = "folds.csv"

TEMPLATE_TASK_1_2 = "submission_task_1_2.csv"
TEMPLATE_TASK_3 = "submission_task_3.csv"

# The records of files that the kit makes from others, which say from what (`common.provenance`).
_FILES_OF_STAMP = {
    "split_task_1_2.json": (TRAIN_TASK_1_2, VALID_TASK_1_2, LOCAL_TEMPLATE_TASK_1_2),
    "split_task_3.json": (TRAIN_TASK_3, VALID_TASK_3),
    "split_task_4.json": (TRAIN_TASK_4, VALID_TASK_4),
    "template_task_1_2.json": (TEMPLATE_TASK_1_2,),
    "template_task_3.json": (TEMPLATE_TASK_3,),
    "folds.json": (FOLDS,),
}
STAMP_OF_FILE = {name: stamp for stamp, names in _FILES_OF_STAMP.items() for name in names}

# Names of what the evaluations and the scoreboard write to TEST_OUTPUT_DIR.
RESULTS_NAME = "results.jsonl"
SCOREBOARD_NAME = "scoreboard.html"
OUTCOMES_NAME = "outcomes"

PHASES = ("public", "private")

# Names of official files, which the simulation uses as well.
_OFFICIAL = re.compile(
    r"train_task_(1_2|3_4)\.csv|(question|student|answer)_metadata_task_(1_2|3_4)\.csv"
    r"|subject_metadata\.csv|quality_response_remapped_(public|private)\.csv"
    r"|test_(public|private)_(answers_task_[12]|task_4_more_splits)\.csv"
)


def is_data(path: Path) -> bool:
    """Return whether a path leads into a folder of answers, metadata or templates of the kit."""
    place = Path(os.path.realpath(path))
    inside = place.parts[len(ROOT.parts) : -1] if place.is_relative_to(ROOT) else ()
    # Also those of a related challenge.
    return inside == (TEMPLATE_DIR.name,) or any(
        pair == (DATA_DIR.name, folder.name)
        for pair in pairwise(inside)
        for folder in (TRAIN_DIR, METADATA_DIR, TEST_DIR, TEST_INPUT_DIR, IMAGES_DIR)
    )


def submission_name(task: int, *, local: bool = False) -> str:
    """Name of a submission: on disk by default, and always inside the zip; or for a local split."""
    return f"{'test_' if local else ''}submission_task_{task}.csv"


def answers_name(task: int, phase: str) -> str:
    """Name of the released answers in TEST_DIR: in task 3 judgements of experts, in 4 ten masks."""
    if task == 3:
        return f"quality_response_remapped_{phase}.csv"
    return f"test_{phase}_{'task_4_more_splits' if task == 4 else f'answers_task_{task}'}.csv"


def answers_path(task: int, phase: str) -> Path:
    """Return where the answers lie that a score rests on: those of a phase, or the local split."""
    if phase not in PHASES:
        return TEST_INPUT_DIR / {3: VALID_TASK_3, 4: VALID_TASK_4}.get(task, VALID_TASK_1_2)
    return TEST_DIR / answers_name(task, phase)


def submission_path(task: int, phase: str) -> Path:
    """Return where the submission lies; for the local split the newer, beside the split or not."""
    if phase in PHASES:
        return SUBMISSION_DIR / submission_name(task)
    name = submission_name(task, local=True)
    places = TEST_OUTPUT_DIR / name, TEST_INPUT_DIR / name
    return max(places, key=lambda path: path.stat().st_mtime if path.is_file() else 0)


def where_to_get(path: Path) -> str:
    """Say which command makes or fetches a missing file, as the end of an error message."""
    if path.is_relative_to(RELATED_DIR):
        place = f"related_challenges/{path.relative_to(RELATED_DIR).parts[0]}"
        made_by = {
            TRAIN_DIR.name: f"`python {place}/generate_sample.py` simulates the challenge's files",
            TEST_INPUT_DIR.name: f"`python {place}/local_data_split.py` makes it",
            TEST_OUTPUT_DIR.name: f"every sample model in {place} makes one",
        }
        return made_by.get(path.parent.name, "")
    stamp = STAMP_OF_FILE.get(path.name, "")
    # Of these names there are other files too.
    elsewhere = {TRAIN_TASK_1_2: TEST_INPUT_DIR, TEMPLATE_TASK_3: TEMPLATE_DIR}
    if path.parent == elsewhere.get(path.name, path.parent):
        if split := re.fullmatch(r"split_task_(\d).*", stamp):
            return f"`python task_{split[1]}/local_data_split.py` makes it"
        if stamp.startswith("template"):
            return "`python -m tools.templates` builds it from the files in data/"
    if made := re.fullmatch(r"(test_)?submission_task_([123])\.(csv|zip)", path.name):
        model = f"task_{made[2]}/sample_model_{'entropy' if made[2] == '3' else 'majority'}.py"
        return f"`python {model}{' --local' if made[1] else ''}` makes one"
    if path.name == RESULTS_NAME:
        return "`python task_1/local_evaluation.py` and those of the other tasks append to it"
    if path.parent in (TRAIN_DIR, METADATA_DIR, TEST_DIR) and _OFFICIAL.fullmatch(path.name):
        return (
            "`python data/download.py` fetches the official file, "
            "`python data/generate_sample.py` simulates one"
        )
    return ""
