"""What the platform's programs know: the true answers of each task and phase, and the programs."""

import json
import secrets
import shutil
from collections.abc import Iterable
from importlib.metadata import files
from pathlib import Path

from common import io, layout, made, pages, schema, source_code, submission
from common.evaluation.pair_facts import read_facts

import numpy as np
from programs import facts_file
from programs.played import KEY_NAME

PROGRAMS = Path(__file__).resolve().parent / "programs"
# What an entry of task 4 finds in its folder, as in the challenge.
GIVEN_METADATA = (
    layout.QUESTION_METADATA_TASK_3_4,
    layout.STUDENT_METADATA_TASK_3_4,
    layout.ANSWER_METADATA_TASK_3_4,
    layout.SUBJECT_METADATA,
)


def answers_name(task: int, phase: str) -> str:
    """Return the name of the file that holds the true answers of a task and phase."""
    return layout.answers_path(task, phase).name


def write(data_dir: Path, templates: Path, bundle: Path, tasks: Iterable[int]) -> None:
    """Write the programs, and the true answers of every task and phase.

    Parameters
    ----------
    data_dir
        A folder laid out like `data/`, with the answers of both phases.
    templates
        Folder of the templates.
    bundle
        Folder of the bundle.
    tasks
        Numbers of the tasks.

    Raises
    ------
    InputError
        If a file is missing or faulty.
    """
    _copy_program(bundle / "scoring_program", "score.py", "scoring_metadata.yaml")
    for task in tasks:
        for phase in layout.PHASES:
            folder = bundle / "reference_data" / f"task_{task}_{phase}"
            name = answers_name(task, phase)
            test_dir = folder / layout.TEST_DIR.name
            test_dir.mkdir(parents=True)
            shutil.copyfile(data_dir / layout.TEST_DIR.name / name, test_dir / name)
            settings = {"task": task, "phase": phase}
            io.write_text(folder / "settings.json", json.dumps(settings) + "\n")
            if task == 3:
                target = folder / layout.TEMPLATE_DIR.name / layout.TEMPLATE_TASK_3
                target.parent.mkdir()
                shutil.copyfile(templates / layout.TEMPLATE_TASK_3, target)
            elif task == 4:
                _write_task_4(data_dir, bundle, folder, phase)
            else:
                _write_pairs(data_dir, folder, task, phase)
            _mark_simulated(data_dir, folder, name)


def _copy_program(folder: Path, script: str, metadata: str) -> None:
    """Copy a program with all that it imports from the kit, and nothing else."""
    for path in source_code.files_of(PROGRAMS / script, PROGRAMS / "tqdm.py"):
        root = PROGRAMS if path.is_relative_to(PROGRAMS) else layout.ROOT
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copyfile(PROGRAMS / metadata, folder / "metadata.yaml")
    shutil.copytree(pages.TEMPLATES, folder / pages.TEMPLATES.relative_to(layout.ROOT))
    # The image lacks the engine of the templates, which is Python alone: it comes along.
    for package in ("jinja2", "markupsafe"):
        for file in files(package) or []:
            is_licence = file.name.startswith("LICENSE")
            if is_licence or file.suffix == ".py":
                target = folder / (Path(package, file.name) if is_licence else file)
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(file.locate(), target)


def _write_pairs(data_dir: Path, folder: Path, task: int, phase: str) -> None:
    """Write what tasks 1 and 2 need besides the answers."""
    reference = data_dir / layout.TEST_DIR.name / layout.test_answers_name(task, phase)
    pairs = submission.read_pair_values(io.file_source(reference), schema.PREDICTED_COLUMN[task])
    facts = read_facts(
        pairs.student,
        pairs.question,
        task,
        reference=reference,
        train=data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2,
        folder=data_dir / layout.METADATA_DIR.name,
    )
    facts_file.write_facts(folder / "facts.npz", facts)
    # A submission holds the rows of both phases: of the other one the pairs, each with the same
    # value, which is nobody's answer.
    (other_phase,) = (name for name in layout.PHASES if name != phase)
    name = layout.test_answers_name(task, other_phase)
    column = schema.PREDICTED_COLUMN[task]
    other = submission.read_pair_values(
        io.file_source(data_dir / layout.TEST_DIR.name / name), column
    )
    columns = {
        schema.QUESTION_ID.name: other.question,
        schema.USER_ID.name: other.student,
        column.name: np.full_like(other.value, column.low),
    }
    io.write_csv(folder / layout.TEST_DIR.name / name, columns)


def _write_task_4(data_dir: Path, bundle: Path, folder: Path, phase: str) -> None:
    """Write what task 4 needs besides the students: metadata, the ingestion program, its input."""
    name = layout.test_masks_name(phase)
    for metadata in (layout.QUESTION_METADATA_TASK_3_4, layout.SUBJECT_METADATA):
        _copy_if_there(data_dir, folder, Path(layout.METADATA_DIR.name, metadata))
    program = bundle / "ingestion_program" / phase
    _copy_program(program, "ingest.py", "ingestion_metadata.yaml")
    students = program / layout.TEST_DIR.name
    students.mkdir()
    shutil.copyfile(data_dir / layout.TEST_DIR.name / name, students / name)
    key = secrets.token_hex(32) + "\n"
    for place in (students, folder / layout.TEST_DIR.name):
        io.write_text(place / KEY_NAME, key)
    given = bundle / "input_data" / "task_4"
    given.mkdir(parents=True, exist_ok=True)
    for part in (
        Path(layout.TRAIN_DIR.name, layout.TRAIN_TASK_3_4),
        *(Path(layout.METADATA_DIR.name, metadata) for metadata in GIVEN_METADATA),
    ):
        _copy_if_there(data_dir, given, part)


def _copy_if_there(data_dir: Path, folder: Path, part: Path) -> None:
    if (data_dir / part).is_file():
        (folder / part).parent.mkdir(exist_ok=True)
        shutil.copyfile(data_dir / part, folder / part)


def _mark_simulated(data_dir: Path, folder: Path, name: str) -> None:
    """Mark answers as simulated, so that the page says so and names the best possible score."""
    marker = made.read_marker(data_dir)
    if marker is None or not made.is_simulated(data_dir / layout.TEST_DIR.name / name):
        return
    part = f"{layout.TEST_DIR.name}/{name}"
    known = {
        "files": {part: made.fingerprint(folder / part)},
        "best_expected_accuracy": marker.get("best_expected_accuracy"),
    }
    io.write_text(folder / layout.SIMULATED_MARKER_NAME, json.dumps(known, indent=1) + "\n")
