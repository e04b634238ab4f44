"""What participants get: the training answers and metadata, the templates, and this kit."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from competition import PUBLIC_DATA, STARTING_KIT, Plan

from common import io, layout, schema, zips

# What the repository ignores, for a copy of the kit that is no repository.
_NOT_THE_KIT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "train_data", "test_data", "test_input",
    "test_output", "images", "submissions", "submission_*.csv", "template_*.json",
    "SIMULATED.json", "model_task_4*", "*.zip", "*.partial",
)  # fmt: skip
_GROUPS = {1: "1_2", 2: "1_2", 3: "3_4", 4: "3_4"}


def write(data_dir: Path, templates: Path, bundle: Path, plan: Plan, *, official: bool) -> None:
    """Write public_data.zip and starting_kit.zip.

    Parameters
    ----------
    data_dir
        A folder laid out like `data/`.
    templates
        Folder of the templates.
    bundle
        Folder of the bundle.
    plan
        What the organiser wants.
    official
        Whether these are the official files: their licence leaves it to their publisher to hand
        them out, and the kit downloads them.

    Raises
    ------
    InputError
        If a file is missing.
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
    """Return the files of this kit: those that git knows, or else all but data and caches."""
    if (layout.ROOT / ".git").exists():
        try:
            done = subprocess.run(
                ["git", "-C", str(layout.ROOT), "ls-files", "-z"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            names = [name for name in done.stdout.split("\0") if name]
            return sorted(name for name in names if (layout.ROOT / name).is_file())
        except (OSError, subprocess.CalledProcessError):
            pass
    return sorted(_walk(layout.ROOT))


def _walk(folder: Path) -> list[str]:
    names = sorted(entry.name for entry in folder.iterdir())
    ignored = _NOT_THE_KIT(str(folder), names)
    # Only the data's own: common/metadata is a package.
    if folder == layout.DATA_DIR:
        ignored |= {"metadata"}
    if folder.parent == layout.RELATED_DIR:
        ignored |= {"data"}
    found = []
    for name in names:
        path = folder / name
        if name in ignored or path.is_symlink():
            continue
        if path.is_dir():
            found += _walk(path)
        else:
            found.append(path.relative_to(layout.ROOT).as_posix())
    return found


def describe(data_dir: Path, tasks: Iterable[int]) -> dict[str, str]:
    """Return what the pages say about the data: their files, and how many answers they hold."""
    lines = []
    for group in sorted({_GROUPS[task] for task in tasks}):
        name = f"train_task_{group}.csv"
        columns = io.read_columns(
            data_dir / layout.TRAIN_DIR.name / name, [schema.USER_ID, schema.QUESTION_ID]
        )
        n_students, n_questions = (len(set(ids.tolist())) for ids in columns.values())
        lines.append(
            f"| `train_data/{name}` | {len(columns['UserId']):,} answers of {n_students:,} "
            f"students to {n_questions:,} questions |"
        )
    return {"counts": "\n".join(lines)}
