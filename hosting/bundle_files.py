"""Write the files of a bundle: for the platform, for participants, and for the organiser to keep.

The platform gets the programs and the true answers. Participants get data and a starting kit. The
organiser keeps the private part: its files, unpacked over those of the bundle, add the answers of
the private phase. The bundle itself holds these answers only if the organiser asks for that.
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
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from common import (
    answer_options,
    fingerprints,
    layout,
    official_files,
    pages,
    provenance,
    reading,
    schema,
    source_code,
    writing,
    zips,
)
from common.errors import without_folder
from common.evaluation.pair_facts import PairFacts, read_facts
from common.origin import Origin
from common.stray_files import is_stray
from common.submission import read_pair_values
from common.tasks import TASK_4, TASKS, Form, Task
from tools.kit_files import find_kit_files

from competition import PUBLIC_DATA, STARTING_KIT, AnswerCounts, Plan, PublicFiles
from programs import facts_file
from programs.played import KEY_NAME

PROGRAMS = Path(__file__).resolve().parent / "programs"
# Names of folders in data/. Bundles and the programs in them have folders of the same names.
_TRAIN = layout.TRAIN_DIR.name
_TEST = layout.TEST_DIR.name
_METADATA = layout.METADATA_DIR.name
_TEMPLATES = layout.TEMPLATE_DIR.name

# Files and folders at the top of the kit that go into the starting kit. All others are left out: an
# organiser may keep answers, a bundle or a seed in the kit's folder, which must never reach
# participants. hosting/ and tests/ are of no use to participants.
_TOP_OF_KIT = (
    ".gitattributes", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
    "FROM_THE_GUIDE.md", "README.md", "WRITE_YOUR_OWN_ENTRY.md", "common", "data",
    "pyproject.toml", "quickstart.py", "related_challenges", "requirements-dev.txt",
    "requirements.txt", "submission_templates", "task_1", "task_2", "task_3", "task_4", "tools",
    "walkthrough.ipynb",
)  # fmt: skip
# Only files with these suffixes are taken from the folders: other files may be data.
_KIT_SUFFIXES = (".css", ".html", ".js", ".md", ".png", ".py", ".svg", ".yaml")
# Published scores of 2020: the only data that are part of the kit.
_PUBLISHED_SCORES = "published.csv"
# Folders with these names are left out: they hold data or files that the kit's scripts write.
_NOT_IN_KIT = {
    "__pycache__", "build", "train_data", "test_data", "test_input", "test_output", "images",
    "submissions",
}  # fmt: skip
# A link of a Markdown page to another file of the kit: `[text](file)` or `[text](file#heading)`.
# Links to web pages and e-mail addresses do not match.
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:)([^)#]+)(?:#[^)]*)?\)")


def _copy(source: Path, target: Path) -> None:
    """Copy a file; make the folder of the copy if it does not exist."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


# ---- For the platform --------------------------------------------------------------------------


@dataclass(frozen=True)
class PhaseFiles:
    """The files of one task and phase in the bundle or its private part, and what they are for."""

    task: Task
    phase: str
    # The folder of the bundle, which the organiser uploads, or of its private part, which the
    # organiser keeps.
    base: Path
    # How the scoring program treats a submission. "scored": it computes and shows the score.
    # "hidden": it computes the score, but only the organiser sees it. "received": it has no
    # answers, and only checks the submission.
    mode: str

    @property
    def has_answers(self) -> bool:
        """Whether the files of the phase include the true answers."""
        return self.mode != "received"

    @property
    def reference_data(self) -> Path:
        """The folder that the scoring program reads."""
        return self.base / "reference_data" / f"task_{self.task.number}_{self.phase}"


