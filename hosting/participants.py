"""What participants get: the training answers and metadata, the templates, and this kit."""

import contextlib
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from common import io, layout, schema, zips

from competition import PUBLIC_DATA, STARTING_KIT, Plan
from reference_data import TEMPLATES

# What the starting kit consists of: whatever else an organiser keeps in the kit's folder, such as
# answers of students, an unpacked bundle or a seed, is not for participants; nor are hosting and
# tests of use to them.
_KIT = (
    ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md",
    "WRITE_YOUR_OWN_ENTRY.md", "common", "data", "pyproject.toml", "quickstart.py",
    "related_challenges", "requirements-dev.txt", "requirements.txt", "submission_templates",
    "task_1", "task_2", "task_3", "task_4", "tools", "walkthrough.ipynb",
)  # fmt: skip
_KIT_SUFFIXES = (".css", ".html", ".md", ".png", ".py", ".svg", ".yaml")
_NOT_THE_KIT = {
    "__pycache__", "build", "train_data", "test_data", "test_input", "test_output", "images",
    "submissions",
}  # fmt: skip
_GROUPS = {1: "1_2", 2: "1_2", 3: "3_4", 4: "3_4"}


def write(data_dir: Path, templates: Path, bundle: Path, plan: Plan) -> None:
    """Write public_data.zip and starting_kit.zip, from data and templates into a bundle's folder.

    Official files are not among them: their licence leaves it to their publisher to hand them out,
    and the kit downloads them.
    """
    kind = "official" if plan.origin == "official" else "other"
    members = {"README.md": layout.ROOT / f"hosting/pages/public_data_{kind}.md"}
    if kind == "other":
        members |= {name: data_dir / name for name in find_public(data_dir, plan.tasks)}
        for name in {TEMPLATES[task] for task in plan.tasks if task in TEMPLATES}:
            members[f"{layout.TEMPLATE_DIR.name}/{name}"] = templates / name
    kit = {name: layout.ROOT / name for name in list_kit(layout.ROOT)}
    with io.atomic_write(bundle / PUBLIC_DATA, bundle / STARTING_KIT) as (data_file, kit_file):
        zips.write_zip_to(data_file, dict(sorted(members.items())))
        zips.write_zip_to(kit_file, kit)


def find_public(data_dir: Path, tasks: Iterable[int]) -> list[str]:
    """Return the names of what participants may have of a folder like `data/`; nothing else."""
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


def list_kit(root: Path) -> list[str]:
    """Return the files of the starting kit: of those in a kit the ones that git knows, if any."""
    found: list[str] = []
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z"]
        with contextlib.suppress(OSError):
            found = subprocess.run(command, capture_output=True, text=True).stdout.split("\0")
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
    return not inner or (not (is_data or is_hidden) and path.suffix in _KIT_SUFFIXES)


def describe(data_dir: Path, tasks: Sequence[int]) -> dict[str, str]:
    """Return what the pages say about the files: what each holds, and how many answers."""
    lines = []
    names = find_public(data_dir, tasks)
    for name in names:
        if name.startswith(layout.TRAIN_DIR.name):
            answers = io.read_table(data_dir / name, [schema.USER_ID, schema.QUESTION_ID])
            n_students, n_questions = answers["UserId"].nunique(), answers["QuestionId"].nunique()
            lines.append(
                f"| `{name}` | {len(answers):,} answers of {n_students:,} students to "
                f"{n_questions:,} questions |"
            )
    if len(lines) < len(names):
        lines.append(
            "| `metadata/` | what is known about questions, students, and the circumstances of "
            "answers |"
        )
    if {1, 2, 3} & set(tasks):
        lines.append("| `submission_templates/` | what is to be predicted |")
    return {"files": "\n".join(lines)}
