"""Student response analysis: files and labels, measures, word features, and the scripts."""

import argparse
import re
import shutil
import sys
from dataclasses import dataclass
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
    """A file without labels does not show which set of labels applies, so all labels are valid."""
    folder = write("in/a.xml", question_file("a", {"a.1": ""})).parent
    path = write("submission.csv", "id,label\na.1,right\n")
    check = [f"{FOLDER}/check_submission.py", path, "--input_dir", folder]
    assert "row 2 is 'right', expected one of correct" in fails(check)
    # `incorrect` is in the sets of 2 and 3 labels, `irrelevant` is in the set of 5 labels.
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

    def read_test_sets(folder: Path) -> list[str]:
        return list(responses.read_responses(folder, labels="ignored")["scenario"])

    beetle = tmp_path / "beetle"
    assert read_test_sets(beetle) == ["test-unseen-answers", "test-unseen-questions"]
    assert read_test_sets(beetle / "test-unseen-questions/Core") == ["test-unseen-questions"]


@pytest.mark.parametrize(
    ("folder_name", "question", "module", "question_numbers"),
    [
        # `question_numbers` holds the number of the training answer's question, which is 0, and the
        # number of the test answer's question: 0 again if it is the same question.
        ("test-unseen-answers", "Q", "M", [0, 0]),
        ("test-unseen-questions", "R", "M", [0, 1]),
        # The same question text in another module counts as another question.
        ("test-unseen-domains", "Q", "N", [0, 1]),
        ("anything", "Q", "M", [0, 0]),
    ],
)
def test_test_answers_are_appended_to_training_answers(
    write: Write, folder_name: str, question: str, module: str, question_numbers: list[int]
) -> None:
    """A test answer gets the number of a training question only if it answers the same question.

    Questions are the same if their text and their module are equal. The training answer "t.1"
    answers question Q of module M, and the test answer "a.1" answers `question` of `module`.
    """
    train_path = write("train/t.xml", question_file("Q", {"t.1": "correct"}, module="M"))
    train = responses.read_responses(train_path.parent)
    test_xml = question_file(question, {"a.1": "correct"}, module=module)
    test_folder = write(f"{folder_name}/a.xml", test_xml).parent
    test = responses.read_responses(test_folder, labels="ignored")

    answers = responses.append_test_answers(train, test)

    assert answers["question"].tolist() == question_numbers
    # The codes of the labels: the training answer has the first label (0), and the test answer has
    # no label (-1).
    assert answers["label"].cat.codes.tolist() == [0, -1]
    # The challenge has sets of 2, 3 and 5 labels. Here only the label `correct` occurs, which is in
    # all three sets. In this case the kit takes the set of 5 labels.
    assert responses.labels_of(answers) == [*responses.LABEL_SETS[5]]
    # A folder whose name begins with "test" holds a test set. Its answers must not be used as
    # training answers.
    if folder_name.startswith("test"):
        answers_of_test_set = responses.read_responses(test_folder)
        with pytest.raises(InputError, match=r"a.xml: belongs to a test set, expected training"):
            responses.append_test_answers(answers_of_test_set, train)


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


def test_two_test_files_may_hold_answers_to_one_new_question(write: Write) -> None:
    """The question is new in both files, although the second file shares it with the first.

    A test set of new questions accepts the two files. A test set of new answers refuses them.
    """
    train_path = write("train/t.xml", question_file("Q", {"t.1": "correct"}))
    train = responses.read_responses(train_path.parent)

    def read_test_set(name: str) -> pd.DataFrame:
        """Write the two files of the new question R into a test set; return their answers."""
        write(f"{name}/a.xml", question_file("R", {"a.1": "correct"}))
        path = write(f"{name}/b.xml", question_file("R", {"b.1": "correct"}))
        return responses.read_responses(path.parent, labels="ignored")

    new_questions = read_test_set("test-unseen-questions")
    assert responses.append_test_answers(train, new_questions)["question"].tolist() == [0, 1, 1]
    new_answers = read_test_set("test-unseen-answers")
    with pytest.raises(InputError, match=r"a.xml: question 'R' .* is not in the training files"):
        responses.append_test_answers(train, new_answers)


@dataclass(frozen=True)
class LabelledQuestions:
    """24 questions with one labelled answer each."""

    # The folder of the questions. Beside it lies folds.csv, which divides the answers into three
    # folds of eight answers each.
    folder: Path
    # The label of each answer, coded as a number: the position of the label in the set of labels.
    # In arrays of codes, -1 means that the label is unknown.
    label: np.ndarray

    def flags(self, **changes: Any) -> argparse.Namespace:
        """Return the flags of a model that predicts the folds; `changes` replaces some of them."""
        flags: dict[str, Any] = {
            "input_dir": self.folder,
            "submission_template_dir": self.folder.parent,
            "submission_template_file": "folds.csv",
            "train_dir": None,
            "test_dir": None,
            "local": False,
        }
        return argparse.Namespace(**{**flags, **changes})