def write_for_platform(
    data_dir: Path, templates: Path, bundle: Path, private: Path, plan: Plan
) -> None:
    """Write programs and true answers into the bundle and into its private part.

    Parameters
    ----------
    data_dir
        A folder laid out like the kit's `data/`, with the answers of the public and the private
        phase.
    templates
        The folder of the submission templates.
    bundle
        The folder of the files to upload.
    private
        The folder of the files that the organiser keeps.
    plan
        The competition as the organiser wants it.
    """
    _copy_program(bundle / "scoring_program", "score.py", "scoring_metadata.yaml")
    # In the private phase, the server either computes scores and hides them ("hidden"), or has no
    # answers and only checks submissions ("received"). The organiser's own machine, which has the
    # private part, computes and shows the scores.
    mode_on_server = "hidden" if plan.private_on_server else "received"
    for number in plan.tasks:
        task = TASKS[number]
        for phase_files in (
            PhaseFiles(task, phase="public", base=bundle, mode="scored"),
            PhaseFiles(task, phase="private", base=bundle, mode=mode_on_server),
            PhaseFiles(task, phase="private", base=private, mode="scored"),
        ):
            _write_phase_files(data_dir, templates, phase_files, plan)
    if TASK_4.number in plan.tasks:
        # An entry of task 4 finds these files in its folder, as in the challenge.
        for name in find_public(data_dir, [TASK_4.number]):
            _copy(data_dir / name, bundle / "input_data/task_4" / name)


def _write_phase_files(
    data_dir: Path, templates: Path, phase_files: PhaseFiles, plan: Plan
) -> None:
    """Write the files that the programs of one task and phase read.

    These are the settings and, if the programs need them, the answers, the template of a submission
    and the ingestion program.
    """
    task = phase_files.task
    folder = phase_files.reference_data
    settings = {
        "task": task.number,
        "phase": phase_files.phase,
        "mode": phase_files.mode,
        "starts": f"{plan.days[phase_files.phase].first} 00:00:00",
    }
    writing.write_files({folder / "settings.json": json.dumps(settings) + "\n"})
    if task.form is Form.ENTRY:
        _write_ingestion_program(data_dir, phase_files)
    else:
        # The scoring program always checks a ranking against the template. It checks predictions
        # against the template only if it has no answers.
        needs_template = task.form is Form.RANKING or not phase_files.has_answers
        if needs_template:
            template = str(task.template)
            _copy(templates / template, folder / _TEMPLATES / template)
    if phase_files.has_answers:
        _write_answers(data_dir, folder, task, phase_files.phase)


def _write_ingestion_program(data_dir: Path, phase_files: PhaseFiles) -> None:
    """Write the program that lets an entry of task 4 examine students, and the students' answers.

    The answers are left out if the server only receives submissions. The program signs its results
    with a random key. The scoring program gets a copy of the key, to check the signature.
    """
    program = phase_files.base / "ingestion_program" / phase_files.phase
    _copy_program(program, "ingest.py", "ingestion_metadata.yaml")
    if phase_files.has_answers:
        answers_path = f"{_TEST}/{phase_files.task.answers_name(phase_files.phase)}"
        _copy(data_dir / answers_path, program / answers_path)
    # The ingestion program and the scoring program each read the key from their own folder
    # test_data.
    key = secrets.token_hex(32) + "\n"
    for folder in (program, phase_files.reference_data):
        writing.write_files({folder / _TEST / KEY_NAME: key})


def _copy_program(folder: Path, script: str, metadata_name: str) -> None:
    """Copy a program and all that it needs: modules of the kit, page templates, and Jinja2."""
    # Modules of the kit import tqdm, which the platform's image lacks: the module tqdm.py stands in
    # for it.
    for path in source_code.files_of(PROGRAMS / script, PROGRAMS / "tqdm.py"):
        # Modules in programs/ go to the top of the copy. Modules of the kit keep their folders.
        root = PROGRAMS if path.is_relative_to(PROGRAMS) else layout.ROOT
        _copy(path, folder / path.relative_to(root))
    _copy(PROGRAMS / metadata_name, folder / "metadata.yaml")
    shutil.copytree(pages.TEMPLATES, folder / pages.TEMPLATES.relative_to(layout.ROOT))
    # The platform's image lacks Jinja2 and MarkupSafe, which Jinja2 needs.
    for package in ("jinja2", "markupsafe"):
        _copy_package(package, folder)


