"""Simulates data where there are none, and builds the templates that fit the data."""

from pathlib import Path

from common import fingerprints, layout, provenance
from common.errors import InputError
from common.stray_files import list_paths
from tools.quickstart.processes import run_python
from tools.quickstart.steps import show


def prepare_task_data(python: str, size: str | None) -> None:
    """Get the data of the tasks ready, and print whether they are simulated or the user's files.

    Data are simulated if there are none, or if the simulated data have another size than `size`. If
    `size` is None, the user accepts any size. Missing and outdated submission templates are built.
    """
    is_empty = not any(list_paths(layout.TRAIN_DIR, "*.csv"))
    is_simulated = not is_empty and bool(fingerprints.simulated_files(layout.DATA_DIR))
    # Data that the organiser of a competition has simulated cannot be made again here.
    can_be_replaced = is_simulated and not fingerprints.is_hosted(layout.DATA_DIR)
    is_other_size = can_be_replaced and size is not None and size != simulated_size()
    if is_empty or is_other_size:
        print(f"simulating {size or 'small'} data in {show(layout.DATA_DIR)}/", flush=True)
        run_python(python, "data/generate_sample.py", "--size", size or "small")
        is_simulated = True
    if needs_templates():
        print("building the submission templates", flush=True)
        run_python(python, "-m", "tools.templates")
    kind = f"simulated, {simulated_size()}" if is_simulated else "your files"
    print(f"data: {show(layout.DATA_DIR)}/ ({kind})", flush=True)


def simulated_size() -> str:
    """Return the size of the simulated data, such as small, or a phrase if it is not known."""
    if fingerprints.is_hosted(layout.DATA_DIR):
        return "by the organiser of a competition"
    marker = fingerprints.read_marker(layout.DATA_DIR) or {}
    return str(marker.get("size", "of unknown size"))


def needs_templates() -> bool:
    """Return whether a submission template is missing or outdated, and can be built."""
    for name in layout.SOURCES_OF_TEMPLATE:
        can_be_built = not layout.missing_sources(name, layout.DATA_DIR)
        if can_be_built and not _is_current(layout.TEMPLATE_DIR / name):
            return True
    return False


def _is_current(template: Path) -> bool:
    """Return whether a submission template exists and was made from the present data."""
    if not template.is_file():
        return False
    try:
        provenance.require_current([template])
    except InputError:
        return False
    return True


def prepare_related_data(python: str, folder: Path) -> None:
    """Simulate the training data of a related challenge if it has none."""
    train_dir = folder / layout.DATA_DIR.name / layout.TRAIN_DIR.name
    if not any(path.is_file() for path in list_paths(train_dir)):
        print(f"simulating data in {show(train_dir)}/", flush=True)
        run_python(python, show(folder / "generate_sample.py"))
