"""Student response analysis: labels from annotations, and training and test sets from answers."""

import shutil
from collections import Counter
from dataclasses import dataclass
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
    """Return the labels of the answers a.1, a.2 and so on, from rows of annotations.

    Each row holds an answer's id, an annotator, a facet and an annotation.
    """
    ids = {f"a.{number}": "" for number in range(1, n_answers + 1)}
    folder = write("in/a.xml", question_file("a", ids, ["it is"] * n_answers)).parent
    answers = responses.read_responses(folder, labels="ignored")
    return annotations.read_labels(write("annotations.csv", HEADER + rows), answers)


# ---- From annotations to labels --------------------------------------------------------------


def test_every_label_but_one_of_the_five_has_a_rule_in_both_schemes() -> None:
    """Annotators use one of two schemes. Each annotation in a scheme must lead to a label.

    In the scheme DEMAND, an annotation stands for one of the five labels. In the scheme FACETS,
    there is an annotation for each facet, which is a part of the reference answer: it says whether
    the answer addresses the facet. The annotations of all facets decide the label, which is never
    "non_domain".
    """
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
        # If the question already states a facet (a part of the reference answer), an answer gets no
        # credit for the facet.
        ("Assumed Unaddressed", "irrelevant"),
        ("Diff-Arg Unaddressed", "irrelevant"),
        # If an answer contradicts a facet (a part of the reference answer), it is contradictory,
        # whatever it says of other facets.
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
    """Two people judge 50 proposals.

    Both people say yes to 20 proposals and no to 15. Only the first person says yes to 5 others,
    and only the second person to 10. So they agree on 35 of 50 proposals, a share of 0.7.

    In all, the first person says yes to 0.5 of the proposals, and the second to 0.6. By chance they
    would both say yes to 0.5 * 0.6 and both say no to 0.5 * 0.4, so they would agree on 0.5.
    """
    first = pd.Series(["yes"] * 25 + ["no"] * 25)
    second = pd.Series(["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15)
    assert prepare.cohen_kappa(first, second) == pytest.approx((0.7 - 0.5) / (1 - 0.5))


def test_kappa_of_a_label_that_only_one_annotator_uses() -> None:
    """The annotators agree on half of the answers.

    Each gives the label b to half of the answers, and they have no other label in common. So by
    chance they would agree on 1/2 · 1/2 = 1/4 of the answers.
    """
    kappa = prepare.cohen_kappa(pd.Series(["a", "b"]), pd.Series(["c", "b"]))
    assert kappa == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))


@pytest.mark.parametrize("labels", [["yes", "no"], ["yes", "yes"]])
def test_kappa_of_annotators_who_always_agree_is_1(labels: list[str]) -> None:
    assert prepare.cohen_kappa(pd.Series(labels), pd.Series(labels)) == 1


# ---- Removal and hold-out --------------------------------------------------------------------


def labelled(labels_by_question: list[str]) -> pd.DataFrame:
    """Return answers with labels.

    Each text stands for a question, and each letter of the text for an answer to the question. The
    letter is the first letter of the label: c, p or i.
    """
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


# Ten questions with twenty answers each: 8 correct, 8 partially correct and 4 irrelevant answers.
TEN_QUESTIONS = labelled(["c" * 8 + "p" * 8 + "i" * 4] * 10)


def hold_out_of_ten(seed: int) -> pd.Series:
    """Hold out a fifth of the questions of TEN_QUESTIONS, and a quarter of the other answers.

    Return for each answer the name of the folder to which it goes: training answers, answers to
    held-out questions, or held-out answers to the other questions.
    """
    rng = np.random.default_rng(seed)
    folder: pd.Series = prepare.hold_out(
        TEN_QUESTIONS, question_share=0.2, answer_share=0.25, rng=rng
    )
    return folder


@pytest.mark.parametrize("seed", range(5))
def test_questions_are_held_out_as_a_whole(seed: int) -> None:
    folders_by_question = hold_out_of_ten(seed).groupby(TEN_QUESTIONS["question"]).unique()
    n_held_out = 0
    for folders in folders_by_question:
        if responses.UNSEEN_QUESTIONS in folders:
            n_held_out += 1
            assert len(folders) == 1
        else:
            assert prepare.TRAIN in folders
    assert n_held_out == 2