def _copy_package(package: str, folder: Path) -> None:
    """Copy the Python files and the licence of an installed package into a folder.

    The compiled parts of the package are left out.
    """
    # `file` is a path relative to the folder in which all packages are installed.
    for file in metadata.files(package) or []:
        source = Path(str(file.locate()))
        if file.name.startswith("LICENSE"):
            # The file of the licence does not lie in the package's own folder, but its copy goes
            # there.
            _copy(source, folder / package / file.name)
        elif file.suffix == ".py":
            _copy(source, folder / file)


def _write_answers(data_dir: Path, folder: Path, task: Task, phase: str) -> None:
    """Write the true answers of a task and phase.

    For tasks 1 and 2, also write the facts about pairs of student and question that the page of a
    score shows. They come from training answers and metadata.
    """
    name = f"{_TEST}/{task.answers_name(phase)}"
    _copy(data_dir / name, folder / name)
    _write_origin(data_dir, folder, name)
    if task.form is Form.PREDICTIONS:
        _write_pairs(data_dir, folder, task, phase)


def _write_origin(data_dir: Path, folder: Path, name: str) -> None:
    """Record where a file of answers comes from, so that the page of a score can name the origin.

    `name` is the path of the file relative to `data_dir`, and the path of its copy relative to
    `folder`. For simulated answers, `folder` gets a marker file, which lists the copy as simulated.
    For official answers, it gets a record, which lists the copy as official. The organiser's own
    answers get neither.
    """
    origin = provenance.origin_of(data_dir / name)
    if origin is Origin.SIMULATED:
        marker = fingerprints.read_marker(data_dir) or {}
        # The page of a score shows the accuracy that the best possible model would be expected to
        # reach on these simulated answers.
        marker_of_copy = {
            "best_expected_accuracy": marker.get("best_expected_accuracy"),
            "files": {name: fingerprints.fingerprint(folder / name)},
        }
        marker_path = folder / layout.SIMULATED_MARKER_NAME
        writing.write_files({marker_path: json.dumps(marker_of_copy, indent=1) + "\n"})
    elif origin is Origin.OFFICIAL:
        writing.write_files(official_files.record_of(folder, [folder / name]))


def _write_pairs(data_dir: Path, folder: Path, task: Task, phase: str) -> None:
    """Write the files that the scoring program of task 1 or 2 needs besides the true answers.

    A pair is a student and a question; a submission predicts the student's answer to the question.
    The scoring program of `phase` needs two files:

    - the pairs of the other phase, because a submission holds the rows of both phases;
    - facts.npz with facts about the pairs of `phase`, such as the difficulty of the question. The
      page of a score shows these facts. They come from training answers and metadata.
    """
    for each_phase in layout.PHASES:
        path = data_dir / _TEST / task.answers_name(each_phase)
        source = reading.file_source(path)
        # The column that the task predicts: whether the answer is right, or the option chosen. For
        # options, `column_in` finds the highest one that is valid in the file.
        answer_column = answer_options.column_in(source, task.column)
        pairs = read_pair_values(source, answer_column)
        if each_phase == phase:
            train = data_dir / _TRAIN / task.data.train
            metadata_dir = data_dir / _METADATA
            facts = read_facts(pairs, task, reference=path, train=train, folder=metadata_dir)
            # Participants must not see the names of folders on the organiser's machine.
            facts = _hide_folder(facts, data_dir)
            facts_file.write_facts(folder / "facts.npz", facts)
        else:
            pairs_without_answers = pairs[["QuestionId", "UserId"]]
            writing.write_files({folder / _TEST / path.name: pairs_without_answers})


def _hide_folder(facts: PairFacts, data_dir: Path) -> PairFacts:
    """Remove the folder `data_dir` from the texts in facts about pairs; return the changed facts.

    `facts.left_out` says which facts are not known and why, for example because a file is missing.
    Participants may read these reasons, but not the names of folders on the organiser's machine.
    """
    left_out = []
    for part in facts.left_out:
        left_out.append(replace(part, why=without_folder(part.why, data_dir)))
    return replace(facts, left_out=left_out)


