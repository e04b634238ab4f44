"""Student response analysis: files and labels, measures, word features, and the scripts."""

import argparse
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import InputError

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, run, succeeds
from question_files import Kits, evaluation, last_record, page_in, question_file
from sample_blocks import needs_blocks

alignment = import_module("alignment")
responses = import_module("responses")
similarity = import_module("similarity")
similarity_boosting = import_module("sample_model_similarity_boosting")

FOLDER = "related_challenges/student_response"


def test_labels_of_all_sets_are_valid_for_answers_without_labels(write: Write) -> None:
    """Files without labels do not tell which set of labels is used."""
    folder = write("in/a.xml", question_file("a", {"a.1": ""})).parent
    path = write("submission.csv", "id,label\na.1,right\n")
    check = [f"{FOLDER}/check_submission.py", path, "--input_dir", folder]
    assert "row 2 is 'right', expected one of correct" in fails(check)
    # `incorrect` is in the sets of 2 and 3 labels, `irrelevant` in that of 5.
    for label in ("incorrect", "irrelevant"):
        write("submission.csv", f"id,label\na.1,{label}\n")
        assert "valid for student_response" in succeeds(check)


def test_either_all_answers_are_labelled_or_none(write: Write) -> None:
    write("in/unlabelled.xml", question_file("a", {"a.1": ""}))
    folder = write("in/labelled.xml", question_file("b", {"b.1": "correct"})).parent
    path = write("submission.csv", "id,label\na.1,correct\n")
    check = [f"{FOLDER}/check_submission.py", path, "--input_dir", folder]
    for command in (check, evaluation("student_response", path.parent, "--input_dir", folder)):
        assert "unlabelled.xml: line 3: <studentAnswer> has no attribut" in fails(command)


def test_finds_the_test_sets_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("beetle/train/Core/t.xml", question_file("t", {"t.1": ""}))
    write("beetle/test-unseen-questions/Core/b.xml", question_file("b", {"b.1": ""}))
    write("beetle/test-unseen-answers/a.xml", question_file("a", {"a.1": ""}))
    for folder, expected in (
        ("", ["test-unseen-answers", "test-unseen-questions"]),
        ("test-unseen-questions/Core", ["test-unseen-questions"]),
    ):
        answers = responses.read_responses(tmp_path / "beetle" / folder, labels="ignored")
        assert answers["scenario"].tolist() == expected


@pytest.mark.parametrize(
    ("scenario", "question", "module", "numbers"),
    [
        # The numbers of the training answer's question and of the test answer's question.
        ("test-unseen-answers", "Q", "M", [0, 0]),
        ("test-unseen-questions", "R", "M", [0, 1]),
        # The same id in another module is another question.
        ("test-unseen-domains", "Q", "N", [0, 1]),
        ("anything", "Q", "M", [0, 0]),
    ],
)
def test_test_answers_are_appended_to_training_answers(
    write: Write, scenario: str, question: str, module: str, numbers: list[int]
) -> None:
    train = responses.read_responses(
        write("train/t.xml", question_file("Q", {"t.1": "correct"})).parent
    )
    path = write(f"{scenario}/a.xml", question_file(question, {"a.1": "correct"}, module=module))
    test = responses.read_responses(path.parent, labels="ignored")
    answers = responses.append_test_answers(train, test)
    assert answers["question"].tolist() == numbers
    # The test answer has no label.
    assert answers["label"].cat.codes.tolist() == [0, -1]
    # The only label that occurs, `correct`, is in all sets. The set of 5 is then taken.
    assert responses.labels_of(answers) == [*responses.LABEL_SETS[5]]
    if scenario.startswith("test"):
        with pytest.raises(InputError, match=r"a.xml: belongs to a test set, expected training"):
            responses.append_test_answers(responses.read_responses(path.parent), train)


@pytest.mark.parametrize(
    ("scenario", "question", "answer", "message"),
    [
        ("any", "R", "t.1", r"a.xml: line 3: studentAnswer 't.1' is in the training .*t.xml"),
        ("test-unseen-answers", "R", "a.1", r"a.xml: question 'R' .* is not in the training"),
        ("test-unseen-questions", "Q", "a.1", r"a.xml: question 'Q' .* is in .*t.xml, exp"),
        (
            "test-unseen-domains",
            "R",
            "a.1",
            "'R' of module 'M' is not of a new domain: its module is in the training",
        ),
    ],
)
def test_test_answers_that_contradict_their_test_set_are_refused(
    write: Write, scenario: str, question: str, answer: str, message: str
) -> None:
    train = responses.read_responses(
        write("train/t.xml", question_file("Q", {"t.1": "correct"})).parent
    )
    path = write(f"{scenario}/a.xml", question_file(question, {answer: "correct"}, module="M"))
    test = responses.read_responses(path.parent, labels="ignored")
    with pytest.raises(InputError, match=message):
        responses.append_test_answers(train, test)


