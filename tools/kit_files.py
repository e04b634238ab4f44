"""List the files that belong to the kit, as opposed to files that a user has added.

Every file in `common/`, `hosting/`, `tests/` and `tools/` belongs to the kit. In the other folders,
a user's entries, data and notes lie beside the kit's files, so this module lists the kit's files
by name. Git cannot tell them apart: a kit may have been downloaded as a zip, and in a fork git also
tracks the user's entries.

Whoever adds a file to the kit adds its name here. `tests/test_kit_files.py` fails if a file that
the kit uses is missing.
"""

from pathlib import Path

from common.stray_files import list_paths

ROOT = Path(__file__).resolve().parents[1]
# Every file in these folders and in their subfolders belongs to the kit.
WHOLE_FOLDERS = (".ci", ".github", "common", "data/pictures", "hosting", "tests", "tools")
# In these folders, a user's files lie beside the kit's files. The patterns match the names of the
# kit's files.
NAMES = {
    ".": (
        ".gitattributes",
        ".gitignore",
        ".pre-commit-config.yaml",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "FROM_THE_GUIDE.md",
        "LICENSE",
        "README.md",
        "WRITE_YOUR_OWN_ENTRY.md",
        "pyproject.toml",
        "quickstart.py",
        "requirements*.txt",
        "walkthrough.ipynb",
    ),
    "data": (
        "README.md",
        "SIMULATION.md",
        "common.py",
        "download.py",
        "explore.py",
        "explore_charts.py",
        "generate_sample.py",
        "simulation.py",
        "subject_tree.py",
    ),
    "submission_templates": ("README.md", "submission_model_task_4.py"),
    "task_1": ("README.md", "common.py", "local_*.py", "sample_model_*.py"),
    "task_2": (
        "README.md",
        "common.py",
        "local_*.py",
        "misconception_groups.py",
        "misconceptions.py",
        "sample_model_*.py",
    ),
    "task_3": (
        "README.md",
        "common.py",
        "compare_features.py",
        "judge.py",
        "local_*.py",
        "question_features.py",
        "question_report.py",
        "sample_model_*.py",
    ),
    "task_4": (
        "README.md",
        "RULES.md",
        "STRATEGIES.md",
        "ability.py",
        "common.py",
        "compare_strategies.py",
        "local_*.py",
        "package.py",
        "published.csv",
        "strategies.py",
        "strategy_games.py",
        "student_report.py",
    ),
    "task_4/item_response": ("*.py",),
    "task_4/matrix_factorization": ("*.py",),
    "task_4/numpy": ("*.py",),
    "task_4/pytorch": ("*.py",),
    "related_challenges": ("README.md", "challenge.py", "folds.py"),
    "related_challenges/cloze": (
        "README.md",
        "check_submission.py",
        "common.py",
        "evaluate.py",
        "generate_sample.py",
        "local_*.py",
        "queries.py",
        "sample_model_*.py",
    ),
    "related_challenges/debiasing": (
        "README.md",
        "candidates.py",
        "check_submission.py",
        "clicks.py",
        "common.py",
        "generate_sample.py",
        "local_*.py",
        "recommend.py",
        "replay.py",
        "sample_model_*.py",
        "submission.py",
        "unpack.py",
    ),
    "related_challenges/science_exam": (
        "README.md",
        "check_submission.py",
        "common.py",
        "exam.py",
        "generate_sample.py",
        "local_*.py",
        "sample_model_*.py",
    ),
    "related_challenges/student_response": (
        "README.md",
        "alignment.py",
        "annotations.py",
        "check_submission.py",
        "common.py",
        "generate_sample.py",
        "label_distribution.py",
        "local_*.py",
        "prepare.py",
        "published.csv",
        "responses.py",
        "sample_model_*.py",
        "similarity.py",
    ),
}
# Folders that Python and its tools may make anywhere.
_CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def find_kit_files(root: Path = ROOT) -> list[Path]:
    """Return the paths of all files that belong to the kit in the folder `root`, sorted."""
    paths: set[Path] = set()
    for folder in WHOLE_FOLDERS:
        paths.update(list_paths(root / folder))
    for folder, patterns in NAMES.items():
        for pattern in patterns:
            paths.update((root / folder).glob(pattern))
    return sorted(path for path in paths if path.is_file() and not _CACHES.intersection(path.parts))


def glob_kit(pattern: str, root: Path = ROOT) -> list[Path]:
    """Return the files of the kit that match a pattern such as `task_*/*.md`, sorted."""
    kit_files = find_kit_files(root)
    return sorted(set(root.glob(pattern)).intersection(kit_files))
