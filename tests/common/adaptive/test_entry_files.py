"""Which files of a folder belong to an entry, and what is reported about the others."""

from collections.abc import Callable
from pathlib import Path

from common.adaptive import entry_files
from common.errors import InputError

import pytest

FILES = {
    "submission_model_task_4.py": "import model\nfrom parts.first import x\n",
    "model.py": "import numpy\n",
    "parts/first.py": "x = 1\n",
} | dict.fromkeys((
    "parts/second.py", "parts/table.csv", "model_task_4.npy", "weights/model_task_4_a.pt",
    "weights/notes.txt", "model_task_4_folds/fold_0.pt", "data/train.csv", "data/deep/valid.csv",
    "train_model.py", ".hidden/model_task_4.pt", "__pycache__/model.pyc",
    ".model_task_4.npy.partial", "model_task_4.npy.partial",
), "")  # fmt: skip
TAKEN = {
    "submission_model_task_4.py", "model.py", "parts/first.py", "parts/second.py",
    "model_task_4.npy", "weights/model_task_4_a.pt", "model_task_4_folds/fold_0.pt",
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, write: Callable[[str, str], Path]) -> Path:
    for name, content in FILES.items():
        write(f"package/{name}", content)
    return tmp_path / "package"


def test_the_entry_its_modules_and_its_weights_are_taken(package: Path, tmp_path: Path) -> None:
    files = entry_files.collect(package)
    assert set(files) == TAKEN
    assert all(path == package / name for name, path in files.items())
    assert entry_files.left_out(package, files) == [
        "data/", "model_task_4.npy.partial", "parts/table.csv", "train_model.py",
        "weights/notes.txt",
    ]  # fmt: skip
    (tmp_path / "link").symlink_to(package)
    assert set(entry_files.collect(tmp_path / "link")) == TAKEN


def test_a_package_without_weights_names_its_trainer(package: Path) -> None:
    for name in TAKEN:
        if "model_task_4" in name and not name.endswith(".py"):
            (package / name).unlink()
    with pytest.raises(InputError, match=r"holds no weights \(model_task_4…\), .*train_model.py`"):
        entry_files.collect(package)
    (package / "train_model.py").unlink()
    assert "model.py" in entry_files.collect(package)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("model_task_4_link", ".."),
        ("model_task_4_link.npy", "nowhere"),
        ("model.py", "../secret"),
        ("submission_model_task_4.py", "../secret"),
    ],
)
def test_links_that_lead_out_are_refused(
    package: Path, write: Callable[[str, str], Path], name: str, target: str
) -> None:
    write("secret", "")
    (package / name).unlink(missing_ok=True)
    (package / name).symlink_to(target)
    with pytest.raises(InputError, match=f"{name}: is a link that leads out of the entry's folder"):
        entry_files.collect(package)