def test_models_never_see_a_label_to_predict(write: Write, tmp_path: Path) -> None:
    """In the arrays of labels, -1 means that a label is unknown."""
    # 24 questions with one answer each.
    for number, name in enumerate(["correct", "contradictory", "irrelevant"] * 8):
        write(f"xml/{number}.xml", question_file(number, {f"a.{number}": name}))
    known = responses.read_responses(tmp_path / "xml")["label"].cat.codes.to_numpy()
    # Three folds of eight answers each.
    write("folds.csv", "id,fold\n" + "".join(f"a.{n},{n // 8}\n" for n in range(24)))
    flags: dict[str, Any] = {
        "input_dir": tmp_path / "xml",
        "submission_template_dir": tmp_path,
        "submission_template_file": "folds.csv",
        "train_dir": None,
        "test_dir": None,
        "local": False,
    }

    answers, fits = responses.read_fits(argparse.Namespace(**flags))
    assert answers["label"].isna().all()
    assert len(fits) == 3
    for train, test, label in fits:
        assert (train == ~test).all()
        assert test.sum() == 8
        assert (label[train] == known[train]).all()
        assert (label[test] == -1).all()

    # Now predict a test answer in a folder of its own, whose label must not be given.
    test_dir = write("test/b.xml", question_file("Q", {"b.1": "correct"})).parent
    flags |= {"train_dir": tmp_path / "xml", "test_dir": test_dir}
    answers, ((train, test, label),) = responses.read_fits(argparse.Namespace(**flags))
    expected_labels = [*known.tolist(), -1]
    assert label.tolist() == expected_labels
    assert answers["label"].cat.codes.tolist() == expected_labels
    assert train.tolist() == [True] * 24 + [False]
    assert test.tolist() == [False] * 24 + [True]


def test_a_matrix_gives_the_papers_table() -> None:
    """The counts and measures of BEETLE II are published in Dzikovska, Nielsen and Brew (2012)."""
    # Figure 3 of the paper: a row for each predicted label, a column for each true one. The sixth
    # row counts the answers that the system could not interpret.
    counts = [
        (617, 20, 23, 0, 3), (249, 332, 146, 29, 20), (68, 38, 149, 3, 0), (4, 22, 23, 15, 1),
        (3, 3, 1, 1, 94), (216, 211, 314, 38, 86),
    ]  # fmt: skip
    # Table 2 of the paper: precision, recall and F1 of the five labels, then of the macro average,
    # the micro average and corrective feedback.
    table = """0.93 0.53 0.68  0.43 0.53 0.47  0.58 0.23 0.33  0.23 0.17 0.20  0.92 0.46 0.61
    0.62 0.39 0.46  0.71 0.44 0.53  0.73 0.56 0.63"""
    result = responses.evaluate(pd.DataFrame(counts, columns=responses.LABEL_SETS[5]))
    expected = np.array(table.split(), float).reshape(-1, 3)
    np.testing.assert_allclose(result, expected, atol=0.005 + 1e-9)
    accuracy = sum(counts[label][label] for label in range(5)) / np.sum(counts)
    assert result.loc["micro average", "recall"] == pytest.approx(accuracy)


