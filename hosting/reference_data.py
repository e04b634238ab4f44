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
# Of these, what the scoring program reads.
SCORED_METADATA = (layout.QUESTION_METADATA_TASK_3_4, layout.SUBJECT_METADATA)


def answers_name(task: int, phase: str) -> str:
    """Return the name of the file that holds the true answers of a task and phase."""
    return layout.answers_path(task, phase).name


def write(data_dir: Path, templates: Path, bundle: Path, tasks: Iterable[int]) -> None:
    """Write the programs, and the true answers of both phases of tasks, into a bundle's folder."""
    _copy_program(bundle / "scoring_program", "score.py", "scoring_metadata.yaml")
    for task in tasks:
        for phase in layout.PHASES:
            folder = bundle / "reference_data" / f"task_{task}_{phase}"
            name = f"{layout.TEST_DIR.name}/{answers_name(task, phase)}"
            _copy(data_dir / name, folder / name)
            settings = {"task": task, "phase": phase}
            io.write_text(folder / "settings.json", json.dumps(settings) + "\n")
            if task == 3:
                template = layout.TEMPLATE_TASK_3
                _copy(templates / template, folder / layout.TEMPLATE_DIR.name / template)
            elif task == 4:
                _write_task_4(data_dir, bundle, folder, phase)
            else:
                _write_pairs(data_dir, folder, task, phase)
            _mark_simulated(data_dir, folder, name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _copy_program(folder: Path, script: str, metadata: str) -> None:
    """Copy a program with all that it imports from the kit, and nothing else."""
    for path in source_code.files_of(PROGRAMS / script, PROGRAMS / "tqdm.py"):
        root = PROGRAMS if path.is_relative_to(PROGRAMS) else layout.ROOT
        _copy(path, folder / path.relative_to(root))
    _copy(PROGRAMS / metadata, folder / "metadata.yaml")
    shutil.copytree(pages.TEMPLATES, folder / pages.TEMPLATES.relative_to(layout.ROOT))
    # The image lacks the engine of the templates, which is Python alone: it comes along.
    for package in ("jinja2", "markupsafe"):
        for file in files(package) or []:
            is_licence = file.name.startswith("LICENSE")
            if is_licence or file.suffix == ".py":
                target = folder / (Path(package, file.name) if is_licence else file)
                _copy(Path(str(file.locate())), target)


def _write_pairs(data_dir: Path, folder: Path, task: int, phase: str) -> None:
    """Write what tasks 1 and 2 need besides the answers."""
    column = schema.PREDICTED_COLUMN[task]
    # A submission holds the rows of both phases: of the other one the pairs, each with the same
    # value, which is nobody's answer.
    for name in layout.PHASES:
        path = data_dir / layout.TEST_DIR.name / layout.test_answers_name(task, name)
        pairs = submission.read_pair_values(io.file_source(path), column)
        if name == phase:
            facts = read_facts(
                pairs.student,
                pairs.question,
                task,
                reference=path,
                train=data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2,
                folder=data_dir / layout.METADATA_DIR.name,
            )
            facts_file.write_facts(folder / "facts.npz", facts)
        else:
            columns = {
                schema.QUESTION_ID.name: pairs.question,
                schema.USER_ID.name: pairs.student,
                column.name: np.full_like(pairs.value, column.low),
            }
            io.write_csv(folder / layout.TEST_DIR.name / path.name, columns)


def _write_task_4(data_dir: Path, bundle: Path, folder: Path, phase: str) -> None:
    """Write what task 4 needs besides the students: metadata, the ingestion program, its input."""
    program = bundle / "ingestion_program" / phase
    _copy_program(program, "ingest.py", "ingestion_metadata.yaml")
    students = f"{layout.TEST_DIR.name}/{layout.test_masks_name(phase)}"
    _copy(data_dir / students, program / students)
    key = secrets.token_hex(32) + "\n"
    for place in (program, folder):
        io.write_text(place / layout.TEST_DIR.name / KEY_NAME, key)
    train = f"{layout.TRAIN_DIR.name}/{layout.TRAIN_TASK_3_4}"
    given = [train, *(f"{layout.METADATA_DIR.name}/{name}" for name in GIVEN_METADATA)]
    for name in given:
        if (data_dir / name).is_file():
            _copy(data_dir / name, bundle / "input_data" / "task_4" / name)
            if Path(name).name in SCORED_METADATA:
                _copy(data_dir / name, folder / name)


def _mark_simulated(data_dir: Path, folder: Path, name: str) -> None:
    """Mark answers as simulated, so that the page says so and names the best possible score."""
    marker = made.read_marker(data_dir)
    if marker is None or not made.is_simulated(data_dir / name):
        return
    known = {
        "files": {name: made.fingerprint(folder / name)},
        "best_expected_accuracy": marker.get("best_expected_accuracy"),
    }
    io.write_text(folder / layout.SIMULATED_MARKER_NAME, json.dumps(known, indent=1) + "\n")
