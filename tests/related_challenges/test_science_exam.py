"""Science exam: the metric by known answers, an evaluation by hand, models, no leak."""

import argparse
from importlib import import_module
from pathlib import Path

from common.errors import InputError

import numpy as np
import pandas as pd
import pytest
from conftest import Write, run, succeeds
from question_files import Kits, evaluation, last_record, page_in, scores_in
from sample_blocks import needs_blocks

exam = import_module("exam")

FOLDER = "related_challenges/science_exam"
HEADER = "id,prompt,A,B,C,D,E,answer\n"


def test_writes_the_three_highest_scores(tmp_path: Path) -> None:
    questions = pd.DataFrame({"id": ["7", "x"]})
    options = argparse.Namespace(output_dir=tmp_path, output_file="mine.csv", local=False)
    exam.write_predictions(options, questions, np.array([[0, 2, 1, 2, 3], [1, 1, 1, 1, 1.0]]))
    assert (tmp_path / "mine.csv").read_text() == "id,prediction\n7,E B D\nx,A B C\n"
    wrong = np.array([[0, 2, 1, 2, np.nan], [1, 1, 1, 1, 1]])
    with pytest.raises(InputError, match="1 NaN"):
        exam.write_predictions(options, questions, wrong)


def test_an_evaluation_by_hand(write: Write) -> None:
    """Places, interval and what counts too much are printed, on the page and in the record."""
    rows = (f"{n},Which?,a,b,c,d,e,{answer}\n" for n, answer in enumerate("ABEECEAA"))
    folder = write("train.csv", HEADER + "".join(rows)).parent
    guesses = "1,A C D B\n0,C A B D E\n3,A B E\n2,B E A\n4,\n5,A A E\n6,A A B\n7,A\n"
    write("submission.csv", f"id,prediction\n{guesses}")
    done = run(evaluation("science_exam", folder))
    odd = ("2 {} hold more than 3 labels; only the first 3 count", "1 {} hold no label and score 0")
    assert done.stderr == "".join(f"warning: {told.format('predictions')}\n" for told in odd)
    given = [folder / "submission.csv", "--input_dir", folder, "--test_data", "train.csv"]
    checked = run([f"{FOLDER}/check_submission.py", *given]).stdout
    assert checked.splitlines()[-2:] == [told.format("rows") for told in odd]
    # A wrong label that is repeated takes up a place, the right one scores once.
    points = np.array([1 / 2, 0, 1 / 2, 1 / 3, 0, 1 / 3, 1, 1])
    margin = 1.96 * points.std(ddof=1) / 8**0.5
    low, high = points.mean() - margin, points.mean() + margin
    shown = f"{low:.4f} to {high:.4f}"
    assert f"score 0.4583, 95 % interval {shown} (MAP@3 on 8 questions" in done.stdout
    expected = {"score": 11 / 24, "interval_low": low, "interval_high": high}
    assert scores_in(folder) == pytest.approx(expected)
    assert last_record(folder)["score"] == pytest.approx(11 / 24)
    assert page_in(folder).tables[0].rows[2:] == [
        ["Questions", "8"],
        ["95 % interval", shown],
        ["Right answer in place 1", "25.0%"],
        ["Right answer in place 2", "25.0%"],
        ["Right answer in place 3", "25.0%"],
        ["Random guesses score", "0.3667"],
    ]


def predict(folder: Path, model: str, train: list[str], test: list[str], *flags: object) -> str:
    """Let a model learn from lines of questions; return what it writes for others."""
    for name, lines in (("train", train), ("test", test)):
        (folder / f"{name}.csv").write_text("\n".join([HEADER.strip(), *lines]))
    own = ["--input_dir", folder, "--output_dir", folder, *flags]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *own])
    return (folder / "submission.csv").read_text()


@pytest.fixture
def lines(challenge_kit: Kits) -> list[str]:
    """Return the lines of the sample's questions."""
    path = challenge_kit("science_exam") / FOLDER / "data/train_data/train.csv"
    return path.read_text().splitlines()[1:]


@needs_blocks(f"{FOLDER}/sample_model_ranker.py", f"{FOLDER}/sample_model_ensemble.py")
@pytest.mark.parametrize("model", ["ranker", "ensemble"])
def test_no_model_has_seen_what_it_predicts(model: str, lines: list[str], tmp_path: Path) -> None:
    """One question stands in the file fifty times: its prediction rests on the others' answers."""
    found = []
    for own, others in (("A", "A"), ("E", "A"), ("A", "E")):
        copies = [f"x{number},{lines[0].partition(',')[2][:-1]}{own}" for number in range(50)]
        rest = [f"{line[:-1]}{others}" for line in lines[1:21]]
        found.append(predict(tmp_path, model, copies + rest, copies[:1]))
    assert found[0] == found[1] != found[2]


@needs_blocks(f"{FOLDER}/sample_model_ranker.py", f"{FOLDER}/sample_model_ensemble.py")
def test_a_seed_of_folds_and_each_member_have_an_effect(lines: list[str], tmp_path: Path) -> None:
    first, others = lines[:24], lines[24:48]
    of_seeds = [predict(tmp_path, "ranker", first, first, "--seed", seed) for seed in (0, 1)]
    assert of_seeds[0] != of_seeds[1]
    # One model, of all of the first questions, predicts the others.
    choices = [["--members", "length", *more] for more in ([], ["overlap"], ["cosine"], ["words"])]
    found = {predict(tmp_path, "ensemble", first, others, *members) for members in choices}
    assert len(found) == len(choices)


def test_real_questions(real_data: Path, tmp_path: Path) -> None:
    given = ["--input_dir", real_data / "related/llm_science_exam"]
    for model, score in (("constant", 0.3783), ("longest_option", 0.5825), ("tfidf", 0.2967)):
        succeeds([f"{FOLDER}/sample_model_{model}.py", *given, "--output_dir", tmp_path])
        succeeds(evaluation("science_exam", tmp_path, *given))
        assert scores_in(tmp_path)["score"] == pytest.approx(score, abs=1e-4)
