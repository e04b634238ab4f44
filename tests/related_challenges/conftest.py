"""The samples of the related challenges, simulated and split once for all tests."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import copy_kit, succeeds
from question_files import SPLITS
from run_scripts import ROOT

# Scripts of a challenge import modules from their own folder. Let the tests import these, too.
sys.path += [str(path) for path in sorted((ROOT / "related_challenges").iterdir()) if path.is_dir()]


@pytest.fixture(scope="session")
def challenge_kit(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that simulates and splits a challenge's files in a copy of the kit.

    The argument of the function is the challenge, such as "cloze". The function returns the folder
    of the copy. Tests share the copy and only read it.
    """
    kit = copy_kit(tmp_path_factory.mktemp("related") / "kit")

    def prepare(challenge: str) -> Path:
        folder = f"related_challenges/{challenge}"
        # Another test may have prepared the challenge before.
        if not (kit / folder / "data/train_data").exists():
            succeeds([f"{folder}/generate_sample.py"], kit=kit)
            succeeds([f"{folder}/local_data_split.py", *SPLITS[challenge]], kit=kit)
        return kit

    return prepare