def test_test_sets_are_measured_as_by_the_tasks_scorer() -> None:
    """In the macro average, a label that no answer has and that is never predicted has an F1 of 1.

    In sciEntsBank, `non_domain` counts only in the test set of unseen domains.
    """
    # True and predicted labels of six answers. The three test sets have the same answers.
    gold_and_predicted = [
        ("correct", "correct"),
        ("correct", "correct"),
        ("correct", "contradictory"),
        ("partially_correct_incomplete", "correct"),
        ("contradictory", "contradictory"),
        ("non_domain", responses.UNINTERPRETABLE),
    ]
    gold = [label for label, _ in gold_and_predicted]
    predicted = [label for _, label in gold_and_predicted]
    answers = pd.DataFrame({"label": pd.Categorical(gold * 3, responses.LABEL_SETS[5])})
    answers["scenario"] = np.repeat(responses.SCENARIOS, 6)
    # F1 is 2/3 for `correct` and `contradictory`, 0 for `partially_correct_incomplete` and
    # `non_domain`, and 1 for `irrelevant`, which does not occur.
    with_non_domain = (2 / 3 + 0 + 2 / 3 + 1 + 0) / 5
    without_non_domain = (2 / 3 + 0 + 2 / 3 + 1) / 4
    # Number of labels, number of answers, accuracy, macro F1 and weighted F1. The label `incorrect`
    # has an F1 of 0 among three labels, and of 2/5 among two.
    coarse = [
        (3, 6, 1 / 2, (2 / 3 + 2 / 3 + 0) / 3, 4 / 9),
        (2, 6, 1 / 2, (2 / 3 + 2 / 5) / 2, 8 / 15),
    ]
    for corpus, macro_f1 in (
        ("beetle", [with_non_domain, with_non_domain, with_non_domain]),
        ("sciEntsBank", [without_non_domain, without_non_domain, with_non_domain]),
    ):
        rows: list[tuple[object, ...]] = []
        for scenario, fine in zip(responses.SCENARIOS, macro_f1, strict=True):
            rows.append((scenario, 5, 6, 1 / 2, fine, 4 / 9))
            rows += [(scenario, *scores) for scores in coarse]
        scores = responses.score_test_sets(answers, predicted * 3, corpus)
        pd.testing.assert_frame_equal(scores, pd.DataFrame(rows, columns=responses.HEADER))


def test_words_drop_apostrophes() -> None:
    words = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert words == ["the", "bulb", "isnt", "in", "a", "closed", "path", "so", "it", "is", "out"]


def test_shared_phrases_by_hand() -> None:
    left = ["the", "bulb", "isnt", "in", "a", "closed", "path", "so", "it", "is", "out"]
    right = ["it", "is", "not", "in", "a", "closed", "path"]
    # "in a closed path" and "it is".
    assert similarity.shared_phrases(left, right) == [4, 2]
    overlap, f1, lesk, cosine = similarity.phrase_measures(left, right)
    assert overlap == 4 + 2
    # The texts have 11 and 7 words.
    assert f1 == pytest.approx(2 * 6 / (11 + 7))
    assert lesk == pytest.approx((4**2 + 2**2) / (11 * 7))
    assert cosine == pytest.approx(6 / (11 * 7) ** 0.5)


def test_measures_are_those_of_the_packages_own_example() -> None:
    """The authors of Text::Similarity published these figures with its version 0.06."""
    # The list of stop words of the example has removed the words between these.
    left = ["winston", "churchill", "prime", "minister", "england"]
    right = ["prime", "minister", "england", "winston", "churchill", "came", "visit"]
    published = (5, 0.833333333333333, 0.371428571428571, 0.845154254728517)
    assert similarity.phrase_measures(left, right) == pytest.approx(published, abs=1e-14)


def test_the_package_keeps_apostrophes_and_hyphens_inside_words() -> None:
    text = "The 'bulb' isn't burnt-out--it_is [1.5] = 'LIT'."
    words = ["the", "bulb", "isn't", "burnt-out", "it", "is", "[1", "5]", "=", "lit"]
    assert similarity.words_as_in_package(text) == words


def test_similarity_on_real_answers_is_that_of_the_tasks_organisers(real_data: Path) -> None:
    """The organisers ran the package; a public repository has their figures.

    It is https://github.com/ashudeep/Student-Response-Analysis, and the file
    semevalFormatProcessing-3way/beetleBaselineFeatures.arff. The answers here have hyphens or
    several references.
    """
    folder = real_data / "related/student_response/beetle_5way/train/Core"
    answers = responses.read_responses(folder)
    measures = dict(zip(answers["id"], similarity.describe(answers).tolist(), strict=True))
    # Overlap, F1, Lesk and cosine, with the question and then with the references.
    published = {
        "FaultFinding-BURNED_BULB_LOCATE_EXPLAIN_Q.sbj34-l1.qa217": [
            1, 0.0666666666666667, 0.00694444444444444, 0.0833333333333333,
            3, 0.352941176470588, 0.107142857142857, 0.369274472937998,
        ],
        "FaultFinding-BURNED_BULB_LOCATE_EXPLAIN_Q.sbj38-l1.qa217": [
            7, 0.304347826086957, 0.0170454545454545, 0.304635897922471,
            9, 0.545454545454546, 0.141414141414141, 0.578541911879903,
        ],
        "SwitchesBulbsParallel-HYBRID_BURNED_OUT_WHY_Q3.sbjb41-l2.qa104": [
            3, 0.162162162162162, 0.0166666666666667, 0.173205080756888,
            11, 0.55, 0.0453333333333333, 0.568037557443755,
        ],
    }  # fmt: skip
    for answer_id, figures in published.items():
        assert measures[answer_id] == pytest.approx(figures, abs=1e-14), answer_id