@pytest.fixture
def labelled_questions(write: Write, tmp_path: Path) -> LabelledQuestions:
    """Write 24 questions with one labelled answer each, and a file of three folds."""
    for number, name in enumerate(["correct", "contradictory", "irrelevant"] * 8):
        write(f"xml/{number}.xml", question_file(number, {f"a.{number}": name}))
    folds = [f"a.{number},{number // 8}\n" for number in range(24)]
    write("folds.csv", "id,fold\n" + "".join(folds))
    folder = tmp_path / "xml"
    label = responses.read_responses(folder)["label"].cat.codes.to_numpy()
    return LabelledQuestions(folder, label)


def test_models_never_see_the_labels_of_the_fold_to_predict(
    labelled_questions: LabelledQuestions,
) -> None:
    answers, fits = responses.read_fits(labelled_questions.flags())
    assert answers["label"].isna().all()
    assert len(fits) == 3
    for train, test, label in fits:
        assert (train == ~test).all()
        assert test.sum() == 8
        assert (label[train] == labelled_questions.label[train]).all()
        assert (label[test] == -1).all()


def test_models_never_see_the_label_of_a_test_answer(
    labelled_questions: LabelledQuestions, write: Write
) -> None:
    """If a model predicts a file with labels, it gets the answers without these labels.

    The model learns from 24 labelled answers (`labelled_questions`) and predicts one, whose file
    lies in another folder. `read_fits` returns the table of all 25 answers and one fit. The fit
    says which answers to learn from, which answers to predict, and which label each answer has, as
    a code. The code -1 stands for no label.
    """
    test_dir = write("test/b.xml", question_file("Q", {"b.1": "correct"})).parent
    flags = labelled_questions.flags(train_dir=labelled_questions.folder, test_dir=test_dir)

    answers, fits = responses.read_fits(flags)

    [(train, test, label)] = fits
    label_of_test_answer = -1
    expected_labels = [*labelled_questions.label, label_of_test_answer]
    assert label.tolist() == expected_labels
    assert answers["label"].cat.codes.tolist() == expected_labels
    assert train.tolist() == [True] * 24 + [False]
    assert test.tolist() == [False] * 24 + [True]


def test_a_matrix_gives_the_papers_table() -> None:
    """The counts of the system BEETLE II give the measures that are published with the counts.

    Both are in the paper of Dzikovska, Nielsen and Brew (2012).
    """
    # Figure 3 of the paper: a row for each predicted label, a column for each true label. The rows
    # and the columns have the labels in the order of the set of 5 labels. The sixth row counts
    # answers that the system could not interpret.
    counts = np.array([
        (617, 20, 23, 0, 3),
        (249, 332, 146, 29, 20),
        (68, 38, 149, 3, 0),
        (4, 22, 23, 15, 1),
        (3, 3, 1, 1, 94),
        (216, 211, 314, 38, 86),
    ])  # fmt: skip
    # Table 2 of the paper: precision, recall and F1.
    table = np.array([
        # The five labels.
        (0.93, 0.53, 0.68),
        (0.43, 0.53, 0.47),
        (0.58, 0.23, 0.33),
        (0.23, 0.17, 0.20),
        (0.92, 0.46, 0.61),
        # The macro average, the micro average, and the measures of needing corrective feedback.
        (0.62, 0.39, 0.46),
        (0.71, 0.44, 0.53),
        (0.73, 0.56, 0.63),
    ])  # fmt: skip
    measures = responses.evaluate(pd.DataFrame(counts, columns=responses.LABEL_SETS[5]))
    # The paper rounds to two decimals.
    np.testing.assert_allclose(measures, table, atol=0.005 + 1e-9)
    # Right predictions lie on the diagonal, where predicted and true label are equal.
    accuracy = np.trace(counts) / counts.sum()
    assert measures.loc["micro average", "recall"] == pytest.approx(accuracy)