# ---- For participants --------------------------------------------------------------------------


def write_for_participants(data_dir: Path, templates: Path, bundle: Path, plan: Plan) -> None:
    """Write public_data.zip and starting_kit.zip into the folder of a bundle."""
    public_data = _list_public_data(data_dir, templates, plan)
    with (
        tempfile.TemporaryDirectory() as temporary,
        writing.atomic_write(bundle / PUBLIC_DATA, bundle / STARTING_KIT) as (data_file, kit_file),
    ):
        kit = _prepare_kit(Path(temporary))
        marker = _public_marker(data_dir, plan)
        # The marker is a file that lists the simulated files. With --official, public_data.zip
        # holds no data, so it gets no marker, even if `data_dir` holds simulated files.
        if marker is not None and plan.origin != "official":
            path = Path(temporary, layout.SIMULATED_MARKER_NAME)
            writing.write_files({path: json.dumps(marker, indent=1) + "\n"})
            public_data[path.name] = path
        zips.write_zip_to(data_file, dict(sorted(public_data.items())))
        zips.write_zip_to(kit_file, kit)


def _prepare_kit(temporary: Path) -> dict[str, Path]:
    """Map the name of each file in the starting kit to the path of the file.

    A Markdown page may link to a file that is not in the starting kit. The starting kit therefore
    gets copies of the pages, in which such links are plain text. The folder `temporary` holds the
    copies.
    """
    kit = {name: layout.ROOT / name for name in list_kit(layout.ROOT)}
    # A link is kept if it leads to a file of the starting kit, or to a folder that holds such a
    # file.
    files_and_folders = set(kit.values())
    for path in kit.values():
        files_and_folders.update(path.parents)
    for name, path in kit.items():
        if name.endswith(".md"):
            copy = temporary / name
            writing.write_files({copy: _without_dead_links(path, files_and_folders)})
            kit[name] = copy
    return kit


def _list_public_data(data_dir: Path, templates: Path, plan: Plan) -> dict[str, Path]:
    """Map the name of each file in public_data.zip to the path of the file."""
    pages_dir = layout.ROOT / "hosting/pages"
    if plan.origin == "official":
        # Only the publisher of the official files may hand them out (their licence). Participants
        # download them from the publisher, with a script of the kit.
        return {"README.md": pages_dir / "public_data_official.md"}
    members = {"README.md": pages_dir / "public_data_other.md"}
    for name in find_public(data_dir, plan.tasks):
        members[name] = data_dir / name
    for number in plan.tasks:
        template = TASKS[number].template
        if template:
            members[f"{_TEMPLATES}/{template}"] = templates / template
    return members


def _public_marker(data_dir: Path, plan: Plan) -> dict[str, Any] | None:
    """Return the marker of the public files of simulated data; None if they are not simulated.

    A marker is a file that lists the simulated files of its folder. From the marker, a
    participant's kit knows that scores come from simulated answers. The seed, and anything else
    that helps to simulate the data again, is left out of the marker.

    A sketch holds hashes of some rows of a file, by which the kit recognises changed copies of the
    file. The marker holds sketches of public files only: with a sketch of hidden answers,
    participants could find out whether a guess of these answers is right.
    """
    simulated = set(fingerprints.simulated_files(data_dir))
    public_names = find_public(data_dir, plan.tasks)
    simulated_names = [name for name in public_names if data_dir / name in simulated]
    if not simulated_names:
        return None
    marker = fingerprints.read_marker(data_dir) or {}
    sketches = marker.get("sketches", {})
    return {
        "simulated": True,
        # These simulated files belong to a competition, so participants cannot simulate them again.
        "hosted": True,
        "files": {name: marker["files"][name] for name in simulated_names},
        "sketches": {name: sketches[name] for name in simulated_names if name in sketches},
    }


