"""Student responses: the scripts, on bad input, on the sample and on real answers."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from question_files import FOLDER, ONE_ANSWER, TWO_ANSWERS, Write

from common.scores import results

grading_measures = import_module("grading_measures")
responses = import_module("responses")


def test_refuses_an_empty_folder(fails: Callable[..., str], tmp_path: Path) -> None:
    line = fails([f"{FOLDER}/local_data_split.py", "--input_dir", tmp_path])
    assert "file not found" in line


def test_refuses_finer_labels_than_the_files_tell(write: Write, fails: Callable[..., str]) -> None:
    folder = write("a.xml", TWO_ANSWERS.format("a", "correct", "incorrect")).parent
    line = fails([f"{FOLDER}/local_evaluation.py", "--input_dir", folder, "--ways", "5"])
    assert "has only 2 labels" in line


def test_folds_by_domain_keep_modules_together(
    write: Write, succeeds: Callable[..., str], fails: Callable[..., str], tmp_path: Path
) -> None:
    for name, module in (("a", "M"), ("b", "N"), ("c", "M"), ("d", "O")):
        text = ONE_ANSWER.format(name, module, f"{name}.1", ' accuracy="correct"')
        write(f"test-unseen-domains/{name}.xml", text)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out", "--by_domain"]
    succeeds([f"{FOLDER}/local_data_split.py", *flags, "--folds", "3"])
    rows = (tmp_path / "out/folds.csv").read_text().split()[1:]
    fold = dict(row.split(",") for row in rows)
    assert fold["a.1"] == fold["c.1"]
    assert len(set(fold.values())) == 3
    made_from = json.loads((tmp_path / "out/folds.json").read_text())["made_from"]
    assert sorted(made_from) == [f"../test-unseen-domains/{name}.xml" for name in "abcd"]
    line = fails([f"{FOLDER}/local_data_split.py", *flags])
    assert "--folds is 10, expected a whole number from 2 to 3" in line
    write("test-unseen-domains/d.xml", ONE_ANSWER.format("d", "", "d.1", ' accuracy="correct"'))
    line = fails([f"{FOLDER}/local_data_split.py", *flags])
    assert "d.xml: <question> has no attribute 'module', which --by_domain needs" in line


def test_label_distribution(write: Write, succeeds: Callable[..., str], tmp_path: Path) -> None:
    write("x/a.xml", TWO_ANSWERS.format("a", "correct", "irrelevant"))
    write("y/b.xml", TWO_ANSWERS.format("b", "correct", "incorrect"))
    printed = succeeds(
        [f"{FOLDER}/label_distribution.py", "--input_dir", tmp_path / "x", tmp_path / "y"]
    )
    rows = {line.split("  ")[0]: line.split()[1:] for line in printed.splitlines()[1:]}
    assert rows["correct"] == ["1", "(50.0%)", "1", "(50.0%)"]
    assert rows["irrelevant"] == rows["incorrect"] == ["1", "(50.0%)"]
    assert rows["non_domain"] == ["0", "(0.0%)"]
    assert rows["questions"] == ["1", "1"]


def test_test_sets_are_predicted_and_scored(
    challenge_kit: Callable[[str], Path], succeeds: Callable[..., str], tmp_path: Path
) -> None:
    kit = challenge_kit("student_response")
    data = kit / FOLDER / "data"
    # Three domains of seven, and no label in what is to be predicted.
    for path in data.glob("t*_data/**/D[015]-*.xml"):
        place = path.relative_to(data)
        for copy in (tmp_path / place, tmp_path / "unlabelled" / place):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        copy.write_text(re.sub(r' accuracy="\w+"', "", path.read_text()))
    flags = ["--train_dir", tmp_path / "train_data", "--output_dir", tmp_path]
    test = ["--test_dir", tmp_path / "unlabelled/test_data"]
    succeeds([f"{FOLDER}/sample_model_similarity_boosting.py", *flags, *test], kit=kit)
    flags = ["--submission_dir", tmp_path, "--output_dir", tmp_path]
    scored = [f"{FOLDER}/local_evaluation.py", *flags, "--input_dir"]
    printed = succeeds([*scored, tmp_path / "test_data"], kit=kit)
    rows = [line.split() for line in printed.splitlines() if line.startswith("test-unseen")]
    assert [row[:2] for row in rows] == [
        [scenario, ways] for scenario in responses.SCENARIOS for ways in ("5", "3", "2")
    ]
    macro = [float(row[4]) for row in rows if row[1] == "5"]
    assert min(macro) > 0.5
    text = (tmp_path / "scores_student_response.txt").read_text()
    assert float(text.removeprefix("score:")) == pytest.approx(np.mean(macro), abs=1e-4)
    recorded = results.read_results(tmp_path / "results.jsonl")[0][-1]
    assert recorded.rules == "5 labels, mean of test sets"
    page = (tmp_path / "scores_student_response.html").read_text()
    assert page.count("test-unseen-domains") >= 3


def test_scripts(
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    kit = challenge_kit("student_response")
    data = kit / FOLDER / "data"
    succeeds([f"{FOLDER}/local_data_split.py", "--folds", "3", "--by_question"], kit=kit)
    lines = (data / "test_input/folds.csv").read_text().splitlines()[1:]
    fold_of = {tuple(line.replace(".", ",").split(",")[::2]) for line in lines}
    assert len(fold_of) == len(list((data / "train_data").glob("*.xml")))

    answers = responses.read_responses(data / "train_data")
    f1 = {}
    for model in ("majority", "lexical_similarity", "word_svm"):
        succeeds([f"{FOLDER}/sample_model_{model}.py"], kit=kit)
        predicted = responses.read_predictions(data / "test_output/submission.csv", answers)
        gold = [answers.labels[number] for number in answers.label]
        counts = grading_measures.count(gold, predicted, answers.labels)
        f1[model] = grading_measures.evaluate(counts).macro[2]
    done = run([f"{FOLDER}/local_evaluation.py"], kit=kit)  # In a process of its own, as users do.
    assert f"score {f1['word_svm']:.4f}" in done.stdout
    text = (data / "test_output/scores_student_response.txt").read_text()
    assert float(text.removeprefix("score:")) == pytest.approx(f1["word_svm"])
    assert f1["majority"] < 0.15
    assert f1["lexical_similarity"] > 0.5
    assert f1["word_svm"] > 0.5
    coarse = succeeds([f"{FOLDER}/local_evaluation.py", "--ways", "2"], kit=kit)
    assert "contradictory" not in coarse


def test_real_answers(real_data: Path, tmp_path: Path, succeeds: Callable[..., str]) -> None:
    folder = real_data / "related/student_response/beetle_5way/train/Core"
    flags = ["--input_dir", folder, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    template = ["--submission_template_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_majority.py", *flags, *template])
    printed = succeeds([f"{FOLDER}/local_evaluation.py", *flags, "--submission_dir", tmp_path])
    assert "accuracy 0.4225" in printed
    assert "score 0.1188 (macro F1 of 3,941 answers)" in printed


def test_real_label_distribution(real_data: Path, succeeds: Callable[..., str]) -> None:
    folder = real_data / "related/student_response"
    folders = [folder / "beetle_5way/train/Core", folder / "sciEntsBank_3way/train"]
    printed = succeeds([f"{FOLDER}/label_distribution.py", "--input_dir", *folders])
    rows = {line.split("  ")[0]: line.split()[1:] for line in printed.splitlines()[1:]}
    assert rows["answers"] == ["3,941", "4,969"]
    assert rows["questions"] == ["47", "135"]
    assert rows["modules"] == ["3", "12"]
    assert rows["contradictory"] == ["1,049", "(26.6%)", "499", "(10.0%)"]


def test_real_answers_of_another_corpus(
    real_data: Path, tmp_path: Path, succeeds: Callable[..., str]
) -> None:
    folder = real_data / "related/student_response"
    flags = ["--train_dir", folder / "beetle_5way/train/Core", "--output_dir", tmp_path]
    test = ["--test_dir", folder / "sciEntsBank_3way/train"]
    printed = succeeds([f"{FOLDER}/sample_model_majority.py", *flags, *test])
    assert "4,969 rows" in printed
