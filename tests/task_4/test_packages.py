"""What every package of task 4 promises: training, scoring, the zip, the published evaluators."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run
from run_scripts import ROOT
from task_4_models import load_package

from common.adaptive.game import LocalEntry, Rules, play, read_reference
from common.source_code import load_module

Succeeds = Callable[..., str]
Fails = Callable[..., str]
ScoreOf = Callable[[str], float]
# For each package its weights, and by how much it beats the most popular answer at least.
PACKAGES = {
    "numpy": ({"model_task_4_most_popular.npy", "model_task_4_num_answers.npy"}, 0.0),
    "item_response": ({"model_task_4_item_response.npz"}, 0.02),
    "pytorch": ({"model_task_4_partial_vae.pt"}, 0.01),
}
CODE = {"model.py", "submission_model_task_4.py"}
RECORDS = {"model_task_4_students.npy", "model_task_4_training.json"}
every_package = pytest.mark.parametrize("name", PACKAGES)

# Written as the published evaluators are: both arrays 0 where nothing is known, `select_feature`,
# targets may be asked, loops over students. It runs in the unpacked zip, without the kit.
LOOP = """
import sys
import numpy as np
import pandas as pd

sys.modules['common'] = None
sys.path.insert(0, '')
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


def read_score(folder: Path) -> float:
    return float((folder / "scores_task_4.txt").read_text().removeprefix("score:"))


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit in which `score_of` trains packages."""
    return Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("packages") / "kit"))


@pytest.fixture(scope="module")
def score_of(kit: Path, succeeds: Succeeds) -> ScoreOf:
    """Train a package on the local split and score it, the first time that it is asked for."""

    @cache
    def train(name: str) -> float:
        printed = succeeds([f"task_4/{name}/train_model.py", "--local"], kit=kit)
        assert re.fullmatch(r"trained on \d,\d{3} answers, 80 questions\n", printed)
        evaluate = [f"task_4/{name}/local_evaluation.py", "--skip_curve"]
        printed = succeeds([*evaluate, "--output_dir", kit / name], kit=kit)
        score = read_score(kit / name)
        assert f"score {score:.4f} (one mask, targets may not be asked, " in printed
        return score

    return train


@every_package
def test_the_score_beats_the_most_popular_answer(score_of: ScoreOf, name: str) -> None:
    _, lead = PACKAGES[name]
    assert score_of(name) >= score_of("numpy") + lead


@every_package
def test_the_zip_plays_in_the_published_loop_with_the_same_score(
    kit: Path, score_of: ScoreOf, run: Run, succeeds: Succeeds, tmp_path: Path, name: str
) -> None:
    weights, _ = PACKAGES[name]
    score_of(name)
    pack = ["task_4/package.py", kit / "task_4" / name, "--output_dir", tmp_path]
    assert run(pack, kit=kit).returncode == 0
    path = tmp_path / "submission_task_4.zip"
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == CODE | RECORDS | weights
        archive.extractall(tmp_path / "empty")
    evaluate = ["task_4/local_evaluation.py", path, "--skip_curve", "--output_dir", tmp_path]
    printed = succeeds([*evaluate, "--unobserved", "0", "--targets_queryable"], kit=kit)
    assert "(one mask, targets may be asked, unobserved = 0)" in printed
    done = subprocess.run(
        [sys.executable, "-I", "-c", LOOP, str(kit / "data/test_input/valid_task_4.csv"), "80"],
        cwd=tmp_path / "empty", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == read_score(tmp_path)


def test_the_template_has_both_names() -> None:
    entry = load_module(ROOT / "submission_templates/submission_model_task_4.py", "template")
    assert entry.Submission.select_feature is entry.Submission.select_questions


@every_package
def test_training(kit: Path, succeeds: Succeeds, fails: Fails, tmp_path: Path, name: str) -> None:
    """QuestionId, UserId, IsCorrect are enough; a second file must hold other students."""
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    answers = answers[["QuestionId", "UserId", "IsCorrect"]]
    parts = np.array_split(answers.UserId.unique()[:60], 2)
    first, second = (answers[answers.UserId.isin(part)] for part in parts)
    first.to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    package = Path(shutil.copytree(kit / "task_4" / name, tmp_path / "package"))
    script = [package / "train_model.py", "--input_dir", tmp_path, "--train_data", "first.csv"]

    def train(*flags: object) -> tuple[str, list[bytes]]:
        printed = succeeds([*script, *flags], kit=kit)
        return printed, [(package / weights).read_bytes() for weights in sorted(PACKAGES[name][0])]

    _, weights = train()
    if name == "pytorch":
        assert train("--seed", 1)[1] != weights
    printed, of_both = train("--more_train_data", "second.csv")
    n_questions = pd.concat([first, second]).QuestionId.max() + 1
    assert f"trained on {len(first) + len(second):,} answers, {n_questions} questions" in printed
    assert "replaced weights that were trained on other students (30)" in printed
    assert set(np.load(package / "model_task_4_students.npy")) == {*parts[0], *parts[1]}
    assert of_both != weights
    # Bit by bit.
    assert train()[1] == weights

    pd.concat([second, first.iloc[[0]]]).to_csv(tmp_path / "second.csv", index=False)
    message = fails([*script, "--more_train_data", "second.csv"], kit=kit)
    known = f"UserId {first.UserId.iloc[0]} appears in another training file"
    assert "second.csv: " in message and known in message


@pytest.mark.parametrize("targets_queryable", [False, True])
@pytest.mark.parametrize("name", ["item_response", "pytorch"])
def test_both_readings_of_unobserved_are_learned_alike(
    kit: Path, score_of: ScoreOf, name: str, targets_queryable: bool
) -> None:
    """Without options too, where 0 means a wrong answer as well as one not revealed."""
    score_of(name)
    model, submission = load_package(name, "submission_model_task_4")
    weights = model.Model.load(kit / "task_4" / name)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", 80)
    games = []
    for option in (reference.option, np.full_like(reference.option, -1)):
        for unobserved in (-1, 0):
            rules = Rules(targets_queryable=targets_queryable, unobserved=unobserved)
            entry = LocalEntry(submission.Submission(weights))
            games.append(play(entry, replace(reference, option=option), "IsTarget", rules))
    for game in games[1:]:
        assert np.array_equal(game.chosen, games[0].chosen)
        assert np.array_equal(game.prediction, games[0].prediction)
    # A target that was asked is predicted as it was answered.
    row, target = np.nonzero(reference.targets["IsTarget"])
    asked = (games[0].chosen[row] == target[:, None]).any(axis=1)
    assert asked.any() == targets_queryable
    assert np.array_equal(games[0].prediction[asked], games[0].truth[asked])
