"""What participants get: the training answers and metadata, the templates, and this kit."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from common import io, layout, schema, zips

from competition import PUBLIC_DATA, STARTING_KIT, Plan

# What the kit consists of: whatever else an organiser keeps in its folder, such as answers of
# students, an unpacked bundle or a seed, in a repository of their own or not, is not for
# participants.
_KIT = (
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md",
    "WRITE_YOUR_OWN_ENTRY.md", "common", "data", "hosting", "pyproject.toml", "quickstart.py",
    "related_challenges", "requirements-dev.txt", "requirements.txt", "submission_templates",
    "task_1", "task_2", "task_3", "task_4", "tests", "tools", "walkthrough.ipynb",
)  # fmt: skip
_OF_THE_REPOSITORY = (".ci", ".github", ".gitignore", ".pre-commit-config.yaml")
_KIT_SUFFIXES = (".md", ".png", ".py", ".svg", ".yaml")
_NOT_THE_KIT = (
    "__pycache__", "build", "train_data", "test_data", "test_input", "test_output", "images",
    "submissions",
)  # fmt: skip
_GROUPS = {1: "1_2", 2: "1_2", 3: "3_4", 4: "3_4"}


def write(data_dir: Path, templates: Path, bundle: Path, plan: Plan, *, official: bool) -> None:
    """Write public_data.zip and starting_kit.zip, from data and templates into a bundle's folder.

    Official files are not among them: their licence leaves it to their publisher to hand them out,
    and the kit downloads them.
    """
    kind = "official" if official else "other"
    readme = layout.ROOT / f"hosting/pages/public_data_{kind}.md"
    members = {"README.md": readme}
    if not official:
        members |= {name: data_dir / name for name in find_public(data_dir, plan.tasks)}
        wanted = [
            *([layout.TEMPLATE_TASK_1_2] if {1, 2} & set(plan.tasks) else []),
            *([layout.TEMPLATE_TASK_3] if 3 in plan.tasks else []),
        ]
        members |= {f"{layout.TEMPLATE_DIR.name}/{name}": templates / name for name in wanted}
    with io.atomic_write(bundle / PUBLIC_DATA) as (file,):
        zips.write_zip_to(file, members)
    with io.atomic_write(bundle / STARTING_KIT) as (file,):
        zips.write_zip_to(file, {name: layout.ROOT / name for name in list_kit()})


def find_public(data_dir: Path, tasks: Iterable[int]) -> list[str]:
    """Return the files of a folder like `data/` that participants may have, by their names there.

    Only what is named here: whatever else lies in the folder, such as the record of a simulation,
    stays with the organiser.
    """
    names = []
    for group in sorted({_GROUPS[task] for task in tasks}):
        io.require_file(data_dir / layout.TRAIN_DIR.name / f"train_task_{group}.csv")
        names.append(f"{layout.TRAIN_DIR.name}/train_task_{group}.csv")
        names += [
            f"{layout.METADATA_DIR.name}/{kind}_metadata_task_{group}.csv"
            for kind in ("question", "student", "answer")
        ]
    names.append(f"{layout.METADATA_DIR.name}/{layout.SUBJECT_METADATA}")
    return [name for name in names if (data_dir / name).is_file()]


def list_kit() -> list[str]:
    """Return the files of this kit: of those in its folders the ones that git knows, if it does."""
    walked = walk_kit(layout.ROOT)
    if (layout.ROOT / ".git").exists():
        try:
            done = subprocess.run(
                ["git", "-C", str(layout.ROOT), "ls-files", "-z"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            names = [name for name in done.stdout.split("\0") if (layout.ROOT / name).is_file()]
            # A folder that the organiser has just made a repository tracks nothing yet.
            if "README.md" in names:
                own = {*walked, *(n for n in names if n.split("/")[0] in _OF_THE_REPOSITORY)}
                return sorted(own.intersection(names))
        except (OSError, subprocess.CalledProcessError):
            pass
    return walked


def walk_kit(root: Path) -> list[str]:
    """Return the files of a copy of the kit, without data, caches and what is not the kit's."""
    not_the_kit = {root / "data" / "metadata"}
    not_the_kit |= {folder / "data" for folder in (root / layout.RELATED_DIR.name).glob("*")}
    found = []
    waiting = [root / name for name in _KIT if (root / name).exists()]
    while waiting:
        path = waiting.pop()
        if path.is_symlink() or path in not_the_kit or path.name in _NOT_THE_KIT:
            continue
        if path.is_dir():
            waiting += path.glob("[!.]*")
        elif path.parent == root or path.suffix in _KIT_SUFFIXES:
            found.append(path.relative_to(root).as_posix())
    return sorted(found)


def describe(data_dir: Path, tasks: Sequence[int]) -> dict[str, str]:
    """Return what the pages say about the files: what each holds, and how many answers."""
    lines = []
    for group in sorted({_GROUPS[task] for task in tasks}):
        name = f"train_task_{group}.csv"
        path = data_dir / layout.TRAIN_DIR.name / name
        answers = io.read_table(path, [schema.USER_ID, schema.QUESTION_ID])
        n_students, n_questions = (answers[name].nunique() for name in ("UserId", "QuestionId"))
        lines.append(
            f"| `train_data/{name}` | {len(answers):,} answers of {n_students:,} students to "
            f"{n_questions:,} questions |"
        )
    if any(
        name.startswith(f"{layout.METADATA_DIR.name}/") for name in find_public(data_dir, tasks)
    ):
        lines.append(
            "| `metadata/` | what is known about questions, students, and the circumstances of "
            "answers |"
        )
    if {1, 2, 3} & set(tasks):
        lines.append("| `submission_templates/` | what is to be predicted |")
    return {"files": "\n".join(lines)}
