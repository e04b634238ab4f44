"""Student responses: the scripts, on few answers, on the sample and on real answers."""

import json
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from question_files import (
    FOLDER,
    TWO_ANSWERS,
    Check,
    Kits,
    Run,
    Write,
    evaluation,
    last_record,
    one_answer,
    page_in,
)

responses = import_module("responses")


def table_in(printed: str) -> dict[str, list[str]]:
    """Return the rows of a table by their first cells; cells are two spaces apart."""
    rows = (re.split("  +", line.strip()) for line in printed.splitlines() if "  " in line)
    return {name: " ".join(cells).split() for name, *cells in rows}


def test_an_evaluation_by_hand(write: Write, succeeds: Check, fails: Check, tmp_path: Path) -> None:
    """Predictions stand in rows; finer labels than the files tell are refused."""
    for name, second in (("a", "contradictory"), ("b", "incorrect")):
        write(f"xml/{name}.xml", TWO_ANSWERS.format(name, "correct", second))
    rows = "a.1,correct\na.2,correct\nb.1,contradictory\nb.2,contradictory\n"
    write("submission.csv", f"id,label\n{rows}")
    script = evaluation("student_response", tmp_path, "--input_dir", tmp_path / "xml")
    printed = succeeds(script)
    assert "score 0.1667 (macro F1 of 4 answers)\naccuracy 0.2500\n" in printed
    # Precision, recall and F1 are the same here.
    same = {
        "correct": 0.5, "contradictory": 0, "incorrect": 0,
        "macro average": 1 / 6, "micro average": 0.25, "corrective feedback": 0.5,
    }  # fmt: skip
    measures = {name: [f"{value:.4f}"] * 3 for name, value in same.items()}
    assert {name: table_in(printed)[name] for name in measures} == measures
    page = page_in(tmp_path)
    assert page.table("Micro").rows == [[name, *cells] for name, cells in measures.items()]
    confusion = page.table("Numbers of answers")
    assert confusion.columns == ["", "truly correct", "truly contradictory", "truly incorrect"]
    assert confusion.rows == [
        ["predicted correct", "1", "1", "0"],
        ["predicted contradictory", "1", "0", "1"],
        ["predicted incorrect", "0", "0", "0"],
    ]
    assert last_record(tmp_path)["rules"] == "3 labels"
    coarse = succeeds([*script, "--ways", "2"])
    assert "contradictory" not in coarse and "score 0.5000" in coarse
    assert last_record(tmp_path)["rules"] == "2 labels"
    assert "has only 3 labels" in fails([*script, "--ways", "5"])


def test_folds_keep_questions_and_modules_together(
    challenge_kit: Kits, write: Write, succeeds: Check, fails: Check, tmp_path: Path
) -> None:
    data = challenge_kit("student_response") / FOLDER / "data"
    lines = (data / "test_input/folds.csv").read_text().splitlines()[1:]  # By question.
    fold_of = {tuple(line.replace(".", ",").split(",")[::2]) for line in lines}
    assert len(fold_of) == len(list((data / "train_data").glob("*.xml")))

    for name, module in zip("abcd", "MNMO", strict=True):
        text = one_answer(name, f"{name}.1", "correct", module)
        write(f"test-unseen-domains/{name}.xml", text)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out", "--by_domain"]
    split = [f"{FOLDER}/local_data_split.py", *flags]
    succeeds([*split, "--folds", "3"])
    rows = (tmp_path / "out/folds.csv").read_text().split()[1:]
    fold = dict(row.split(",") for row in rows)
    assert fold["a.1"] == fold["c.1"]
    assert len(set(fold.values())) == 3
    made_from = json.loads((tmp_path / "out/folds.json").read_text())["made_from"]
    assert sorted(made_from) == [f"../test-unseen-domains/{name}.xml" for name in "abcd"]
    assert "--folds is 10, expected a whole number from 2 to 3" in fails(split)
    write("test-unseen-domains/d.xml", one_answer("d", "d.1", "correct", module=""))
    line = fails(split)
    assert "d.xml: <question> has no attribute 'module', which --by_domain needs" in line


def test_label_distribution(write: Write, succeeds: Check, tmp_path: Path) -> None:
    write("x/a.xml", TWO_ANSWERS.format("a", "correct", "irrelevant"))
    write("y/b.xml", TWO_ANSWERS.format("b", "correct", "incorrect"))
    write("y/c.xml", TWO_ANSWERS.format("c", "correct", "correct"))
    folders = [tmp_path / "x", tmp_path / "y"]
    rows = table_in(succeeds([f"{FOLDER}/label_distribution.py", "--input_dir", *folders]))
    assert rows["correct"] == ["1", "(50.0%)", "3", "(75.0%)"]
    assert rows["irrelevant"] == ["1", "(50.0%)"]
    assert rows["incorrect"] == ["1", "(25.0%)"]
    assert rows["non_domain"] == ["0", "(0.0%)"]
    assert (rows["answers"], rows["questions"]) == (["2", "4"], ["1", "2"])