# True labels and predictions of six answers. Each of the three test sets that `score_test_sets`
# makes has these six answers.
SIX_ANSWERS = pd.DataFrame(
    [
        ("correct", "correct"),
        ("correct", "correct"),
        ("correct", "contradictory"),
        ("partially_correct_incomplete", "correct"),
        ("contradictory", "contradictory"),
        ("non_domain", responses.UNINTERPRETABLE),
    ],
    columns=["label", "prediction"],
)
# The F1 of each of the five labels in SIX_ANSWERS, worked out by hand. For example "correct": 2 of
# 3 predictions and 2 of 3 true labels match, so F1 is 2/3. By the rules of the task's scorer, F1 is
# 1 for a label that is neither given nor predicted.
F1_BY_LABEL = {
    "correct": 2 / 3,
    "partially_correct_incomplete": 0,
    "contradictory": 2 / 3,
    "irrelevant": 1,
    "non_domain": 0,
}
MACRO_F1 = sum(F1_BY_LABEL.values()) / 5
MACRO_F1_WITHOUT_NON_DOMAIN = (sum(F1_BY_LABEL.values()) - F1_BY_LABEL["non_domain"]) / 4


def score_test_sets(corpus: str) -> pd.DataFrame:
    """Score the three test sets of a corpus, merged to different numbers of labels.

    The table has a row for each test set and number of labels.
    """
    label = pd.Categorical([*SIX_ANSWERS["label"]] * 3, responses.LABEL_SETS[5])
    answers = pd.DataFrame({"label": label, "scenario": np.repeat(responses.SCENARIOS, 6)})
    predictions = [*SIX_ANSWERS["prediction"]] * 3
    scores = responses.score_test_sets(answers, predictions, corpus)
    assert list(scores.columns) == responses.HEADER
    return scores.set_axis(
        ["test_set", "n_labels", "n_answers", "accuracy", "macro_f1", "weighted_f1"], axis=1
    )


@pytest.mark.parametrize(
    ("corpus", "macro_f1"),
    [
        ("beetle", [MACRO_F1, MACRO_F1, MACRO_F1]),
        # In sciEntsBank, `non_domain` counts only in the last test set, the set of unseen domains.
        ("sciEntsBank", [MACRO_F1_WITHOUT_NON_DOMAIN, MACRO_F1_WITHOUT_NON_DOMAIN, MACRO_F1]),
    ],
)
def test_five_labels_are_measured_as_by_the_tasks_scorer(
    corpus: str, macro_f1: list[float]
) -> None:
    scores = score_test_sets(corpus)
    five = scores[scores["n_labels"] == 5]
    assert five["test_set"].tolist() == list(responses.SCENARIOS)
    assert five["n_answers"].tolist() == [6, 6, 6]
    assert five["accuracy"].tolist() == [1 / 2] * 3
    assert five["macro_f1"].tolist() == pytest.approx(macro_f1)
    assert five["weighted_f1"].tolist() == pytest.approx([4 / 9] * 3)


@pytest.mark.parametrize(
    ("n_labels", "macro_f1", "weighted_f1"),
    [
        # With three labels: `correct`, `contradictory` and `incorrect`.
        (3, (2 / 3 + 2 / 3 + 0) / 3, 4 / 9),
        # With two labels: `correct` and `incorrect`.
        (2, (2 / 3 + 2 / 5) / 2, 8 / 15),
    ],
)
@pytest.mark.parametrize("corpus", ["beetle", "sciEntsBank"])
def test_fewer_labels_are_measured_as_by_the_tasks_scorer(
    corpus: str, n_labels: int, macro_f1: float, weighted_f1: float
) -> None:
    scores = score_test_sets(corpus)
    fewer = scores[scores["n_labels"] == n_labels]
    assert fewer["test_set"].tolist() == list(responses.SCENARIOS)
    assert fewer["n_answers"].tolist() == [6, 6, 6]
    assert fewer["accuracy"].tolist() == [1 / 2] * 3
    assert fewer["macro_f1"].tolist() == pytest.approx([macro_f1] * 3)
    assert fewer["weighted_f1"].tolist() == pytest.approx([weighted_f1] * 3)


def test_test_sets_are_listed_with_5_then_3_then_2_labels() -> None:
    scores = score_test_sets("beetle")
    assert scores["n_labels"].tolist() == [5, 3, 2] * 3
    assert scores["test_set"].tolist() == np.repeat(responses.SCENARIOS, 3).tolist()


def test_words_drop_apostrophes() -> None:
    words = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert words == ["the", "bulb", "isnt", "in", "a", "closed", "path", "so", "it", "is", "out"]


def test_shared_phrases_by_hand() -> None:
    left = ["the", "bulb", "isnt", "in", "a", "closed", "path", "so", "it", "is", "out"]
    right = ["it", "is", "not", "in", "a", "closed", "path"]
    # The shared phrases are "in a closed path" and "it is".
    assert similarity.shared_phrases(left, right) == [4, 2]
    overlap, f1, lesk, cosine = similarity.phrase_measures(left, right)
    assert overlap == 4 + 2
    # The two texts have 11 and 7 words.
    assert f1 == pytest.approx(2 * 6 / (11 + 7))
    assert lesk == pytest.approx((4**2 + 2**2) / (11 * 7))
    assert cosine == pytest.approx(6 / (11 * 7) ** 0.5)