def test_features_by_hand(write: Write) -> None:
    """Three answers to "Which bulb?" are compared with the reference "the zebra bulb".

    Only the word "the" is in all answers. Each other word is in one answer.
    """
    texts = ["the", "the zebra", "not the bulbs"]
    text = question_file("a", dict.fromkeys("123", "correct"), texts)
    text = text.replace("Why?", "Which bulb?").replace("Because.", "the zebra bulb")
    answers = responses.read_responses(write("a.xml", text).parent)
    all_answers = np.ones(3, bool)

    features = alignment.Matches(answers).describe(train=all_answers)

    # The weight of a word is its inverse document frequency plus 0.3. With three training answers,
    # this is log((3 + 1) / (answers with the word + 1)) + 0.3. The weight of a function word, such
    # as "the" and "not", is multiplied by 0.3.
    zebra = bulb = np.log(4 / 2) + 0.3
    the = (np.log(4 / 4) + 0.3) * 0.3
    negation = (np.log(4 / 2) + 0.3) * 0.3
    reference = the + zebra + bulb
    # Weights of the words that answer and reference share, divided by those of the reference.
    recall = np.array([the, the + zebra, the + bulb]) / reference
    # The same, divided by the weights of the answer.
    precision = np.array([1, 1, (the + bulb) / (the + bulb + negation)])
    # In the reference, "the" and "zebra" are new: the question does not have them.
    recall_of_new = np.array([the, the + zebra, the]) / (the + zebra)
    for name, values in {
        "recall": recall,
        "precision": precision,
        "f1": 2 * recall * precision / (recall + precision),
        "recall of what is new": recall_of_new,
        "largest weight of a missing word": [bulb, bulb, zebra],
        "recall of content words": [0, 0.5, 0.5],
        "recall of word pairs": [0, 0.5, 0],
        "negated unlike the reference": [0, 0, 1],
    }.items():
        assert features[name].tolist() == pytest.approx(values), name


# The symbols are B, C and 2. The reference has nine words, five of which are content words (bulbs,
# B, C, path, 2). It has eight pairs of neighbouring words and seven triples.
REFERENCE = "the bulbs B and C are on path 2"
ANSWERS = [
    REFERENCE,
    # Shares two pairs of words with the reference: "path 2" and, without endings, "bulb B".
    "path 2 and bulb B",
    # Shares the pairs "on path" and "path 2" and the triple "on path 2". Of its symbols D and 2, it
    # shares 2.
    "bulb D is on path 2",
    # No symbol, no content word: "a" is a function word, not a bulb.
    "not a",
]
FEATURES_OF_PAIRS = {
    "recall of symbols": [1, 2 / 3, 1 / 3, 0],
    # An answer without symbols has no wrong symbol, so its precision is 1.
    "precision of symbols": [1, 1, 1 / 2, 1],
    "recall of word pairs": [1, 2 / 8, 2 / 8, 0],
    "precision of word pairs": [1, 2 / 4, 2 / 5, 0],
    "recall of word triples": [1, 0, 1 / 7, 0],
    "precision of word triples": [1, 0, 1 / 4, 0],
    "recall of content words": [1, 4 / 5, 3 / 5, 0],
    "precision of content words": [1, 1, 3 / 4, 0],
    "recall of words as spelt": [1, 5 / 9, 4 / 9, 0],
    "negated unlike the reference": [0, 0, 0, 1],
    # One is added to each number of words. The reference has 9 words, the answers 9, 5, 6 and 2.
    "log of the ratio of lengths": [0, np.log(6 / 10), np.log(7 / 10), np.log(3 / 10)],
}
# The question is "Why is B out?", so all words but "why", "is", "B" and "out" are new.
FEATURES_OF_ANSWERS = {
    "words": [9, 5, 6, 2],
    "new words": [8, 4, 5, 2],
    "share of new words": [8 / 9, 4 / 5, 5 / 6, 1],
    "negations": [0, 0, 0, 1],
    "share of function words": [4 / 9, 1 / 5, 2 / 6, 1],
    "symbols": [3, 2, 2, 0],
    "references": [1, 1, 1, 1],
    "mean words of a reference": [9, 9, 9, 9],
    "words of the question": [4, 4, 4, 4],
}


