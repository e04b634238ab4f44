"""Every package of task 4 plays in a loop as the published evaluators have it, scored alike."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run_python

# Written as the published evaluators are: both arrays 0 where nothing is known, `select_feature`,
# targets may be asked, loops over students. It runs in the package's folder, without the kit.
LOOP = """
import sys
import numpy as np
import pandas as pd

sys.path.insert(0, '.')
from submission_model_task_4 import Submission

answers = pd.read_csv(sys.argv[1])
n_questions = int(sys.argv[2])
students = sorted(answers.UserId.unique())
data, binary_data, targets, can_query = np.zeros((4, len(students), n_questions), int)
for answer in answers.itertuples():
    i, j = students.index(answer.UserId), answer.QuestionId
    data[i, j], binary_data[i, j] = answer.AnswerValue, answer.IsCorrect
    targets[i, j], can_query[i, j] = answer.IsTarget, 1

masked_data, masked_binary_data = np.zeros_like(data), np.zeros_like(data)
submission = Submission()
for step in range(10):
    next_questions = submission.select_feature(masked_data, masked_binary_data, can_query)
    for i in range(len(students)):
        j = next_questions[i]
        assert can_query[i, j] == 1
        can_query[i, j] = 0
        masked_data[i, j] = data[i, j]
        masked_binary_data[i, j] = binary_data[i, j]
    submission.update_model(masked_data, masked_binary_data, can_query)
preds = submission.predict(masked_data, masked_binary_data)
print(repr(float(np.mean(preds[targets == 1] == binary_data[targets == 1]))))
"""


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("published") / "kit"))
    done = run_python(["task_4/local_data_split.py"], kit=kit)
    assert done.returncode == 0, done.stderr
    return kit


def run(kit: Path, *command: object) -> str:
    done = run_python(command, kit=kit)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["numpy", "item_response", "pytorch"])
def test_packages_play_there_with_the_same_score(kit: Path, tmp_path: Path, name: str) -> None:
    package = kit / "task_4" / name
    run(kit, package / "train_model.py", "--local")
    reading = ["--unobserved", "0", "--targets_queryable", "--skip_curve"]
    run(kit, package / "local_evaluation.py", *reading, "--output_dir", tmp_path)
    score = (tmp_path / "scores_task_4.txt").read_text().removeprefix("score:").strip()

    page = (tmp_path / "scores_task_4.html").read_text()
    n_questions = page.partition("Questions (columns)")[2].partition("<td>")[2].partition("<")[0]
    done = subprocess.run(
        [sys.executable, "-c", LOOP, str(kit / "data/test_input/valid_task_4.csv"), n_questions],
        cwd=package, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == score


def test_the_template_has_both_names() -> None:
    path = ROOT / "submission_templates/submission_model_task_4.py"
    code = "import submission_model_task_4 as s; print(s.Submission.select_feature is "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}s.Submission.select_questions)"],
        cwd=path.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "True", done.stderr