def test_measures_are_those_of_the_packages_own_example() -> None:
    """The measures equal those that the Perl package Text::Similarity publishes as an example.

    The example is in version 0.06 of the package.
    """
    # The published example leaves out stop words, so the lists here have no stop words.
    left = ["winston", "churchill", "prime", "minister", "england"]
    right = ["prime", "minister", "england", "winston", "churchill", "came", "visit"]
    published = (5, 0.833333333333333, 0.371428571428571, 0.845154254728517)
    assert similarity.phrase_measures(left, right) == pytest.approx(published, abs=1e-14)


def test_the_package_keeps_apostrophes_and_hyphens_inside_words() -> None:
    text = "The 'bulb' isn't burnt-out--it_is [1.5] = 'LIT'."
    words = ["the", "bulb", "isn't", "burnt-out", "it", "is", "[1", "5]", "=", "lit"]
    assert similarity.words_as_in_package(text) == words


def test_similarity_on_real_answers_equals_the_figures_of_the_tasks_organisers(
    real_data: Path,
) -> None:
    """The organisers computed the same measures with the package Text::Similarity.

    Their figures are in the file semevalFormatProcessing-3way/beetleBaselineFeatures.arff of the
    repository https://github.com/ashudeep/Student-Response-Analysis. The three answers below are
    difficult cases: they have hyphens, or several references to compare with.
    """
    folder = real_data / "related/student_response/beetle_5way/train/Core"
    answers = responses.read_responses(folder)
    measures = dict(zip(answers["id"], similarity.describe(answers).tolist(), strict=True))
    # Each answer has two lines of measures, in the order overlap, F1, Lesk and cosine. The first
    # line compares the answer with the question, the second compares it with the references.
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
    """Three answers to "Which bulb?" are compared with the reference answer "the zebra bulb".

    Only the word "the" is in all three answers. Each other word is in one answer.
    """
    texts = ["the", "the zebra", "not the bulbs"]
    xml = question_file("a", dict.fromkeys("123", "correct"), texts)
    xml = xml.replace("Why?", "Which bulb?").replace("Because.", "the zebra bulb")
    answers = responses.read_responses(write("a.xml", xml).parent)
    all_answers = np.ones(3, bool)

    features = alignment.Matches(answers).describe(train=all_answers)

    # The weight of a word is its inverse document frequency plus a least rarity. With three
    # training answers, the inverse document frequency is log((3 + 1) / (answers with the word +
    # 1)). The weight of a function word, such as "the" and "not", is multiplied by a factor. The
    # variables `zebra`, `bulb`, `the` and `negation` are the weights of these words.
    least_rarity = 0.3
    function_factor = 0.3
    zebra = bulb = np.log(4 / 2) + least_rarity
    the = (np.log(4 / 4) + least_rarity) * function_factor
    negation = (np.log(4 / 2) + least_rarity) * function_factor
    reference = the + zebra + bulb
    # The recall of an answer is the sum of the weights of the words that the answer and the
    # reference share, divided by the sum of the weights of the reference's words.
    recall = np.array([the, the + zebra, the + bulb]) / reference
    # The precision of an answer is the sum of the weights of the shared words, divided by the sum
    # of the weights of the answer's words. The first two answers have only shared words.
    precision = np.array([1, 1, (the + bulb) / (the + bulb + negation)])
    # The reference has two words that are not in the question: "the" and "zebra".
    recall_of_new = np.array([the, the + zebra, the]) / (the + zebra)
    expected = {
        "recall": recall,
        "precision": precision,
        "f1": 2 * recall * precision / (recall + precision),
        "recall of what is new": recall_of_new,
        # The first answer lacks the words "zebra" and "bulb" of the reference, which weigh the
        # same.
        "largest weight of a missing word": [bulb, bulb, zebra],
        # The reference has two content words, "zebra" and "bulb". Endings do not count.
        "recall of content words": [0, 1 / 2, 1 / 2],
        # The reference has two pairs of neighbouring words, "the zebra" and "zebra bulb".
        "recall of word pairs": [0, 1 / 2, 0],
        # Only the third answer has a negation, and the reference has none.
        "negated unlike the reference": [0, 0, 1],
    }
    for name, values in expected.items():
        assert features[name].tolist() == pytest.approx(values), name