@pytest.fixture
def matches(write: Write) -> Any:
    """Match `ANSWERS` with `REFERENCE`."""
    text = question_file("a", dict.fromkeys(range(len(ANSWERS)), "correct"), ANSWERS)
    text = text.replace("Because.", REFERENCE).replace("Why?", "Why is B out?")
    return alignment.Matches(responses.read_responses(write("a.xml", text).parent))


@pytest.mark.parametrize("name", FEATURES_OF_PAIRS)
def test_features_of_an_answer_and_its_reference_by_hand(matches: Any, name: str) -> None:
    assert matches.pair_features[name].tolist() == pytest.approx(FEATURES_OF_PAIRS[name])


@pytest.mark.parametrize("name", FEATURES_OF_ANSWERS)
def test_features_of_an_answer_by_hand(matches: Any, name: str) -> None:
    assert matches.answer_features[name].tolist() == pytest.approx(FEATURES_OF_ANSWERS[name])


def test_every_feature_is_worked_by_hand(matches: Any) -> None:
    assert {*matches.pair_features} == {*FEATURES_OF_PAIRS}
    assert {*matches.answer_features} == {*FEATURES_OF_ANSWERS}


def test_features_know_neither_labels_nor_other_answers_to_predict(write: Write) -> None:
    """The features of a training answer do not depend on the text of an answer to predict."""

    def describe(second_text: str, training_answer: int = 0) -> Any:
        """Return the features of two answers without labels, one of which is a training answer."""
        texts = ["the bulb is lit", second_text]
        path = write("a.xml", question_file("a", {"a.1": "", "a.2": ""}, texts))
        answers = responses.read_responses(path.parent, labels="ignored")
        is_train = np.arange(2) == training_answer
        return alignment.Matches(answers).describe(is_train).to_numpy()

    first, second = describe("because")
    assert np.isfinite([first, second]).all()
    for text in ("no", ""):
        same, different = describe(text)
        assert np.isfinite([same, different]).all()
        np.testing.assert_array_equal(same, first)
        assert (different != second).any()
    # How rare a word is depends on which answer is the training answer.
    assert (describe("because", training_answer=1) != [first, second]).any()


def test_words_are_marked_by_whether_the_reference_has_them(write: Write) -> None:
    """`=` marks a word that is in the reference, `+` one that is not, `-` one that is missing."""
    text = question_file("a", {"a.1": "", "a.2": ""}, ["because lamp", "..."])
    answers = responses.read_responses(write("a.xml", text).parent, labels="ignored")
    # The second answer has no words.
    assert alignment.mark_words(answers) == ["=because +lamp because_lamp because lamp", "-because"]
    assert np.isfinite(alignment.Matches(answers).describe(np.ones(2, bool)).to_numpy()).all()


def table_in(printed: str) -> dict[str, list[str]]:
    """Return the cells of each row of a printed table, by the row's name in the first column."""
    rows = {}
    for line in printed.splitlines():
        # At least two blanks separate the first column from the others.
        name, *cells = re.split("  +", line.strip())
        if cells:
            rows[name] = " ".join(cells).split()
    return rows


@pytest.fixture
def evaluate_three_labels(write: Write, tmp_path: Path) -> list[object]:
    """Return the command that scores a submission for four answers, which have three labels.

    Answer a.1 is predicted correctly. The others are not.
    """
    for name, second in (("a", "contradictory"), ("b", "incorrect")):
        labels = {f"{name}.1": "correct", f"{name}.2": second}
        write(f"xml/{name}.xml", question_file(name, labels))
    rows = "a.1,correct\na.2,correct\nb.1,contradictory\nb.2,contradictory\n"
    write("submission.csv", f"id,label\n{rows}")
    return evaluation("student_response", tmp_path, "--input_dir", tmp_path / "xml")


