"""Task 4: write the zip to upload, after a dry run where there is nothing but the zip.

Run:     python task_4/package.py task_4/numpy    after task_4/numpy/train_model.py
Reads:   the package, and data/train_data/train_task_3_4.csv for the dry run
Writes:  submissions/submission_task_4.zip

The zip holds submission_model_task_4.py, the modules beside it that it imports, and the weights,
whose names begin with model_task_4. The dry run plays the ten rounds in an empty folder with
some training students; it gives no score, since the model may know them.
"""

import ast
import tempfile
from pathlib import Path

from common import cli, io, layout
from common.adaptive import evaluation
from common.adaptive.entry_process import ENTRY_FILE
from common.adaptive.training import training_parser, training_paths
from common.errors import InputError

WEIGHTS = "model_task_4*"


def main() -> None:
    """Collect, try, write."""
    p = training_parser(__doc__)
    p.add_argument("package", type=Path, help="folder of the package, such as task_4/numpy")
    p.add_argument(
        "--output_dir", type=Path, default=layout.SUBMISSION_DIR, help="default submissions"
    )
    p.add_argument("--output_file", default="submission_task_4.zip", help="default %(default)s")
    options = p.parse_args()
    output = options.output_dir / options.output_file
    files = collect(options.package)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / output.name
        with io.atomic_write(draft) as (file,):
            io.write_zip_to(file, files)
        evaluation.dry_run(draft, training_paths(options))
        with io.atomic_write(output) as (file,):
            file.write(draft.read_bytes())
    print(f"dry run: the ten rounds ran in an empty folder that held {', '.join(sorted(files))}")
    left_out = {path.name for path in options.package.iterdir() if path.is_file()} - set(files)
    print(f"left out: {', '.join(sorted(left_out)) or 'nothing'}")
    print(f"written: {cli.show(output)} ({output.stat().st_size:,} bytes)")


def collect(package: Path) -> dict[str, Path]:
    """Collect what goes into the zip: the entry, what it imports from beside it, the weights.

    Parameters
    ----------
    package
        The folder.

    Returns
    -------
    dict
        For each name inside the zip the file.

    Raises
    ------
    InputError
        If the entry is missing, or a file of it is not Python.
    """
    io.require_file(package / ENTRY_FILE)
    files = {path.name: path for path in sorted(package.glob(WEIGHTS)) if path.is_file()}
    waiting = [package / ENTRY_FILE]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(package).as_posix()
        if name not in files:
            files[name] = path
            waiting += find_imports(path, package)
    return files


def find_imports(path: Path, package: Path) -> list[Path]:
    """Find the modules of the package that a file of it imports; of a subfolder, all modules."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path}: is not Python: {error}") from None
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
    found: list[Path] = []
    for name in sorted({module.split(".")[0] for module in modules}):
        if (package / f"{name}.py").is_file():
            found.append(package / f"{name}.py")
        else:
            found += sorted((package / name).rglob("*.py"))
    return found


if __name__ == "__main__":
    cli.run(main)
