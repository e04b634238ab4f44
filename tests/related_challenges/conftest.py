"""The related challenges: their samples, shared, and a model's way to a score."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from run_scripts import ROOT

# So that tests can import the challenges' own modules, as their scripts do.
sys.path += [str(path) for path in sorted((ROOT / "related_challenges").iterdir()) if path.is_dir()]


@pytest.fixture(scope="session")
def challenge_kit(
    tmp_path_factory: pytest.TempPathFactory, succeeds: Callable[..., str]
) -> Callable[[str], Path]:
    """Return a function from a challenge's name to a copy of the kit with its sample, split.

    All tests share it: only read from it.
    """
    kit = tmp_path_factory.mktemp("related") / "kit"
    ignored = shutil.ignore_patterns("data", "__pycache__")
    for folder in ("common", "tools", "related_challenges"):
        shutil.copytree(ROOT / folder, kit / folder, ignore=ignored)

    def prepare(name: str) -> Path:
        folder = f"related_challenges/{name}"
        if not (kit / folder / "data").exists():
            succeeds([f"{folder}/generate_sample.py"], kit=kit)
            flags = [] if name == "debiasing" else ["--folds", "3"]
            flags += ["--by_question"] if name == "student_response" else []
            succeeds([f"{folder}/local_data_split.py", *flags], kit=kit)
        return kit

    return prepare


@pytest.fixture
def score(
    challenge_kit: Callable[[str], Path], succeeds: Callable[..., str], tmp_path: Path
) -> Callable[..., str]:
    """Let a sample model predict its challenge's sample, and score it, in the test's own folder.

    Returns what the evaluation prints.
    """

    def predict_and_score(challenge: str, model: str, *flags: object) -> str:
        kit, folder = challenge_kit(challenge), f"related_challenges/{challenge}"
        local = [] if challenge == "student_response" else ["--local"]
        own = ["--output_dir", tmp_path]
        succeeds([f"{folder}/sample_model_{model}.py", *local, *flags, *own], kit=kit)
        scored = [f"{folder}/local_evaluation.py", "--submission_dir", tmp_path, *own]
        return succeeds(scored, kit=kit)

    return predict_and_score
