"""Who gets which files: the platform true answers and programs, participants data and this kit.

What is uploaded holds the private answers only if the organiser asks for that; the private part,
which the organiser keeps, always does: laid over the unpacked bundle, it makes it whole.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import files
from pathlib import Path

from common import (
    fingerprints,
    layout,
    pages,
    provenance,
    reading,
    schema,
    source_code,
    writing,
    zips,
)
from common.evaluation.pair_facts import read_facts
from common.submission import read_pair_values
from common.tasks import TASK_4, TASKS, Form, Task

from competition import PUBLIC_DATA, STARTING_KIT, Plan, PublicFiles
from programs import facts_file
from programs.played import KEY_NAME

PROGRAMS = Path(__file__).resolve().parent / "programs"
_TRAIN, _TEST = layout.TRAIN_DIR.name, layout.TEST_DIR.name
_METADATA, _TEMPLATES = layout.METADATA_DIR.name, layout.TEMPLATE_DIR.name

# The starting kit: hosting and tests are of no use to participants, and whatever else an organiser
# keeps in the kit's folder, such as answers of students, a bundle or a seed, is not for them.
_KIT = (
    ".gitattributes", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
    "README.md", "WRITE_YOUR_OWN_ENTRY.md", "common", "data", "pyproject.toml", "quickstart.py",
    "related_challenges", "requirements-dev.txt", "requirements.txt", "submission_templates",
    "task_1", "task_2", "task_3", "task_4", "tools", "walkthrough.ipynb",
)  # fmt: skip
_KIT_SUFFIXES = (".css", ".html", ".md", ".png", ".py", ".svg", ".yaml")
_NOT_THE_KIT = {
    "__pycache__", "build", "train_data", "test_data", "test_input", "test_output", "images",
    "submissions",
}  # fmt: skip
# A link of a page to another file, with its text.
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


# ---- For the platform --------------------------------------------------------------------------


def write_for_platform(
    data_dir: Path, templates: Path, bundle: Path, private: Path, plan: Plan
) -> None:
    """Write programs and true answers into the folders of what is uploaded and of what is kept."""
    _copy_program(bundle / "scoring_program", "score.py", "scoring_metadata.yaml")
    in_bundle = "hidden" if plan.private_on_server else "received"
    for task in (TASKS[number] for number in plan.tasks):
        for phase, base, mode in (
            ("public", bundle, "scored"), ("private", bundle, in_bundle),
            ("private", private, "scored"),
        ):  # fmt: skip
            folder = base / "reference_data" / f"task_{task.number}_{phase}"
            starts = f"{plan.days[phase][0]} 00:00:00"
            settings = {"task": task.number, "phase": phase, "mode": mode, "starts": starts}
            writing.write_files({folder / "settings.json": json.dumps(settings) + "\n"})
            if task.form is Form.ENTRY:
                # The students lie with the ingestion program; what it says is signed with a key.
                program = base / "ingestion_program" / phase
                _copy_program(program, "ingest.py", "ingestion_metadata.yaml")
                if mode != "received":
                    students = f"{_TEST}/{task.answers_name(phase)}"
                    _copy(data_dir / students, program / students)
                key = secrets.token_hex(32) + "\n"
                for place in (program, folder):
                    writing.write_files({place / _TEST / KEY_NAME: key})
            elif mode == "received" or task.form is Form.RANKING:
                template = str(task.template)
                _copy(templates / template, folder / _TEMPLATES / template)
            if mode != "received":
                _write_answers(data_dir, folder, task, phase)
    # What an entry of task 4 finds in its folder, as in the challenge.
    number = TASK_4.number
    for name in find_public(data_dir, [number]) if number in plan.tasks else ():
        _copy(data_dir / name, bundle / "input_data/task_4" / name)


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


def _write_answers(data_dir: Path, folder: Path, task: Task, phase: str) -> None:
    """Write the true answers of a task and phase, and in tasks 1 and 2 what explains a score."""
    name = f"{_TEST}/{task.answers_name(phase)}"
    _copy(data_dir / name, folder / name)
    # Answers marked as simulated: the page says so, and names the best possible score.
    marker = fingerprints.read_marker(data_dir)
    if marker is not None and provenance.is_simulated(data_dir / name):
        told = {"best_expected_accuracy": marker.get("best_expected_accuracy")}
        told["files"] = {name: fingerprints.fingerprint(folder / name)}
        writing.write_files(
            {folder / layout.SIMULATED_MARKER_NAME: json.dumps(told, indent=1) + "\n"}
        )
    for other in layout.PHASES if task.form is Form.PREDICTIONS else ():
        path = data_dir / _TEST / task.answers_name(other)
        pairs = read_pair_values(reading.file_source(path), task.column)
        if other == phase:
            train = data_dir / _TRAIN / task.data.train
            facts = read_facts(
                pairs, task, reference=path, train=train, folder=data_dir / _METADATA
            )
            # Participants see what is left out and why, and not where it would lie.
            left_out = [
                replace(part, why=part.why.replace(f"{data_dir}{os.sep}", ""))
                for part in facts.left_out
            ]
            facts_file.write_facts(folder / "facts.npz", replace(facts, left_out=left_out))
        else:
            # A submission holds the rows of both phases: of the other one the pairs alone.
            writing.write_files({folder / _TEST / path.name: pairs[["QuestionId", "UserId"]]})


# ---- For participants --------------------------------------------------------------------------


def write_for_participants(data_dir: Path, templates: Path, bundle: Path, plan: Plan) -> None:
    """Write public_data.zip and starting_kit.zip into a bundle's folder."""
    # Official files are handed out by their publisher alone, as licensed; the kit downloads them.
    kind = "official" if plan.origin == "official" else "other"
    members = {"README.md": layout.ROOT / f"hosting/pages/public_data_{kind}.md"}
    if kind == "other":
        members |= {name: data_dir / name for name in find_public(data_dir, plan.tasks)}
        names = {TASKS[number].template for number in plan.tasks}
        for name in filter(None, names):
            members[f"{_TEMPLATES}/{name}"] = templates / name
    kit = {name: layout.ROOT / name for name in list_kit(layout.ROOT)}
    there = {place for path in kit.values() for place in (path, *path.parents)}
    with (
        tempfile.TemporaryDirectory() as temporary,
        writing.atomic_write(bundle / PUBLIC_DATA, bundle / STARTING_KIT) as (data_file, kit_file),
    ):
        for name in filter(lambda name: name.endswith(".md"), list(kit)):
            text = _without_links(kit[name], there)
            kit[name] = Path(temporary, name)
            writing.write_files({kit[name]: text})
        zips.write_zip_to(data_file, dict(sorted(members.items())))
        zips.write_zip_to(kit_file, kit)


