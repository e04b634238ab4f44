"""Check the code without running it: ruff (style, docstrings, format) and mypy (types).

    python tests/static_checks.py

`python3 quickstart.py --test` runs this before the tests, .pre-commit-config.yaml before a commit.
The exit code is 0 only if every check passes. All checks run, even if one fails.
"""

import os
import subprocess
import sys
from pathlib import Path

# The kit need not be installed for its files to be checked.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.kit_files import ROOT, find_kit_files

# Folders of scripts and the modules beside them. mypy checks each folder by itself, because two
# folders may have files of the same name. So mypy checks modules that the related challenges share
# once for each challenge.
SCRIPT_FOLDERS = (
    "data", "task_*", "task_*/*", "related_challenges/*", "hosting", "hosting/programs",
)  # fmt: skip


def main() -> int:
    """Run every check; return the exit code."""
    # Files that a user has added are not checked.
    files = [path for path in find_kit_files() if path.suffix in (".py", ".ipynb", ".toml")]
    names = [str(path.relative_to(ROOT)) for path in files]
    code_names = [name for name in names if not name.endswith(".toml")]
    exit_codes = [
        run("ruff", "check", *names),
        run("ruff", "format", "--check", *code_names),
        run("mypy", "common", "tools", "quickstart.py", "tests/static_checks.py"),
    ]
    config = str(ROOT / "pyproject.toml")
    folders: list[Path] = []
    for pattern in SCRIPT_FOLDERS:
        folders += ROOT.glob(pattern)
    for folder in sorted(folders):
        scripts = [path.name for path in files if path.parent == folder and path.suffix == ".py"]
        if scripts:
            exit_codes.append(run("mypy", "--config-file", config, *scripts, folder=folder))
    return 1 if any(exit_codes) else 0


def run(*command: str, folder: Path = ROOT) -> int:
    """Run a tool in a folder; return its exit code."""
    print(f"{command[0]} in {folder.name}/", flush=True)
    # With one cache for all folders, mypy analyses the libraries once.
    paths = {"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    return subprocess.call(
        [sys.executable, "-m", *command], cwd=folder, env={**os.environ, **paths}
    )


if __name__ == "__main__":
    sys.exit(main())
