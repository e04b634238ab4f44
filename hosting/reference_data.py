"""What the platform's programs know: the true answers of each task and phase, and the programs.

What is uploaded holds the private answers only if the organiser asks for that; the private part,
which the organiser keeps, always does: laid over the unpacked bundle, it makes it whole.
"""

import json
import secrets
import shutil
from importlib.metadata import files
from pathlib import Path

from common import io, layout, made, pages, schema, source_code
from common.evaluation.pair_facts import read_facts
from common.submission import read_pair_values

from competition import Plan
from programs import facts_file
from programs.played import KEY_NAME

PROGRAMS = Path(__file__).resolve().parent / "programs"
TEMPLATES = {
    1: layout.TEMPLATE_TASK_1_2, 2: layout.TEMPLATE_TASK_1_2, 3: layout.TEMPLATE_TASK_3
}  # fmt: skip
_METADATA = layout.METADATA_DIR.name
# What an entry of task 4 finds in its folder, as in the challenge.
_GIVEN = (
    f"{layout.TRAIN_DIR.name}/{layout.TRAIN_TASK_3_4}",
    f"{_METADATA}/{layout.QUESTION_METADATA_TASK_3_4}",
    f"{_METADATA}/{layout.STUDENT_METADATA_TASK_3_4}",
    f"{_METADATA}/{layout.ANSWER_METADATA_TASK_3_4}",
    f"{_METADATA}/{layout.SUBJECT_METADATA}",
)


def write(data_dir: Path, templates: Path, bundle: Path, private: Path, plan: Plan) -> None:
    """Write programs and true answers into the folders of what is uploaded and of what is kept."""
    _copy_program(bundle / "scoring_program", "score.py", "scoring_metadata.yaml")
    in_bundle = "hidden" if plan.private_on_server else "received"
    for task in plan.tasks:
        for phase, base, mode in (
            ("public", bundle, "scored"), ("private", bundle, in_bundle),
            ("private", private, "scored"),
        ):  # fmt: skip
            folder = base / "reference_data" / f"task_{task}_{phase}"
            starts = f"{plan.days(phase)[0]} 00:00:00"
            settings = {"task": task, "phase": phase, "mode": mode, "starts": starts}
            io.write_text(folder / "settings.json", json.dumps(settings) + "\n")
            if task == 4:
                _write_game(data_dir, base, folder, phase, mode)
            elif mode == "received" or task == 3:
                name = TEMPLATES[task]
                _copy(templates / name, folder / layout.TEMPLATE_DIR.name / name)
            if mode != "received":
                _write_answers(data_dir, folder, task, phase)
    for name in _GIVEN:
        if 4 in plan.tasks and (data_dir / name).is_file():
            _copy(data_dir / name, bundle / "input_data" / "task_4" / name)


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


def _write_game(data_dir: Path, base: Path, folder: Path, phase: str, mode: str) -> None:
    """Write the ingestion program of task 4 with the students, and the key of both programs."""
    program = base / "ingestion_program" / phase
    _copy_program(program, "ingest.py", "ingestion_metadata.yaml")
    if mode != "received":
        students = f"{layout.TEST_DIR.name}/{layout.test_masks_name(phase)}"
        _copy(data_dir / students, program / students)
    key = secrets.token_hex(32) + "\n"
    for place in (program, folder):
        io.write_text(place / layout.TEST_DIR.name / KEY_NAME, key)


def _write_answers(data_dir: Path, folder: Path, task: int, phase: str) -> None:
    """Write the true answers of a task and phase, and in tasks 1 and 2 what explains a score."""
    name = f"{layout.TEST_DIR.name}/{layout.answers_path(task, phase).name}"
    _copy(data_dir / name, folder / name)
    # Answers marked as simulated: the page says so, and names the best possible score.
    marker = made.read_marker(data_dir)
    if marker is not None and made.is_simulated(data_dir / name):
        told = {"best_expected_accuracy": marker.get("best_expected_accuracy")}
        told["files"] = {name: made.fingerprint(folder / name)}
        io.write_text(folder / layout.SIMULATED_MARKER_NAME, json.dumps(told, indent=1) + "\n")
    if task not in (1, 2):
        return
    column = schema.PREDICTED_COLUMN[task]
    for other in layout.PHASES:
        path = data_dir / layout.TEST_DIR.name / layout.test_answers_name(task, other)
        pairs = read_pair_values(io.file_source(path), column)
        if other == phase:
            train = data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2
            student, question = (pairs[name].to_numpy() for name in ("UserId", "QuestionId"))
            known = {"reference": path, "train": train, "folder": data_dir / _METADATA}
            facts = read_facts(student, question, task, **known)
            facts_file.write_facts(folder / "facts.npz", facts)
        else:
            # A submission holds the rows of both phases: of the other one the pairs alone.
            pairs = pairs[["QuestionId", "UserId"]]
            io.write_csv(folder / layout.TEST_DIR.name / path.name, pairs)