# The symbols of the reference are B, C and 2. It has nine words, five of which are content words
# (bulbs, B, C, path, 2). It has eight pairs of neighbouring words and seven triples.
REFERENCE = "the bulbs B and C are on path 2"
ANSWERS = [
    REFERENCE,
    # This answer shares two pairs of words with the reference: "path 2" and, without endings, "bulb
    # B".
    "path 2 and bulb B",
    # This answer shares the pairs "on path" and "path 2" and the triple "on path 2". It has the
    # symbols "D" and "2". The reference has the symbol "2", but not "D".
    "bulb D is on path 2",
    # This answer has no symbol and no content word: "a" is a function word, not the name of a bulb.
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
    # The reference has 9 words, the answers have 9, 5, 6 and 2 words. Before the division, one is
    # added to each number, so that the logarithm also exists for an answer without words.
    "log of the ratio of lengths": [0, np.log(6 / 10), np.log(7 / 10), np.log(3 / 10)],
}
# The question is "Why is B out?". New words are those that are not in the question.
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


def test_features_depend_neither_on_labels_nor_on_other_answers_to_predict(write: Write) -> None:
    """The features of a training answer do not depend on the text of an answer to predict.

    There are two answers: a training answer and an answer to predict. They have no labels, so the
    features cannot depend on labels. The test changes the text of the answer to predict. At the
    end, the two answers exchange their roles: this must change the features.
    """

    def describe(second_text: str, *, is_train: tuple[bool, bool] = (True, False)) -> Any:
        """Return the features of both answers, a row each, given the text of the second answer.

        `is_train` tells which of the two answers is the training answer.
        """
        texts = ["the bulb is lit", second_text]
        path = write("a.xml", question_file("a", {"a.1": "", "a.2": ""}, texts))
        answers = responses.read_responses(path.parent, labels="ignored")
        return alignment.Matches(answers).describe(np.array(is_train)).to_numpy()

    training_before, predicted_before = describe("because")
    assert np.isfinite([training_before, predicted_before]).all()
    for text in ("no", ""):
        training_after, predicted_after = describe(text)
        assert np.isfinite([training_after, predicted_after]).all()
        np.testing.assert_array_equal(training_after, training_before)
        assert (predicted_after != predicted_before).any()
    # The fewer training answers have a word, the rarer it is. So if the other answer is the
    # training answer, features must change.
    with_exchanged_roles = describe("because", is_train=(False, True))
    assert (with_exchanged_roles != [training_before, predicted_before]).any()


def test_words_are_marked_by_whether_the_reference_has_them(write: Write) -> None:
    """A mark before a word tells whether the answer, the reference or both have the word.

    `=` marks words of both answer and reference, `+` marks words of the answer alone, and `-` words
    of the reference alone.
    """
    text = question_file("a", {"a.1": "", "a.2": ""}, ["because lamp", "..."])
    answers = responses.read_responses(write("a.xml", text).parent, labels="ignored")
    # The second answer, "...", has no words.
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
    """Return the command that scores a submission for four answers.

    The answers have the labels `correct` (two answers), `contradictory` and `incorrect`. The
    submission has the right label for answer a.1 only.
    """
    for name, second in (("a", "contradictory"), ("b", "incorrect")):
        labels = {f"{name}.1": "correct", f"{name}.2": second}
        write(f"xml/{name}.xml", question_file(name, labels))
    rows = "a.1,correct\na.2,correct\nb.1,contradictory\nb.2,contradictory\n"
    write("submission.csv", f"id,label\n{rows}")
    return evaluation("student_response", tmp_path, "--input_dir", tmp_path / "xml")


def test_an_evaluation_by_hand(evaluate_three_labels: list[object], tmp_path: Path) -> None:
    """The evaluation shows the measures of each label, their averages and a confusion matrix.

    The four answers have the labels correct, contradictory, correct, incorrect. The predictions are
    correct, correct, contradictory, contradictory. So one of four predictions is right. The
    measures are in the output and on the page.
    """
    printed = succeeds(evaluate_three_labels)
    assert "score 0.1667 (macro F1 of 4 answers)\naccuracy 0.2500\n" in printed
    # In each row of this example, precision, recall and F1 are equal.
    value_by_row = {
        # Two answers have the label `correct`, two are predicted to have it, and one is both.
        "correct": "0.5000",
        # No answer with these labels is predicted right.
        "contradictory": "0.0000",
        "incorrect": "0.0000",
        # The mean over the three labels: (1/2 + 0 + 0) / 3.
        "macro average": "0.1667",
        # The mean over the four answers' labels: (1/2 + 0 + 1/2 + 0) / 4.
        "micro average": "0.2500",
        # Answers with any label but `correct` need corrective feedback. Two answers need it, two
        # are predicted to need it, and one is both.
        "corrective feedback": "0.5000",
    }
    page = page_in(tmp_path)
    rows = page.table("Micro").rows
    assert rows == [[name, value, value, value] for name, value in value_by_row.items()]
    printed_rows = table_in(printed)
    assert rows == [[name, *printed_rows[name]] for name in value_by_row]
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
    """With --ways 2, the label `contradictory` counts as `incorrect`.

    Three labels cannot be turned into five.
    """
    printed = succeeds([*evaluate_three_labels, "--ways", "2"])
    assert "contradictory" not in printed
    assert "score 0.5000" in printed
    assert last_record(tmp_path)["rules"] == "2 labels"
    assert "has only 3 labels" in fails([*evaluate_three_labels, "--ways", "5"])


