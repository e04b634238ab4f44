"""Check the code without running it: ruff (style, docstrings, format) and mypy (types).

    python tests/static_checks.py

`python3 quickstart.py --test` runs this before the tests, .pre-commit-config.yaml before a commit.
The exit code is 0 only if every check passes; one that fails does not keep the others from running.
"""

import os
import subprocess
import sys
from pathlib import Path

# The kit need not be installed for its files to be checked.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.kit_files import ROOT, find_kit_files

# Scripts and the modules beside them: mypy reads each folder by itself, since two folders may have
# files of the same name. What related challenges share it reads with each of them.
SCRIPT_FOLDERS = (
    "data", "task_*", "task_*/*", "related_challenges/*", "hosting", "hosting/programs",
)  # fmt: skip


def main() -> int:
    """Run every check; return the exit code."""
    # Files that a user has added are not checked.
    code = [path for path in find_kit_files() if path.suffix in (".py", ".ipynb", ".toml")]
    names = [str(path.relative_to(ROOT)) for path in code]
    codes = [run("ruff", "check", *names)]
    codes.append(run("ruff", "format", "--check", *(n for n in names if not n.endswith(".toml"))))
    codes.append(run("mypy", "common", "tools", "quickstart.py", "tests/static_checks.py"))
    config = str(ROOT / "pyproject.toml")
    for folder in sorted(path for pattern in SCRIPT_FOLDERS for path in ROOT.glob(pattern)):
        if names := [path.name for path in code if path.parent == folder and path.suffix == ".py"]:
            codes.append(run("mypy", "--config-file", config, *names, folder=folder))
    return 1 if any(codes) else 0


def run(*command: str, folder: Path = ROOT) -> int:
    """Run a tool in a folder; return its exit code."""
    print(f"{command[0]} in {folder.name}/", flush=True)
    # With one cache for all folders, mypy reads the libraries once.
    paths = {"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    return subprocess.call(
        [sys.executable, "-m", *command], cwd=folder, env={**os.environ, **paths}
    )


if __name__ == "__main__":
    sys.exit(main())
