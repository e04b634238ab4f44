"""Student response analysis: annotations become labels, and answers training and test sets."""

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from common import fingerprints
from common.errors import InputError

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, succeeds
from question_files import Kits, evaluation, last_record, question_file

annotations = import_module("annotations")
prepare = import_module("prepare")
responses = import_module("responses")

FOLDER = "related_challenges/student_response"
HEADER = "id,annotator,facet,label\n"


def read_labels(write: Write, rows: str, n_answers: int = 2) -> Any:
    """Return the labels that the rows of an annotation file give to answers a.1, a.2 and so on."""
    ids = {f"a.{number}": "" for number in range(1, n_answers + 1)}
    folder = write("in/a.xml", question_file("a", ids, ["it is"] * n_answers)).parent
    answers = responses.read_responses(folder, labels="ignored")
    return annotations.read_labels(write("annotations.csv", HEADER + rows), answers)


# ---- From annotations to labels --------------------------------------------------------------


def test_every_label_but_one_of_the_five_has_a_rule_in_both_schemes() -> None:
    """Facets do not tell that an answer is outside the domain."""
    assert set(annotations.DEMAND.values()) == set(responses.LABEL_SETS[5])
    findings = (annotations.UNDERSTOOD, annotations.CONTRADICTED, annotations.NOT_ADDRESSED)
    assert set(annotations.FACETS.values()) == {*findings, annotations.ASSUMED}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("correct", "correct"),
        ("pc_some_missing", "partially_correct_incomplete"),
        ("pc_some_error", "contradictory"),
        ("pc_error_missing", "contradictory"),
        ("incorrect", "contradictory"),
        ("irrelevant", "irrelevant"),
        ("metacognitive", "non_domain"),
        ("social", "non_domain"),
    ],
)
def test_demand_labels_become_labels(write: Write, label: str, expected: str) -> None:
    labels = read_labels(write, f"a.1,x,,{label}\n", n_answers=1)
    assert labels["x"].tolist() == [expected]


@pytest.mark.parametrize(
    ("facets", "expected"),
    [
        ("Expressed", "correct"),
        ("Expressed Inferred Assumed", "correct"),
        ("Expressed Unaddressed", "partially_correct_incomplete"),
        ("Inferred Diff-Arg Assumed", "partially_correct_incomplete"),
        # A facet that the question states is not an achievement of the answer.
        ("Assumed Unaddressed", "irrelevant"),
        ("Diff-Arg Unaddressed", "irrelevant"),
        # A contradiction counts more than anything else.
        ("Expressed Contra-Expr", "contradictory"),
        ("Unaddressed Contra-Infr", "contradictory"),
        ("Expressed Expressed Self-Contra", "contradictory"),
    ],
)
def test_facets_become_labels(write: Write, facets: str, expected: str) -> None:
    rows = [f"a.1,x,facet {n},{label}\n" for n, label in enumerate(facets.split())]
    assert read_labels(write, "".join(rows), n_answers=1)["x"].tolist() == [expected]


def test_each_annotator_has_a_column_in_the_order_of_the_file(write: Write) -> None:
    rows = "a.2,zoe,,social\na.2,adam,f,Inferred\na.2,adam,g,Unaddressed\na.1,zoe,f,Expressed\n"
    labels = read_labels(write, rows)
    assert labels.index.tolist() == ["a.1", "a.2"]
    assert labels.columns.tolist() == ["zoe", "adam"]
    assert labels["zoe"].tolist() == ["correct", "non_domain"]
    assert labels["adam"].isna().tolist() == [True, False]
    assert labels["adam"]["a.2"] == "partially_correct_incomplete"