def test_folds_by_question(challenge_kit: Kits) -> None:
    """All answers to a question are in the same fold of the sample data."""
    data = challenge_kit("student_response") / FOLDER / "data"
    folds = pd.read_csv(data / "test_input/folds.csv", dtype=str)
    # The id of an answer begins with the id of the question, up to the first point.
    question = folds["id"].str.split(".").str[0]
    different_pairs = set(zip(question, folds["fold"], strict=True))
    n_questions = len(list((data / "train_data").glob("*.xml")))
    assert len(different_pairs) == n_questions


def test_folds_by_module(write: Write, tmp_path: Path) -> None:
    """With --by_domain, questions of the same module are in the same fold.

    Four questions belong to three modules: a and c to module M, b to N, and d to O.
    """
    for name, module in {"a": "M", "b": "N", "c": "M", "d": "O"}.items():
        xml = question_file(name, {f"{name}.1": "correct"}, module=module)
        write(f"test-unseen-domains/{name}.xml", xml)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out", "--by_domain"]
    split = [f"{FOLDER}/local_data_split.py", *flags]

    succeeds([*split, "--folds", "3"])

    fold = pd.read_csv(tmp_path / "out/folds.csv", index_col="id")["fold"]
    assert fold["a.1"] == fold["c.1"]
    assert fold.nunique() == 3
    # The default number of folds, 10, is too large for three modules.
    assert "--folds is 10, expected a whole number from 2 to the number of ex" in fails(split)
    # A question without a module cannot be put into a fold by its module.
    write("test-unseen-domains/d.xml", question_file("d", {"d.1": "correct"}, module=""))
    line = fails(split)
    assert "d.xml: <question> has no attribute 'module', which --by_domain needs" in line


def test_label_distribution(write: Write, tmp_path: Path) -> None:
    """The printed table counts the answers of each label in each folder.

    The table has a column for each folder and a row for each label. A cell holds a count and a
    share. There are sets of 5, 3 and 2 labels. A column uses only the sets that contain all labels
    of its folder. If none of these sets contains the label of a row, the cell is empty.

    Folder x has the labels `correct` and `irrelevant`, which only the set of 5 labels contains.
    Folder y has the labels `correct` and `incorrect`, which the sets of 3 and 2 labels contain.
    """
    # For each question, its folder and name, and the labels of its two answers.
    labels_by_question = {
        "x/a": ("correct", "irrelevant"),
        "y/b": ("correct", "incorrect"),
        "y/c": ("correct", "correct"),
    }
    for name, (first_label, second_label) in labels_by_question.items():
        labels = {f"{name}.1": first_label, f"{name}.2": second_label}
        write(f"{name}.xml", question_file(name, labels))
    folders = [tmp_path / "x", tmp_path / "y"]
    printed = succeeds([f"{FOLDER}/label_distribution.py", "--input_dir", *folders])
    rows = table_in(printed)
    # For each row, the words in its cells: first in the cell of folder x, then in that of folder y.
    # An empty cell has no words.
    expected = {
        "correct": ["1", "(50.0%)", "3", "(75.0%)"],
        # Only the set of 5 labels contains these two labels, so the cells of folder y are empty.
        "irrelevant": ["1", "(50.0%)"],
        "non_domain": ["0", "(0.0%)"],
        # The set of 5 labels does not contain this label, so the cell of folder x is empty.
        "incorrect": ["1", "(25.0%)"],
        "answers": ["2", "4"],
        "questions": ["1", "2"],
        "modules": ["1", "1"],
    }
    assert {name: rows[name] for name in expected} == expected


@dataclass(frozen=True)
class ScoredTestSets:
    """The three test sets of the sample, predicted from files without labels and scored."""

    # The printed rows: test set, number of labels, answers, accuracy, macro F1, weighted F1.
    rows: list[list[str]]
    # The rows of the table on the page of the scores.
    table: list[list[str]]
    # The line that was added to the record of scores.
    record: dict[str, Any]

    @property
    def rows_of_5_labels(self) -> list[list[str]]:
        return [row for row in self.rows if row[1] == "5"]

    @property
    def macro_f1(self) -> list[float]:
        """The macro F1 of each test set, measured with five labels."""
        return [float(row[4]) for row in self.rows_of_5_labels]