def test_an_evaluation_by_hand(evaluate_three_labels: list[object], tmp_path: Path) -> None:
    printed = succeeds(evaluate_three_labels)
    assert "score 0.1667 (macro F1 of 4 answers)\naccuracy 0.2500\n" in printed
    # In each row of this example, precision, recall and F1 are equal.
    f1_by_row = {
        "correct": 0.5, "contradictory": 0, "incorrect": 0,
        "macro average": 1 / 6, "micro average": 0.25, "corrective feedback": 0.5,
    }  # fmt: skip
    page = page_in(tmp_path)
    measures = page.table("Micro").rows
    assert measures == [[name, *[f"{f1:.4f}"] * 3] for name, f1 in f1_by_row.items()]
    assert measures == [[name, *table_in(printed)[name]] for name in f1_by_row]
    confusion_matrix = page.table("Numbers of answers")
    assert confusion_matrix.columns[1:3] == ["truly correct", "truly contradictory"]
    assert confusion_matrix.rows == [
        ["predicted correct", "1", "1", "0"],
        ["predicted contradictory", "1", "0", "1"],
        ["predicted incorrect", "0", "0", "0"],
    ]
    assert last_record(tmp_path)["rules"] == "3 labels"


def test_labels_can_be_merged_to_fewer_labels(
    evaluate_three_labels: list[object], tmp_path: Path
) -> None:
    """With two labels, `contradictory` becomes `incorrect`. Five labels cannot be made of three."""
    printed = succeeds([*evaluate_three_labels, "--ways", "2"])
    assert "contradictory" not in printed
    assert "score 0.5000" in printed
    assert last_record(tmp_path)["rules"] == "2 labels"
    assert "has only 3 labels" in fails([*evaluate_three_labels, "--ways", "5"])


def test_folds_by_question(challenge_kit: Kits) -> None:
    """All answers to a question are in the same fold; the kit's folds are split in this way."""
    data = challenge_kit("student_response") / FOLDER / "data"
    folds = pd.read_csv(data / "test_input/folds.csv", dtype=str)
    # An id begins with the question, which ends at the first point.
    question = folds["id"].str.split(".").str[0]
    different_pairs = set(zip(question, folds["fold"], strict=True))
    n_questions = len(list((data / "train_data").glob("*.xml")))
    assert len(different_pairs) == n_questions


def test_folds_by_module(write: Write, tmp_path: Path) -> None:
    """Questions of the same module are in the same fold."""
    for name, module in {"a": "M", "b": "N", "c": "M", "d": "O"}.items():
        text = question_file(name, {f"{name}.1": "correct"}, module=module)
        write(f"test-unseen-domains/{name}.xml", text)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out", "--by_domain"]
    split = [f"{FOLDER}/local_data_split.py", *flags]

    succeeds([*split, "--folds", "3"])

    fold = pd.read_csv(tmp_path / "out/folds.csv", index_col="id")["fold"]
    assert fold["a.1"] == fold["c.1"]
    assert fold.nunique() == 3
    # The default number of folds is too large for three modules.
    assert "--folds is 10, expected a whole number from 2 to the number of ex" in fails(split)
    # A question without a module cannot be split by module.
    write("test-unseen-domains/d.xml", question_file("d", {"d.1": "correct"}, module=""))
    line = fails(split)
    assert "d.xml: <question> has no attribute 'module', which --by_domain needs" in line


def test_label_distribution(write: Write, tmp_path: Path) -> None:
    for name, second in (("x/a", "irrelevant"), ("y/b", "incorrect"), ("y/c", "correct")):
        labels = {f"{name}.1": "correct", f"{name}.2": second}
        write(f"{name}.xml", question_file(name, labels))
    folders = [tmp_path / "x", tmp_path / "y"]
    rows = table_in(succeeds([f"{FOLDER}/label_distribution.py", "--input_dir", *folders]))
    expected = {
        "correct": "1 (50.0%) 3 (75.0%)", "irrelevant": "1 (50.0%)", "incorrect": "1 (25.0%)",
        "non_domain": "0 (0.0%)", "answers": "2 4", "questions": "1 2", "modules": "1 1",
    }  # fmt: skip
    assert {name: " ".join(rows[name]) for name in expected} == expected