@pytest.mark.parametrize("seed", range(5))
def test_a_share_of_the_answers_of_every_label_is_held_out(seed: int) -> None:
    is_held_out = hold_out_of_ten(seed) == responses.UNSEEN_ANSWERS
    # Two of the ten questions are held out as a whole. The other eight have 64 correct, 64
    # partially correct and 32 irrelevant answers. A quarter of the answers of each label is held
    # out.
    expected = {"correct": 16, "partially_correct_incomplete": 16, "irrelevant": 8}
    assert Counter(TEN_QUESTIONS["label"][is_held_out]) == expected


def test_each_question_keeps_an_answer_to_learn_from() -> None:
    answers = labelled(["c"] * 4)
    folder = prepare.hold_out(answers, 0, 0.9, np.random.default_rng(0))
    assert folder.tolist() == [prepare.TRAIN] * 4


# ---- The script ------------------------------------------------------------------------------


def read_accuracies(folder: Path) -> dict[str, str]:
    """Return the labels of all answers in the XML files of a folder, by the id of the answer."""
    labels: dict[str, str] = {}
    for path in folder.rglob("*.xml"):
        for element in ElementTree.parse(path).iter("studentAnswer"):
            answer_id = element.attrib["id"]
            assert answer_id not in labels
            labels[answer_id] = element.attrib["accuracy"]
    return labels


# The six answers to each of two questions, a and b, and the labels that one annotator gave them.
SIX_TEXTS = ["one", "two", "three", "four", "two", "Two"]
SIX_LABELS = {
    "a": ["correct", "correct", "correct", "irrelevant", "social", "incorrect"],
    "b": ["correct", "correct", "social", "irrelevant", "correct", "incorrect"],
}


@pytest.fixture
def small_corpus(write: Write) -> list[object]:
    """Write two questions and their annotations; return the command that prepares the corpus.

    Each question has six answers, of which the fifth repeats the second one (SIX_TEXTS). No answers
    are held out. The command ends with the flag --output_dir; a test adds the folder.
    """
    rows_of_annotations = ""
    for question, labels in SIX_LABELS.items():
        # The XML files have no labels: the label of each answer is the empty text.
        no_labels = {f"{question}.{number}": "" for number in range(6)}
        write(f"in/{question}.xml", question_file(question, no_labels, SIX_TEXTS))
        for number, label in enumerate(labels):
            # The columns are the answer, the annotator, the facet (here none) and the label.
            rows_of_annotations += f"{question}.{number},x,,{label}\n"
    folder = write("in/annotations.csv", HEADER + rows_of_annotations).parent
    nothing_held_out = ["--held_out_questions", "0", "--held_out_answers", "0"]
    return [f"{FOLDER}/prepare.py", "--input_dir", folder, *nothing_held_out, "--output_dir"]


def test_a_small_corpus_by_hand(small_corpus: list[object], tmp_path: Path) -> None:
    """A corpus of two questions with six answers each is prepared.

    The fifth answer to each question repeats the second one. The two repetitions are removed first:
    10 of 12 answers remain. Question b now has only two correct answers. It is removed, too,
    because a question needs three.
    """
    printed = succeeds([*small_corpus, tmp_path / "out"])
    assert "12 answers, 10 without repetitions\n" in printed
    assert "removed: question b, 2 of 5 answers are correct\n" in printed
    # Answer a.4, "two", repeats a.1 and is removed. Answer a.5, "Two", differs in letter case, so
    # it is no repetition. Its annotation "incorrect" becomes the label "contradictory".
    assert read_accuracies(tmp_path / "out/train") == {
        "a.0": "correct",
        "a.1": "correct",
        "a.2": "correct",
        "a.3": "irrelevant",
        "a.5": "contradictory",
    }
    # No answers are held out, so there are no folders of test sets.
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["train"]


def test_one_annotator_has_no_kappa(small_corpus: list[object], tmp_path: Path) -> None:
    assert "kappa" not in succeeds([*small_corpus, tmp_path / "out"])


def test_preparation_keeps_the_references_of_a_question(
    small_corpus: list[object], tmp_path: Path
) -> None:
    succeeds([*small_corpus, tmp_path / "out"])
    prepared = responses.read_responses(tmp_path / "out/train")
    assert prepared["question"].nunique() == 1
    assert prepared["references"].iloc[0] == ["Because."]