def test_test_sets_are_predicted_and_scored(
    challenge_kit: Kits, succeeds: Check, tmp_path: Path
) -> None:
    kit = challenge_kit("student_response")
    data = kit / FOLDER / "data"
    # Two domains of seven, and no label in what is to be predicted.
    for path in data.glob("t*_data/**/D[05]-*.xml"):
        place = path.relative_to(data)
        for copy in (tmp_path / place, tmp_path / "unlabelled" / place):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        copy.write_text(re.sub(r' accuracy="\w+"', "", path.read_text()))
    flags = ["--train_dir", tmp_path / "train_data", "--output_dir", tmp_path]
    test = ["--test_dir", tmp_path / "unlabelled/test_data"]
    succeeds([f"{FOLDER}/sample_model_similarity_boosting.py", *flags, *test], kit=kit)
    sets = tmp_path / "sciEntsBank"
    (tmp_path / "test_data").rename(sets)
    printed = succeeds(evaluation("student_response", tmp_path, "--input_dir", sets), kit=kit)
    rows = [line.split() for line in printed.splitlines() if line.startswith("test-unseen")]
    assert [row[:2] for row in rows] == [
        [scenario, ways] for scenario in responses.SCENARIOS for ways in ("5", "3", "2")
    ]
    macro = [float(row[4]) for row in rows if row[1] == "5"]
    assert min(macro) > 0.5
    table = page_in(tmp_path).table("SemEval").rows
    assert [row for row in table if row[0] in responses.SCENARIOS] == rows
    # Beside them what is published of this corpus.
    best = [["best [3]", "5", "", "", published, ""] for published in ("0.581", "0.384", "0.375")]
    assert [table[table.index(row) + 1] for row in rows if row[1] == "5"] == best
    line = last_record(tmp_path)
    assert line["rules"] == "5 labels, mean of test sets"
    assert line["score"] == pytest.approx(sum(macro) / 3, abs=1e-4)


@pytest.mark.parametrize("name", ["lexical_similarity", "word_svm", "similarity_boosting"])
def test_few_answers_to_learn_from(
    name: str, write: Write, run: Run, fails: Check, tmp_path: Path
) -> None:
    """Five of the most frequent label suffice, beside one of another."""
    write("test/t.xml", one_answer("R", "t.1"))
    answer = '<studentAnswer id="{}" accuracy="correct">it is lit</studentAnswer>'
    script: list[object] = [f"{FOLDER}/sample_model_{name}.py", "--output_dir", tmp_path]
    script += ["--train_dir", tmp_path / "train"]
    assert "--train_dir needs --test_dir" in fails(script)
    script += ["--test_dir", tmp_path / "test"]
    for n_correct, other, message in (
        (4, "incorrect", "of 5 answers to learn from only 4 are 'correct', the most frequ"),
        (5, "correct", "all 6 answers to learn from are 'correct', expected at least two"),
        (5, "incorrect", ""),
    ):
        own = "".join(answer.format(number) for number in range(n_correct))
        text = one_answer("Q", "t.2", other)
        write("train/t.xml", text.replace("</studentAnswers>", f"{own}</studentAnswers>"))
        if message:
            assert f"train: {message}" in fails(script)
            assert not (tmp_path / "submission.csv").exists()
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "submission.csv").read_text().startswith("id,label\nt.1,")


def test_one_label_for_every_answer(
    challenge_kit: Kits, succeeds: Check, fails: Check, tmp_path: Path
) -> None:
    kit = challenge_kit("student_response")
    script = [f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, "--label"]
    assert "--label is 'wrong', expected one of correct, partially" in fails(
        [*script, "wrong"], kit=kit
    )
    succeeds([*script, "irrelevant"], kit=kit)
    rows = (tmp_path / "submission.csv").read_text().splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"irrelevant"}


def test_real_answers(real_data: Path, tmp_path: Path, succeeds: Check) -> None:
    related = real_data / "related/student_response"
    beetle, sciences = related / "beetle_5way/train/Core", related / "sciEntsBank_3way/train"
    flags = ["--input_dir", beetle, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    model = f"{FOLDER}/sample_model_majority.py"
    succeeds([model, *flags, "--submission_template_dir", tmp_path])
    printed = succeeds(evaluation("student_response", tmp_path, "--input_dir", beetle))
    assert "accuracy 0.4225" in printed
    assert "score 0.1188 (macro F1 of 3,941 answers)" in printed

    other = ["--train_dir", beetle, "--test_dir", sciences, "--output_dir", tmp_path]
    assert "4,969 rows" in succeeds([model, *other])

    flags = ["--input_dir", beetle, sciences]
    rows = table_in(succeeds([f"{FOLDER}/label_distribution.py", *flags]))
    assert (rows["answers"], rows["questions"]) == (["3,941", "4,969"], ["47", "135"])
    assert rows["modules"] == ["3", "12"]
    assert rows["contradictory"] == ["1,049", "(26.6%)", "499", "(10.0%)"]