def _without_dead_links(page: Path, existing: Collection[Path]) -> str:
    """Return the text of a Markdown page; links to paths not in `existing` become plain text."""

    def replace_link(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = Path(os.path.normpath(page.parent / target))
        return link[0] if path in existing else text

    return _LINK.sub(replace_link, page.read_text(encoding="utf-8"))


def find_public(data_dir: Path, tasks: Iterable[int]) -> list[str]:
    """Return the names of the training and metadata files of tasks, which participants may have.

    Names are relative to `data_dir`, which is laid out like `data/`. Metadata files that do not
    exist are left out. Raises `InputError` if a training file is missing.
    """
    names = []
    all_data = [TASKS[number].data for number in sorted(tasks)]
    # Tasks may share files: `dict.fromkeys` drops repetitions and keeps the order.
    for data in dict.fromkeys(all_data):
        train = f"{_TRAIN}/{data.train}"
        reading.require_file(data_dir / train)
        names.append(train)
        names += [f"{_METADATA}/{name}" for name in data.metadata]
    names.append(f"{_METADATA}/{layout.SUBJECT_METADATA}")
    return [name for name in names if (data_dir / name).is_file()]


def list_kit(root: Path) -> list[str]:
    """Return the files of the starting kit, relative to `root`, sorted.

    In a git repository, a file is taken only if git tracks it. Otherwise it must be listed in
    `tools/kit_files.py`: files that a user has added, such as an entry, are not taken.
    """
    names = _tracked_files(root)
    if not names:
        names = [path.relative_to(root).as_posix() for path in find_kit_files(root)]
    kit = []
    for name in names:
        path = root / name
        if _is_in_starting_kit(Path(name)) and path.is_file() and not path.is_symlink():
            kit.append(name)
    return sorted(kit)


def _tracked_files(root: Path) -> list[str]:
    """Return the files that git tracks; none if `root` is no git repository, or git is missing."""
    listed = b""
    if (root / ".git").exists():
        with contextlib.suppress(OSError):
            command = ["git", "-C", str(root), "ls-files", "-z"]
            listed = subprocess.run(command, capture_output=True).stdout
    return [name for name in os.fsdecode(listed).split("\0") if name]


def _is_in_starting_kit(path: Path) -> bool:
    """Return whether a file belongs to the starting kit.

    `path` is the path of the file relative to the kit.
    """
    # `top` is the name of a folder or file at the top of the kit. `inner` is the list of the other
    # names in the path.
    top, *inner = path.parts
    if top not in _TOP_OF_KIT:
        return False
    is_at_top = not inner
    if is_at_top:
        return True
    # Leave out files in folders that hold data or results, and stray files such as .DS_Store.
    if any(part in _NOT_IN_KIT or is_stray(part) for part in inner):
        return False
    # The folder data/metadata holds data. `_NOT_IN_KIT` does not contain the name metadata, because
    # a folder of code may have this name too.
    if top == "data" and inner[0] == _METADATA:
        return False
    # Every related challenge keeps its data in a folder data/ beside its scripts.
    is_related = top == layout.RELATED_DIR.name
    if is_related and len(inner) > 1 and inner[1] == layout.DATA_DIR.name:
        return False
    return path.suffix in _KIT_SUFFIXES or path.name == _PUBLISHED_SCORES


def describe_public(data_dir: Path, tasks: Sequence[int]) -> PublicFiles:
    """Map the name of each public file to its counts, or to None if the file holds metadata."""
    described: PublicFiles = {}
    for name in find_public(data_dir, tasks):
        described[name] = None
        if name.startswith(_TRAIN):
            source = reading.file_source(data_dir / name)
            answers = reading.read_table(source, [schema.USER_ID, schema.QUESTION_ID])
            described[name] = AnswerCounts(
                n_answers=len(answers),
                n_students=answers["UserId"].nunique(),
                n_questions=answers["QuestionId"].nunique(),
                # Options are numbered from 1, so the highest valid option is also the largest
                # number of options of a question.
                n_options=answer_options.column_in(source, schema.ANSWER_VALUE).high,
            )
    return described