@needs_blocks(f"{FOLDER}/sample_model_similarity_boosting.py")
def test_test_sets_are_predicted_and_scored(challenge_kit: Kits, tmp_path: Path) -> None:
    """The table shows the scores of each test set, and below them the published scores."""
    kit = challenge_kit("student_response")
    data = kit / FOLDER / "data"
    # Copy the files of two of the seven domains, with and without labels. The model gets the
    # training files with labels and the test files without.
    for path in data.glob("t*_data/**/D[05]-*.xml"):
        place = path.relative_to(data)
        for folder in (tmp_path, tmp_path / "unlabelled"):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / place)
        without_labels = re.sub(r' accuracy="\w+"', "", path.read_text())
        (tmp_path / "unlabelled" / place).write_text(without_labels)
    flags = ["--train_dir", tmp_path / "train_data", "--output_dir", tmp_path]
    test = ["--test_dir", tmp_path / "unlabelled/test_data"]
    succeeds([f"{FOLDER}/sample_model_similarity_boosting.py", *flags, *test], kit=kit)
    # Published scores are shown for files in a folder with the name of their corpus.
    corpus = tmp_path / "sciEntsBank"
    (tmp_path / "test_data").rename(corpus)
    printed = succeeds(evaluation("student_response", tmp_path, "--input_dir", corpus), kit=kit)

    rows = [line.split() for line in printed.splitlines() if line.startswith("test-unseen")]
    assert [row[:2] for row in rows] == [
        [scenario, n_labels] for scenario in responses.SCENARIOS for n_labels in ("5", "3", "2")
    ]
    rows_of_5_labels = [row for row in rows if row[1] == "5"]
    macro_f1 = [float(row[4]) for row in rows_of_5_labels]
    # A model that gives all answers the same label has a macro F1 of at most a fifth.
    assert min(macro_f1) > 0.5

    table = page_in(tmp_path).table("SemEval").rows
    assert [row for row in table if row[0] in responses.SCENARIOS] == rows
    # The published scores for this corpus stand below the scores with 5 labels.
    published = [["best [3]", "5", "", "", f1, ""] for f1 in ("0.581", "0.384", "0.375")]
    rows_below = [table[table.index(row) + 1] for row in rows_of_5_labels]
    assert rows_below == published
    assert len(table) == len(rows) + len(published)

    line = last_record(tmp_path)
    assert line["rules"] == "5 labels, mean of test sets"
    assert line["score"] == pytest.approx(sum(macro_f1) / 3, abs=1e-4)


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
def test_test_sets_with_labels_are_predicted_and_scored(write: Write, tmp_path: Path) -> None:
    """A model ignores the labels of the files to predict, so it may be scored on them."""
    train = write_training_answers(write, n_correct=5, other="incorrect")
    path = write("test-unseen-questions/t.xml", question_file("S", {"u.1": "correct"}))
    folders = ["--train_dir", train, "--test_dir", path.parent]
    succeeds([f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, *folders])
    evaluate = evaluation("student_response", tmp_path, "--input_dir", path.parent)
    assert "accuracy 1.0000" in succeeds(evaluate)
    # A model that has learned from the files is not scored on them.
    copy = write("train/copy.xml", path.read_text()).parent
    folders = ["--train_dir", copy, "--test_dir", write_test_answer(write)]
    succeeds([f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, *folders])
    assert "was made from copy.xml, which holds the answers that it is scored" in fails(evaluate)


def write_questions(folder: Path, first_labels: list[str]) -> None:
    """Write 12 questions with 3 answers each; `first_labels` are the labels of the first question.

    All questions have the same words, so that a model of words can learn one from another.
    """
    texts = ["the bulb is lit", "no path is closed", "it is a bulb"]
    for number in range(12):
        labels = ["correct", "contradictory", "irrelevant"] if number else first_labels
        by_id = {f"{number}.{place}": label for place, label in enumerate(labels)}
        (folder / f"{number:02}.xml").write_text(question_file(number, by_id, texts))


