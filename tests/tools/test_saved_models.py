"""Tools take a model that a sample has written, if it was fitted to the same answers."""

import re
from pathlib import Path

from common.item_response import DEFAULT_DIMENSIONS, ItemResponse

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from page_reading import read_page

SAMPLE = "task_{}/sample_model_item_response.py"
MASTERY = ["-m", "tools.mastery", "--tasks", "1/2", "--model", "model.npz"]
STATISTICS = ["-m", "tools.question_statistics", "--tasks", "1/2", "--group", "none"]
OUTPUT = "data/test_output"


@pytest.mark.parametrize("task", [1, 2])
def test_mastery_follows_from_the_model_of_a_sample(task: int, tiny_kit: Path) -> None:
    """The item response sample saves its model, and the tool for mastery reads this model.

    The model has no effects of subjects. So the tool estimates the mastery of a subject from
    abilities alone, and says so on its page.
    """
    script = SAMPLE.format(task)
    printed = succeeds([script, "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    assert printed.startswith("written: model.npz (the fitted model)\n")

    succeeds(MASTERY, kit=tiny_kit, cwd=tiny_kit)

    # `Share` is the share of right answers that is expected of a student in a subject.
    table = pd.read_csv(tiny_kit / OUTPUT / "mastery.csv")
    assert table["Share"].between(table["Low"], table["High"]).all()
    # Students with more right answers are expected to know more, in the subjects of level 1.
    answers = pd.read_csv(tiny_kit / "data/train_data/train_task_1_2.csv")
    share_right = answers.groupby("UserId")["IsCorrect"].mean()
    expected_share = table[table["Level"] == 1].groupby("UserId")["Share"].mean()
    assert share_right.loc[expected_share.index].corr(expected_share) > 0.7

    page = (tiny_kit / OUTPUT / "mastery.html").read_text(encoding="utf-8")
    assert f"model.npz, written by python {script} --save_model model.npz" in page
    assert "From simulated answers." in page
    assert "The model has no effects of subjects" in page
    # This raises an error if the page is not well formed.
    read_page(page)


def test_statistics_of_a_saved_model_are_those_of_the_fit(tiny_kit: Path) -> None:
    save = ["--save_model", "model.npz"]
    printed = succeeds([*STATISTICS, *save], kit=tiny_kit, cwd=tiny_kit)
    assert printed.startswith("written: model.npz (the fitted model)\n")
    first = (tiny_kit / OUTPUT / "questions.csv").read_bytes()
    (tiny_kit / OUTPUT / "questions.csv").unlink()
    succeeds([*STATISTICS, "--model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    assert (tiny_kit / OUTPUT / "questions.csv").read_bytes() == first


def test_statistics_do_not_keep_the_effects_of_quizzes(tiny_kit: Path) -> None:
    succeeds(STATISTICS, kit=tiny_kit, cwd=tiny_kit)
    first = pd.read_csv(tiny_kit / OUTPUT / "questions.csv")
    succeeds([SAMPLE.format(1), "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    succeeds([*STATISTICS, "--model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    second = pd.read_csv(tiny_kit / OUTPUT / "questions.csv")
    is_estimated = first["difficulty"].notna()
    assert first.loc[is_estimated, "difficulty"].corr(second["difficulty"]) > 0.98


def test_a_saved_model_predicts_new_students(tiny_kit: Path) -> None:
    succeeds([SAMPLE.format(1), "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    model = ItemResponse.load(tiny_kit / "model.npz").without_contexts()
    questions = model.question_ids_[:20]
    able = model.ability_of(questions, np.ones(20, int))
    weak = model.ability_of(questions, np.zeros(20, int))
    # An ability has several dimensions. The discrimination of a question is the direction in which
    # a growing ability raises P(right) most. Take the mean direction over the questions.
    direction = model.discrimination_.mean(axis=0)
    assert able.mean[0] @ direction > weak.mean[0] @ direction


def reverse_training_answers(kit: Path) -> None:
    """Change the file of training answers: write its rows in the opposite order."""
    path = kit / "data/train_data/train_task_1_2.csv"
    answers = pd.read_csv(path)
    answers.iloc[::-1].to_csv(path, index=False)


def save_without_record(model: Path) -> None:
    """Save a model again, without the record of the answers to which it was fitted."""
    ItemResponse.load(model).save(model)


def test_models_of_other_answers_are_refused(tiny_kit: Path) -> None:
    """A tool takes a saved model only if the model was fitted to the answers that the tool reads.

    The model of this test was fitted to the training answers of tasks 1 and 2. The tool refuses the
    model in four cases: for the answers of tasks 3 and 4, if the file of the model does not say to
    which answers it was fitted, if the file is cut off, and after the answers have changed.
    """
    succeeds([SAMPLE.format(1), "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    model_file = tiny_kit / "model.npz"
    model = model_file.read_bytes()

    message = fails([*MASTERY, "--tasks", "3/4"], kit=tiny_kit, cwd=tiny_kit)
    assert re.search(r"model.npz: was not fitted to .*train_task_3_4.csv, or that has", message)

    save_without_record(model_file)
    message = fails(MASTERY, kit=tiny_kit, cwd=tiny_kit)
    assert "model.npz: does not say to which answers it was fitted" in message

    without_end = model[:-100]
    model_file.write_bytes(without_end)
    message = fails(MASTERY, kit=tiny_kit, cwd=tiny_kit)
    assert "model.npz: cannot be read" in message

    model_file.write_bytes(model)
    reverse_training_answers(tiny_kit)
    message = fails(MASTERY, kit=tiny_kit, cwd=tiny_kit)
    assert re.search(
        r"model.npz: was not fitted to .*train_task_1_2.csv, or that has changed since; it was "
        r"written by `python task_1/sample_model_item_response.py --save_model model.npz`",
        message,
    )

    # The tool has refused the model four times, and has never written a table.
    assert not (tiny_kit / OUTPUT / "mastery.csv").exists()


def test_a_model_is_not_written_over_an_input(tiny_kit: Path) -> None:
    train = "data/train_data/train_task_1_2.csv"
    message = fails([SAMPLE.format(1), "--save_model", train], kit=tiny_kit, cwd=tiny_kit)
    assert "is an input data file and would be overwritten" in message


@pytest.mark.parametrize("tool", [MASTERY, [*STATISTICS, "--model", "model.npz"]])
@pytest.mark.parametrize("setting", ["--dimensions", "--seed"])
def test_settings_of_a_fit_are_refused_beside_a_model(
    tiny_kit: Path, tool: list[str], setting: str
) -> None:
    message = fails([*tool, setting, "3"], kit=tiny_kit, cwd=tiny_kit)
    assert message == (
        f"{setting}: is a setting of a fit, but --model takes the place of a fit; leave out "
        f"{setting} or --model"
    )


def test_settings_of_a_fit_count_without_a_model(tiny_kit: Path) -> None:
    succeeds([*STATISTICS, "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    default = ItemResponse.load(tiny_kit / "model.npz")
    settings = ["--dimensions", "3", "--seed", "5"]
    succeeds([*STATISTICS, *settings, "--save_model", "model.npz"], kit=tiny_kit, cwd=tiny_kit)
    chosen = ItemResponse.load(tiny_kit / "model.npz")
    assert (default.n_dimensions, default.seed) == (DEFAULT_DIMENSIONS, 0)
    assert (chosen.n_dimensions, chosen.seed) == (3, 5)