@pytest.fixture(scope="module")
def scored_test_sets(
    challenge_kit: Kits, tmp_path_factory: pytest.TempPathFactory
) -> ScoredTestSets:
    """Predict and score the test sets of the simulated sample.

    To save time, only two of the seven domains are used. The training files have labels. The test
    files that the model gets have none.
    """
    kit = challenge_kit("student_response")
    data = kit / FOLDER / "data"
    folder = tmp_path_factory.mktemp("test_sets")
    train = folder / "train"
    # The page shows published scores only if the folder is named like the corpus, here sciEntsBank.
    labelled_test = folder / "sciEntsBank"
    unlabelled_test = folder / "unlabelled"
    shutil.copytree(data / "train_data", train)
    shutil.copytree(data / "test_data", labelled_test)
    for path in [*labelled_test.rglob("*.xml"), *train.rglob("*.xml")]:
        # The name of a file begins with its domain, such as D0. Keep the files of two domains.
        if not path.name.startswith(("D0-", "D5-")):
            path.unlink()
    shutil.copytree(labelled_test, unlabelled_test)
    for path in unlabelled_test.rglob("*.xml"):
        # The attribute `accuracy` is the label of an answer.
        path.write_text(re.sub(r' accuracy="\w+"', "", path.read_text()))

    model = f"{FOLDER}/sample_model_similarity_boosting.py"
    folders = ["--train_dir", train, "--test_dir", unlabelled_test, "--output_dir", folder]
    succeeds([model, *folders], kit=kit)
    evaluate = evaluation("student_response", folder, "--input_dir", labelled_test)
    printed = succeeds(evaluate, kit=kit)
    return ScoredTestSets(
        rows=[line.split() for line in printed.splitlines() if line.startswith("test-unseen")],
        # The table whose heading begins with "SemEval", the name of the competition of 2013.
        table=page_in(folder).table("SemEval").rows,
        record=last_record(folder),
    )


with_boosting = needs_blocks(f"{FOLDER}/sample_model_similarity_boosting.py")


@with_boosting
def test_every_test_set_is_scored_with_5_3_and_2_labels(scored_test_sets: ScoredTestSets) -> None:
    expected = []
    for scenario in responses.SCENARIOS:
        expected += [[scenario, "5"], [scenario, "3"], [scenario, "2"]]
    assert [row[:2] for row in scored_test_sets.rows] == expected


@with_boosting
def test_boosting_beats_a_constant_label_on_every_test_set(
    scored_test_sets: ScoredTestSets,
) -> None:
    """On each test set, gradient boosting beats a model that always predicts the same label.

    Such a model has an F1 above 0 for at most one label. The macro F1 is the mean over four or five
    labels, so it is at most a quarter.
    """
    assert min(scored_test_sets.macro_f1) > 0.5


@with_boosting
def test_the_page_shows_the_published_scores_below_those_with_5_labels(
    scored_test_sets: ScoredTestSets,
) -> None:
    expected = []
    published = dict(zip(responses.SCENARIOS, ("0.581", "0.384", "0.375"), strict=True))
    for row in scored_test_sets.rows:
        expected.append(row)
        scenario, n_labels, *_ = row
        if n_labels == "5":
            expected.append(["best [3]", "5", "", "", published[scenario], ""])
    assert scored_test_sets.table == expected


@with_boosting
def test_the_record_holds_the_mean_of_the_test_sets(scored_test_sets: ScoredTestSets) -> None:
    record = scored_test_sets.record
    assert record["rules"] == "5 labels, mean of test sets"
    # The printed figures have four decimals.
    assert record["score"] == pytest.approx(np.mean(scored_test_sets.macro_f1), abs=1e-4)


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
def test_test_sets_with_labels_are_predicted_and_scored(write: Write, tmp_path: Path) -> None:
    """A model ignores the labels in the files that it predicts, so its score is valid."""
    train = write_training_answers(write, n_correct=5, other="incorrect")
    path = write("test-unseen-questions/t.xml", question_file("S", {"u.1": "correct"}))
    folders = ["--train_dir", train, "--test_dir", path.parent]
    succeeds([f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, *folders])
    evaluate = evaluation("student_response", tmp_path, "--input_dir", path.parent)
    assert "accuracy 1.0000" in succeeds(evaluate)