def _without_links(page: Path, there: Collection[Path]) -> str:
    """Return a Markdown page in which links to files and folders that are not there are text."""

    def keep_if_there(link: re.Match[str]) -> str:
        return link[0] if Path(os.path.normpath(page.parent / link[2])) in there else link[1]

    return _LINK.sub(keep_if_there, page.read_text(encoding="utf-8"))


def find_public(data_dir: Path, tasks: Iterable[int]) -> list[str]:
    """Return the names of what participants may have of a folder like `data/`; nothing else."""
    names = []
    # Two tasks may share their files.
    for data in dict.fromkeys(TASKS[number].data for number in sorted(tasks)):
        train = f"{_TRAIN}/{data.train}"
        reading.require_file(data_dir / train)
        names += [train, *(f"{_METADATA}/{name}" for name in data.metadata)]
    names.append(f"{_METADATA}/{layout.SUBJECT_METADATA}")
    return [name for name in names if (data_dir / name).is_file()]


def list_kit(root: Path) -> list[str]:
    """Return the files of the starting kit: of those in a kit the ones that git knows, if any."""
    found: list[str] = []
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z"]
        with contextlib.suppress(OSError):
            listed = subprocess.run(command, capture_output=True).stdout
            found = os.fsdecode(listed).split("\0")
    found = found[:-1] or [path.relative_to(root).as_posix() for path in root.rglob("*")]
    names = [name for name in found if _is_kit(Path(name))]
    return sorted(n for n in names if (root / n).is_file() and not (root / n).is_symlink())


def _is_kit(path: Path) -> bool:
    first, *inner = path.parts
    if first not in _KIT or _NOT_THE_KIT.intersection(inner):
        return False
    is_data = inner[:1] == ["metadata"] and first == "data"
    is_data |= inner[1:2] == ["data"] and first == layout.RELATED_DIR.name
    is_hidden = any(part.startswith(".") for part in inner)
    is_file_of_it = path.suffix in _KIT_SUFFIXES or path.name == "published.csv"
    return not inner or (not (is_data or is_hidden) and is_file_of_it)


def describe_public(data_dir: Path, tasks: Sequence[int]) -> PublicFiles:
    """Return the public files, with how many answers each holds."""
    described: PublicFiles = {}
    for name in find_public(data_dir, tasks):
        described[name] = None
        if name.startswith(_TRAIN):
            answers = reading.read_table(data_dir / name, [schema.USER_ID, schema.QUESTION_ID])
            n_students, n_questions = answers["UserId"].nunique(), answers["QuestionId"].nunique()
            described[name] = len(answers), n_students, n_questions
    return described