@needs_blocks(f"{FOLDER}/sample_model_similarity_boosting.py")
def test_word_features_of_a_training_question_are_learned_from_other_questions(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing the labels of a training question changes no feature of its own answers."""
    test = write("test-unseen-questions/new.xml", question_file("new", {"a.1": ""}, ["a bulb"]))
    train = tmp_path / "train"
    train.mkdir()
    folders = ["--train_dir", train, "--test_dir", test.parent, "--output_dir", tmp_path / "out"]
    monkeypatch.setattr(sys, "argv", ["model", *map(str, folders)])
    # Replace the function that is called with the features of all answers.
    features_of_runs: list[Any] = []

    def keep_features(features: Any, label: Any, train: Any, rows: Any) -> Any:
        """Keep the features and predict label 0 for all answers."""
        features_of_runs.append(features)
        return np.zeros(rows.sum(), int)

    monkeypatch.setattr(similarity_boosting, "predict_labels", keep_features)

    for first_labels in (
        ["correct", "contradictory", "irrelevant"],
        ["irrelevant", "correct", "contradictory"],
    ):
        write_questions(train, first_labels)
        similarity_boosting.main()

    # The first three rows are the answers to the question whose labels change.
    before, after = features_of_runs
    np.testing.assert_array_equal(before[:3], after[:3])
    # The labels do matter to the answers to other questions.
    assert (before[3:] != after[3:]).any()


def write_training_answers(write: Write, n_correct: int, other: str) -> Path:
    """Write a question with some correct answers and one other answer, and return its folder."""
    labels = {"t.2": other, **dict.fromkeys(range(n_correct), "correct")}
    texts = ["it is", *["it is lit"] * n_correct]
    return write("train/t.xml", question_file("Q", labels, texts)).parent


def write_test_answer(write: Write) -> Path:
    """Write a question with one answer, t.1, which has no label; return its folder."""
    return write("test/t.xml", question_file("R", {"t.1": ""})).parent


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_blocks(f"{FOLDER}/sample_model_{name}.py"))
        for name in ("lexical_similarity", "word_svm", "similarity_boosting", "majority")
    ],
)
def test_few_answers_to_learn_from(name: str, write: Write, tmp_path: Path) -> None:
    """Five answers with the most frequent label and one with another are enough."""
    train = write_training_answers(write, n_correct=5, other="incorrect")
    folders = ["--train_dir", train, "--test_dir", write_test_answer(write)]
    done = run([f"{FOLDER}/sample_model_{name}.py", "--output_dir", tmp_path, *folders])
    # scikit-learn may warn of the rare label, so stderr need not be empty.
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "submission.csv").read_text().startswith("id,label\nt.1,")


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
@pytest.mark.parametrize(
    ("n_correct", "other", "message"),
    [
        (4, "incorrect", "the most frequent label, 'correct', has only 4 of 5 answers to"),
        (5, "correct", "all 6 answers to learn from are 'correct', expected at least two"),
    ],
)
def test_too_few_answers_to_learn_from_are_refused(
    n_correct: int, other: str, message: str, write: Write, tmp_path: Path
) -> None:
    train = write_training_answers(write, n_correct, other)
    folders = ["--train_dir", train, "--test_dir", write_test_answer(write)]
    line = fails([f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, *folders])
    assert f"train: {message}" in line


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
def test_flags_of_the_majority_model(write: Write, tmp_path: Path) -> None:
    train = ["--train_dir", write_training_answers(write, n_correct=5, other="incorrect")]
    test = ["--test_dir", write_test_answer(write)]
    model = [f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path]

    assert "--train_dir needs --test_dir" in fails([*model, *train])
    both = "--local predicts the folds, --test_dir another folder; give only one"
    assert both in fails([*model, *train, *test, "--local"])

    line = fails([*model, *train, *test, "--label", "wrong"])
    assert "--label is 'wrong', expected one of correct, incorrect" in line

    succeeds([*model, *train, *test, "--label", "incorrect"])
    assert (tmp_path / "submission.csv").read_text() == "id,label\nt.1,incorrect\n"


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
def test_the_scores_on_real_answers_are_the_measured_ones(real_data: Path, tmp_path: Path) -> None:
    """The figures are those of BEETLE, whose most frequent label is `correct`."""
    related = real_data / "related/student_response"
    beetle = related / "beetle_5way/train/Core"
    sciences = related / "sciEntsBank_3way/train"
    model = f"{FOLDER}/sample_model_majority.py"

    flags = ["--input_dir", beetle, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    succeeds([model, *flags, "--submission_template_dir", tmp_path])
    printed = succeeds(evaluation("student_response", tmp_path, "--input_dir", beetle))
    assert "accuracy 0.4225" in printed
    assert "score 0.1188 (macro F1 of 3,941 answers)" in printed

    # A model of one corpus predicts all answers of the other.
    flags = ["--train_dir", beetle, "--test_dir", sciences, "--output_dir", tmp_path]
    assert "4,969 rows" in succeeds([model, *flags])