@needs_blocks(f"{FOLDER}/sample_model_majority.py")
def test_a_model_is_not_scored_on_answers_that_it_has_learned_from(
    write: Write, tmp_path: Path
) -> None:
    """A score is refused if the training folder holds a copy of a file of the test set."""
    write_training_answers(write, n_correct=5, other="incorrect")
    path = write("test-unseen-questions/t.xml", question_file("S", {"u.1": "correct"}))
    train = write("train/copy.xml", path.read_text()).parent
    folders = ["--train_dir", train, "--test_dir", write_test_answer(write)]
    succeeds([f"{FOLDER}/sample_model_majority.py", "--output_dir", tmp_path, *folders])
    evaluate = evaluation("student_response", tmp_path, "--input_dir", path.parent)
    assert "was made from copy.xml, which holds the answers that it is scored" in fails(evaluate)


def write_questions(folder: Path, first_labels: list[str]) -> None:
    """Write 12 questions with 3 answers each; `first_labels` are the labels of the first question.

    The answers to all questions have the same words. So a model of words can learn about one
    question from another.
    """
    texts = ["the bulb is lit", "no path is closed", "it is a bulb"]
    other_labels = ["correct", "contradictory", "irrelevant"]
    for question in range(12):
        labels = first_labels if question == 0 else other_labels
        label_by_id = {f"{question}.{answer}": label for answer, label in enumerate(labels)}
        xml = question_file(question, label_by_id, texts)
        (folder / f"{question:02}.xml").write_text(xml)


@needs_blocks(f"{FOLDER}/sample_model_similarity_boosting.py")
def test_word_features_of_a_training_question_are_learned_from_other_questions(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing the labels of a training question changes no feature of the question's answers.

    The word features of an answer are predictions of a model of words. For a training question,
    this model must be learned from the other training questions. The script runs twice, and the
    labels of the first question change between the runs. The features of both runs are compared.
    """
    xml = question_file("new", {"a.1": ""}, ["a bulb"])
    test_folder = write("test-unseen-questions/new.xml", xml).parent
    train_folder = tmp_path / "train"
    train_folder.mkdir()
    flags = ["--train_dir", train_folder, "--test_dir", test_folder]
    flags += ["--output_dir", tmp_path / "out"]
    monkeypatch.setattr(sys, "argv", ["model", *map(str, flags)])
    # A table of the features of all answers for each run of the script.
    features_of_runs: list[Any] = []

    def keep_features(features: Any, label: Any, train: Any, rows: Any) -> Any:
        """Keep the features, and predict the label 0 for all answers to predict (`rows`).

        This takes the place of the function that learns to predict labels from the features.
        """
        features_of_runs.append(features)
        return np.zeros(rows.sum(), int)

    monkeypatch.setattr(similarity_boosting, "predict_labels", keep_features)

    write_questions(train_folder, first_labels=["correct", "contradictory", "irrelevant"])
    similarity_boosting.main()
    write_questions(train_folder, first_labels=["irrelevant", "correct", "contradictory"])
    similarity_boosting.main()

    # The first three rows are the answers to the question whose labels change.
    before, after = features_of_runs
    np.testing.assert_array_equal(before[:3], after[:3])
    # The changed labels must change features of answers to other questions, because the word
    # features of these answers are learned from the first question too.
    assert (before[3:] != after[3:]).any()


def write_training_answers(write: Write, n_correct: int, other: str) -> Path:
    """Write a question with `n_correct` correct answers and one answer with the label `other`.

    Returns the folder of the question.
    """
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
    """A model can learn from few answers: five with one label, and one with another label."""
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
    """The majority model still gets the scores on BEETLE that are worked out below.

    BEETLE is a corpus of real answers, whose most frequent label is `correct`. The model can also
    learn from BEETLE and predict another corpus, SciEntsBank.
    """
    related = real_data / "related/student_response"
    beetle = related / "beetle_5way/train/Core"
    sci_ents_bank = related / "sciEntsBank_3way/train"
    model = f"{FOLDER}/sample_model_majority.py"

    flags = ["--input_dir", beetle, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    succeeds([model, *flags, "--submission_template_dir", tmp_path])
    printed = succeeds(evaluation("student_response", tmp_path, "--input_dir", beetle))
    # 1,665 of the 3,941 answers are correct. The model predicts `correct` for all answers. So the
    # accuracy is 1665 / 3941, the F1 of `correct` is 2 · 1665 / (1665 + 3941), and the macro F1 is
    # a fifth of this, since the F1 of the four other labels is 0.
    assert "accuracy 0.4225" in printed
    assert "score 0.1188 (macro F1 of 3,941 answers)" in printed

    # A model that has learned from BEETLE predicts all 4,969 answers of SciEntsBank.
    flags = ["--train_dir", beetle, "--test_dir", sci_ents_bank, "--output_dir", tmp_path]
    assert "4,969 rows" in succeeds([model, *flags])