def test_preparation_overwrites_no_files(small_corpus: list[object], tmp_path: Path) -> None:
    succeeds([*small_corpus, tmp_path / "out"])
    message = fails([*small_corpus, tmp_path / "out"])
    assert "out: holds files already; remove them, or gi" in message


def test_nothing_is_written_if_no_question_is_left(
    small_corpus: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "in/annotations.csv"
    path.write_text(path.read_text().replace(",correct", ",irrelevant"))
    message = fails([*small_corpus, tmp_path / "new"])
    assert "no question is left, expected one with at least 3 correct answers" in message
    assert not (tmp_path / "new").exists()


def test_question_files_of_the_same_name_are_refused(write: Write, tmp_path: Path) -> None:
    """Two question files of the same name are refused: one would replace the other."""
    write("in/a.xml", question_file("a", {"a.1": ""}))
    write("in/Core/a.xml", question_file("b", {"b.1": ""}))
    write("in/annotations.csv", f"{HEADER}a.1,x,,correct\nb.1,x,,correct\n")
    line = fails([f"{FOLDER}/prepare.py", "--input_dir", tmp_path / "in", "--output_dir", tmp_path])
    assert "a.xml: has the name of" in line


@dataclass(frozen=True)
class Prepared:
    """A corpus of annotated answers after its preparation."""

    # The folder with three folders: training answers, unseen answers and unseen questions.
    folder: Path
    output: str

    def labels(self, name: str) -> dict[str, str]:
        """Return the labels of the answers in one of the three folders, by the id of the answer."""
        return read_accuracies(self.folder / name)

    @property
    def all_labels(self) -> dict[str, str]:
        """The labels of all prepared answers, by the id of the answer; no id may occur twice."""
        return read_accuracies(self.folder)


@pytest.fixture(scope="module")
def simulated_corpus(challenge_kit: Kits, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Prepare the simulated corpus of the kit. Tests share the result and must not change it."""
    folder = tmp_path_factory.mktemp("simulated") / "out"
    command = [f"{FOLDER}/prepare.py", "--output_dir", folder]
    return Prepared(folder, succeeds(command, kit=challenge_kit("student_response")))


def test_the_agreement_of_two_annotators_is_printed(simulated_corpus: Prepared) -> None:
    """The second annotator labels a fifth of the answers at random.

    A random label is one of five, so it agrees with the first annotator once in five times. The
    expected agreement is 0.8 + 0.2 / 5 = 0.84, and the expected kappa is near 0.78.
    """
    assert "of first and second on 1" in simulated_corpus.output
    kappa = float(simulated_corpus.output.split()[1])
    # Both annotators have labelled about 180 answers. So the standard deviation of the agreement is
    # √(0.16 · 0.84 / 180) = 0.03, and the standard deviation of kappa is 0.04.
    assert 0.65 < kappa < 0.95


def test_removed_questions_are_named(simulated_corpus: Prepared) -> None:
    assert "removed: question A0_0, " in simulated_corpus.output
    assert "removed: question A0_1, 0 of " in simulated_corpus.output


def test_the_sets_share_no_answer(simulated_corpus: Prepared, challenge_kit: Kits) -> None:
    for name in prepare.FOLDERS:
        assert simulated_corpus.labels(name)
    annotated = challenge_kit("student_response") / FOLDER / "data/annotated_data"
    rows = pd.read_csv(annotated / annotations.FILE)
    # `all_labels` refuses an answer that is in two sets.
    assert set(simulated_corpus.all_labels) < set(rows["id"])


def test_the_files_of_a_simulated_corpus_are_marked_as_simulated(
    simulated_corpus: Prepared,
) -> None:
    files = sorted(simulated_corpus.folder.rglob("*.xml"))
    assert sorted(fingerprints.simulated_files(simulated_corpus.folder)) == files


def test_a_simulated_corpus_may_be_replaced_by_another(
    simulated_corpus: Prepared, challenge_kit: Kits, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(simulated_corpus.folder, tmp_path / "out"))
    command = [f"{FOLDER}/prepare.py", "--output_dir", folder, "--seed", "1"]
    again = Prepared(folder, succeeds(command, kit=challenge_kit("student_response")))
    for name in prepare.FOLDERS:
        assert again.labels(name) != simulated_corpus.labels(name)


def test_a_model_of_the_training_set_is_scored_on_the_others(
    simulated_corpus: Prepared, challenge_kit: Kits, tmp_path: Path
) -> None:
    kit = challenge_kit("student_response")
    folder = simulated_corpus.folder
    folders = ["--train_dir", folder / "train", "--test_dir", folder, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_majority.py", *folders], kit=kit)
    evaluate = evaluation("student_response", tmp_path, "--input_dir", folder)
    assert "(mean macro F1 of 2 test sets)" in succeeds(evaluate, kit=kit)
    assert last_record(tmp_path)["origin"] == "simulated"


# BEETLE was prepared before its release: no answer is repeated, and each question has at least
# three correct answers. Only one question would be removed now, because more than 80 % of its
# answers have the same label.


@pytest.fixture(scope="module")
def beetle(real_data: Path) -> Path:
    """Return the folder of BEETLE's released files."""
    return real_data / "related/student_response/beetle_5way/train/Core"


@pytest.fixture(scope="module")
def prepared_beetle(beetle: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Prepare the released files of BEETLE, as if its labels were annotations."""
    folder = tmp_path_factory.mktemp("beetle")
    shutil.copytree(beetle, folder / "in")
    answers = responses.read_responses(beetle)
    # DEMAND holds the label that each annotation becomes: for example, "social" becomes
    # "non_domain". Several annotations may become the same label. Here the first of them is used.
    annotation_by_label: dict[str, str] = {}
    for annotation, label in annotations.DEMAND.items():
        if label not in annotation_by_label:
            annotation_by_label[label] = annotation
    rows_of_annotations = ""
    for answer_id, label in zip(answers["id"], answers["label"], strict=True):
        # The columns are the answer, the annotator, the facet (here none) and the annotation.
        rows_of_annotations += f"{answer_id},x,,{annotation_by_label[label]}\n"
    (folder / "in/annotations.csv").write_text(HEADER + rows_of_annotations)
    command = [f"{FOLDER}/prepare.py", "--input_dir", folder / "in"]
    return Prepared(folder / "out", succeeds([*command, "--output_dir", folder / "out"]))


def test_released_answers_are_prepared_already_but_for_one_question(
    prepared_beetle: Prepared,
) -> None:
    lines = prepared_beetle.output.splitlines()
    assert "3,941 answers, 3,941 without repetitions" in lines
    assert [line for line in lines if line.startswith("removed")] == [
        "removed: question GIVE_CIRCUIT_TYPE_HYBRID_EXPLAIN_Q3, 88% of the answers are correct"
    ]


def test_a_share_of_the_released_questions_is_held_out(prepared_beetle: Prepared) -> None:
    """By default, 16 % of the questions are held out: 7 of the 46 that are not removed."""
    train, _, unseen_questions = prepare.FOLDERS
    assert len(list((prepared_beetle.folder / train).glob("*.xml"))) == 39
    assert len(list((prepared_beetle.folder / unseen_questions).glob("*.xml"))) == 7


def test_released_answers_keep_their_labels(prepared_beetle: Prepared, beetle: Path) -> None:
    """Every prepared answer has its released label; only one question's answers are missing."""
    released_labels = read_accuracies(beetle)
    prepared_labels = prepared_beetle.all_labels
    for answer_id, label in prepared_labels.items():
        assert label == released_labels[answer_id]
    # The released files have these counts of labels. Subtracted are the answers to the removed
    # question: 53 correct, 3 partially correct and 4 contradictory answers.
    assert Counter(prepared_labels.values()) == {
        "correct": 1665 - 53,
        "partially_correct_incomplete": 919 - 3,
        "contradictory": 1049 - 4,
        "irrelevant": 113,
        "non_domain": 195,
    }


def test_a_tenth_of_the_released_answers_of_every_label_is_held_out(
    prepared_beetle: Prepared,
) -> None:
    """A tenth of the answers of each label, to questions that are not held out, is held out.

    Held-out questions are held out with all their answers.
    """
    train = Counter(prepared_beetle.labels(prepare.TRAIN).values())
    held_out = Counter(prepared_beetle.labels(responses.UNSEEN_ANSWERS).values())
    expected = {label: round(0.1 * n_answers) for label, n_answers in (train + held_out).items()}
    assert held_out == expected