ONE_VIEW = "expected either one row without facet or one row for each facet, from each annotator"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a.1,x,,correct\nb.1,x,,correct\n", "column 'id': row 3 is 'b.1', expected the id of an"),
        ("a.1,x,,Expressed\n", "column 'label': row 2 is 'Expressed', expected one of correct, pc"),
        ("a.1,x,f,correct\n", "column 'label': row 2 is 'correct', expected one of Assumed, Expr"),
        ("a.1,x,,correct\na.1,x,,irrelevant\n", f"row 2 is 'a.1'; row 3 is 'a.1', {ONE_VIEW}"),
        ("a.1,x,f,Inferred\na.1,x,f,Inferred\n", f"column 'id': row 3 is 'a.1', {ONE_VIEW}"),
        ("a.1,x,,correct\na.1,x,f,Expressed\n", f"column 'id': row 2 is 'a.1', {ONE_VIEW}"),
        ("a.1,x,f,Assumed\n", "row 2 is 'a.1', expected a facet that is not Assumed for each ans"),
        ("a.1,x,,correct\na.2,y,,correct\n", "annotator 'x', who comes first, says nothing about "),
    ],
)
def test_faulty_annotations_are_refused(write: Write, rows: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_labels(write, rows)
    assert message in str(error.value)


def test_kappa_by_hand() -> None:
    # There are 50 proposals. Both say yes to 20 and no to 15; the first alone says yes to 5, the
    # second alone to 10. They agree on 0.7. By chance this would be 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    first = pd.Series(["yes"] * 25 + ["no"] * 25)
    second = pd.Series(["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15)
    assert prepare.cohen_kappa(first, second) == pytest.approx(0.4)
    assert prepare.cohen_kappa(first, first) == 1
    # A label that only one of them uses.
    assert prepare.cohen_kappa(pd.Series(["a", "b"]), pd.Series(["c", "b"])) == pytest.approx(1 / 3)
    assert prepare.cohen_kappa(pd.Series(["a", "a"]), pd.Series(["a", "a"])) == 1


# ---- Removal and hold-out --------------------------------------------------------------------


def labelled(labels_by_question: list[str]) -> pd.DataFrame:
    """Return answers with labels; a text holds a letter for each answer to a question."""
    names = {"c": "correct", "p": "partially_correct_incomplete", "i": "irrelevant"}
    rows = []
    for question, letters in enumerate(labels_by_question):
        rows += [(question, names[letter]) for letter in letters]
    answers = pd.DataFrame(rows, columns=["question", "label"])
    answers["label"] = pd.Categorical(answers["label"], responses.LABEL_SETS[5])
    return answers


def test_questions_that_tell_little_are_found() -> None:
    answers = labelled(["ccccccccpp", "cccccccccp", "ccippppppp", "cccippppppp", "pppppppppi"])
    assert prepare.find_unsuitable_questions(answers) == {
        1: "90% of the answers are correct",
        2: "2 of 10 answers are correct",
        4: "90% of the answers are partially_correct_incomplete",
    }


@pytest.mark.parametrize("seed", range(5))
def test_whole_questions_and_a_share_of_every_label_are_held_out(seed: int) -> None:
    answers = labelled(["c" * 8 + "p" * 8 + "i" * 4] * 10)
    folder = prepare.hold_out(answers, 0.2, 0.25, np.random.default_rng(seed))
    folders_by_question = folder.groupby(answers["question"]).unique().map(set)
    unseen = {responses.UNSEEN_QUESTIONS}
    assert sum(folders == unseen for folders in folders_by_question) == 2
    for folders in folders_by_question:
        assert folders == unseen or unseen.isdisjoint(folders)
        assert folders == unseen or prepare.TRAIN in folders
    held_out = answers["label"][folder == responses.UNSEEN_ANSWERS]
    # A quarter of the answers to the eight other questions.
    expected = {"correct": 16, "partially_correct_incomplete": 16, "irrelevant": 8}
    assert Counter(held_out) == expected


def test_each_question_keeps_an_answer_to_learn_from() -> None:
    answers = labelled(["c"] * 4)
    folder = prepare.hold_out(answers, 0, 0.9, np.random.default_rng(0))
    assert folder.tolist() == [prepare.TRAIN] * 4


# ---- The script ------------------------------------------------------------------------------


def accuracies(folder: Path) -> dict[str, str]:
    """Return the labels of all answers in the XML files of a folder, by id."""
    elements = [
        element
        for path in folder.rglob("*.xml")
        for element in ElementTree.parse(path).iter("studentAnswer")
    ]
    labels = {element.attrib["id"]: element.attrib["accuracy"] for element in elements}
    assert len(labels) == len(elements)
    return labels


def test_a_small_corpus_by_hand(write: Write, tmp_path: Path) -> None:
    """Repetitions are removed first: without them, question b has too few correct answers."""
    texts = ["one", "two", "three", "four", "two", "Two"]
    for name in "ab":
        ids = {f"{name}.{number}": "" for number in range(6)}
        write(f"in/{name}.xml", question_file(name, ids, texts))
    labels = {
        "a": ["correct", "correct", "correct", "irrelevant", "social", "incorrect"],
        "b": ["correct", "correct", "social", "irrelevant", "correct", "incorrect"],
    }
    rows = [
        f"{name}.{number},x,,{label}\n"
        for name, of_question in labels.items()
        for number, label in enumerate(of_question)
    ]
    write("in/annotations.csv", HEADER + "".join(rows))
    none = ["--held_out_questions", "0", "--held_out_answers", "0"]
    command = [f"{FOLDER}/prepare.py", "--input_dir", tmp_path / "in", *none]
    printed = succeeds([*command, "--output_dir", tmp_path / "out"])

    assert "12 answers, 10 without repetitions\n" in printed
    assert "removed: question b, 2 of 5 answers are correct\n" in printed
    assert "kappa" not in printed
    # The repetition a.4 is gone. A text that differs in letter case is another text.
    assert accuracies(tmp_path / "out/train") == {
        "a.0": "correct", "a.1": "correct", "a.2": "correct", "a.3": "irrelevant",
        "a.5": "contradictory",
    }  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["train"]
    # The question and its references are as they were.
    (prepared,) = responses.read_responses(tmp_path / "out/train").groupby("question")
    assert prepared[1]["references"].iloc[0] == ["Because."]

    # Nothing is overwritten, and nothing is left if there is nothing to write.
    assert "out: holds files already; remove them, or gi" in fails(
        [*command, "--output_dir", tmp_path / "out"]
    )
    write("in/annotations.csv", HEADER + "".join(rows).replace(",correct", ",irrelevant"))
    line = fails([*command, "--output_dir", tmp_path / "new"])
    assert "no question is left, expected one with at least 3 correct answers" in line
    assert not (tmp_path / "new").exists()


def test_question_files_of_the_same_name_are_refused(write: Write, tmp_path: Path) -> None:
    """One of the prepared files would replace the other."""
    write("in/a.xml", question_file("a", {"a.1": ""}))
    write("in/Core/a.xml", question_file("b", {"b.1": ""}))
    write("in/annotations.csv", f"{HEADER}a.1,x,,correct\nb.1,x,,correct\n")
    line = fails([f"{FOLDER}/prepare.py", "--input_dir", tmp_path / "in", "--output_dir", tmp_path])
    assert "a.xml: has the name of" in line


def test_the_simulated_corpus_is_prepared(challenge_kit: Kits, tmp_path: Path) -> None:
    """The sets share no answer; models learn from the one and predict the others."""
    kit = challenge_kit("student_response")
    annotated = kit / FOLDER / "data/annotated_data"
    out = tmp_path / "out"
    command = [f"{FOLDER}/prepare.py", "--output_dir", out]
    printed = succeeds(command, kit=kit)
    for text in (
        # The second annotator labels a fifth of the answers at random, so that the two agree on at
        # least 0.8 of them, and kappa is near 0.78.
        "of first and second on 1",
        "removed: question A0_0, ",
        "removed: question A0_1, 0 of ",
    ):
        assert text in printed
    kappa = float(printed.split()[1])
    # The standard deviation of agreement is √(0.16 · 0.84 / 180) = 0.03, that of kappa 0.04.
    assert 0.65 < kappa < 0.95

    sets = {name: accuracies(out / name) for name in prepare.FOLDERS}
    assert all(sets.values())
    all_ids = [answer_id for labels in sets.values() for answer_id in labels]
    assert len(all_ids) == len(set(all_ids))
    rows = pd.read_csv(annotated / annotations.FILE)
    assert set(all_ids) < set(rows["id"])
    # The files are marked as simulated, and may be replaced by others.
    assert sorted(fingerprints.simulated_files(out)) == sorted(out.rglob("*.xml"))
    succeeds([*command, "--seed", "1"], kit=kit)
    assert {name: accuracies(out / name) for name in prepare.FOLDERS} != sets

    model = [f"{FOLDER}/sample_model_majority.py", "--train_dir", out / "train"]
    succeeds([*model, "--test_dir", out, "--output_dir", tmp_path], kit=kit)
    evaluate = evaluation("student_response", tmp_path, "--input_dir", out)
    assert "(mean macro F1 of 2 test sets)" in succeeds(evaluate, kit=kit)
    assert last_record(tmp_path)["origin"] == "simulated"


def test_released_answers_are_prepared_already_but_for_one_question(
    real_data: Path, write: Write, tmp_path: Path
) -> None:
    """The released files of BEETLE are the result of this preparation.

    No answer is repeated, and each question has three correct answers; in a single question, more
    than 80 % of the answers have the same label. With 16 and 10 % held out, the sets have the sizes
    of 46 questions and 3,881 answers.
    """
    beetle = real_data / "related/student_response/beetle_5way/train/Core"
    demand = {label: name for name, label in reversed(annotations.DEMAND.items())}
    answers = responses.read_responses(beetle)
    rows = [
        f"{answer_id},x,,{demand[label]}\n"
        for answer_id, label in zip(answers["id"], answers["label"], strict=True)
    ]
    for path in beetle.glob("*.xml"):
        write(f"in/{path.name}", path.read_text(encoding="utf-8"))
    write("in/annotations.csv", HEADER + "".join(rows))
    out = tmp_path / "out"
    command = [f"{FOLDER}/prepare.py", "--input_dir", tmp_path / "in", "--output_dir", out]
    printed = succeeds(command)

    assert "3,941 answers, 3,941 without repetitions\n" in printed
    removed = [line for line in printed.splitlines() if line.startswith("removed")]
    assert removed == [
        "removed: question GIVE_CIRCUIT_TYPE_HYBRID_EXPLAIN_Q3, 88% of the answers are correct"
    ]
    sets = {name: accuracies(out / name) for name in prepare.FOLDERS}
    n_files = [len(list((out / name).glob("*.xml"))) for name in prepare.FOLDERS]
    # 16 % of 46 questions are 7.
    assert n_files[0] == 39
    assert n_files[2] == 7
    counts = Counter(label for labels in sets.values() for label in labels.values())
    # The counts of the released files, without the removed question.
    assert counts == {
        "correct": 1665 - 53, "partially_correct_incomplete": 919 - 3, "contradictory": 1049 - 4,
        "irrelevant": 113, "non_domain": 195,
    }  # fmt: skip
    label_of_id = dict(zip(answers["id"], answers["label"], strict=True))
    for labels in sets.values():
        assert all(label_of_id[answer_id] == label for answer_id, label in labels.items())
    known = Counter(sets[prepare.TRAIN].values()) + Counter(sets[responses.UNSEEN_ANSWERS].values())
    held_out = Counter(sets[responses.UNSEEN_ANSWERS].values())
    assert held_out == {label: round(0.1 * n) for label, n in known.items()}
