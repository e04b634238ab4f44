"""The challenge's own guide, word for word: its commands in its folders, its places of files."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from conftest import copy_kit, keep_only
from run_scripts import run_process

# Typed in these folders, after the quickstart; what the last of them prints.
GUIDE = {
    "task_1": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_2": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_3": ("sample_model_entropy.py", "sample_model_random.py"),
    "task_4": ("local_data_split.py",),
}
PLACES = """
data/test_input/train_task_1_2.csv data/test_input/valid_task_1_2.csv
data/test_input/train_task_4.csv data/test_input/valid_task_4.csv
submissions/submission_task_1.csv submissions/submission_task_2.csv
submissions/submission_task_3.csv
"""


@pytest.mark.slow
def test_commands_and_places_of_the_guide(tmp_path: Path) -> None:
    kit = copy_kit(tmp_path / "kit")
    keep_only(kit, "majority", "entropy", "random")
    done = run_process(["quickstart.py", "--size", "tiny"], kit=kit, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    for folder, scripts in GUIDE.items():
        for script in scripts:
            done = run_process([f"{folder}/{script}"], kit=kit, cwd=kit / folder)
            assert (done.returncode, done.stderr) == (0, ""), f"{folder}: {done.stdout}"
        assert ("score 0." in done.stdout) == (script == "local_evaluation.py"), done.stdout
    missing = [place for place in PLACES.split() if not (kit / place).is_file()]
    assert not missing

    # Predictions of the local split: the guide keeps them beside it, and they are found there.
    for task in (1, 2):
        valid = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
        place = kit / f"data/test_input/test_submission_task_{task}.csv"
        valid.to_csv(place, index=False)
        evaluate = [f"task_{task}/local_evaluation.py"]
        assert run_process(evaluate, kit=kit).stdout.startswith("score 1.0000 ")
        assert (kit / f"data/test_output/scores_task_{task}.txt").read_text() == "score:1.0\n"
        # Of two, the newer one counts.
        newer = kit / "data/test_output" / place.name
        column = {1: "IsCorrect", 2: "AnswerValue"}[task]
        valid.assign(**{column: 1}).to_csv(newer, index=False)
        assert "score 1.0000" not in run_process(evaluate, kit=kit).stdout
        shutil.move(place, kit / "elsewhere.csv")
        shutil.copy(kit / "elsewhere.csv", place)
        assert run_process(evaluate, kit=kit).stdout.startswith("score 1.0000 ")
