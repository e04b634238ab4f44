"""Student responses: the paper's tables, the measures of similarity, bad input, the scripts."""

import re
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from common.errors import InputError

alignment = import_module("alignment")
grading_measures = import_module("grading_measures")
responses = import_module("responses")
semeval_2013 = import_module("semeval_2013")
similarity = import_module("similarity")
train_and_test = import_module("train_and_test")

Write = Callable[[str, str | bytes], Path]
FOLDER = "related_challenges/student_response"

# Dzikovska, Nielsen, Brew (2012), figures 3 and 4: predictions in rows, gold labels in columns.
BEETLE_GOLD = (1157, 626, 656, 86, 204)
SCIENTSBANK_GOLD = (2095, 1431, 526, 1175, 24)
MATRICES = {
    "BEETLE lexical": [
        (870, 187, 199, 20, 2),
        (138, 239, 178, 24, 11),
        (139, 153, 221, 33, 22),
        (3, 20, 12, 2, 1),
        (7, 27, 46, 7, 168),
    ],
    "BEETLE II": [
        (617, 20, 23, 0, 3),
        (249, 332, 146, 29, 20),
        (68, 38, 149, 3, 0),
        (4, 22, 23, 15, 1),
        (3, 3, 1, 1, 94),
        (216, 211, 314, 38, 86),
    ],
    "SciEntsBank lexical": [
        (1213, 553, 209, 392, 2),
        (432, 497, 128, 241, 2),
        (115, 109, 58, 74, 3),
        (335, 272, 131, 468, 17),
        (0, 0, 0, 0, 0),
    ],
    "BEETLE majority": [BEETLE_GOLD, *[(0,) * 5] * 4],
    "SciEntsBank majority": [SCIENTSBANK_GOLD, *[(0,) * 5] * 4],
}
# Tables 2 and 3: by label, macro average, micro average, corrective feedback.
TABLES = {
    "BEETLE lexical": (
        "0.68 0.75 0.72  0.41 0.38 0.39  0.39 0.34 0.36  0.05 0.02 0.03  0.66 0.82 0.73 "
        "0.44 0.46 0.45  0.53 0.55 0.54  0.80 0.74 0.77"
    ),
    "BEETLE II": (
        "0.93 0.53 0.68  0.43 0.53 0.47  0.58 0.23 0.33  0.23 0.17 0.20  0.92 0.46 0.61 "
        "0.62 0.39 0.46  0.71 0.44 0.53  0.73 0.56 0.63"
    ),
    "SciEntsBank lexical": (
        "0.51 0.58 0.54  0.38 0.35 0.36  0.16 0.11 0.13  0.38 0.40 0.39  0 0 0 "
        "0.29 0.29 0.29  0.41 0.43 0.42  0.69 0.63 0.66"
    ),
    "BEETLE majority": (
        "0.42 1.00 0.60  0 0 0  0 0 0  0 0 0  0 0 0  0.09 0.20 0.12  0.18 0.42 0.25  0 0 0"
    ),
    "SciEntsBank majority": (
        "0.40 1.00 0.57  0 0 0  0 0 0  0 0 0  0 0 0  0.08 0.20 0.11  0.16 0.40 0.23  0 0 0"
    ),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_give_the_papers_tables(name: str) -> None:
    result = grading_measures.evaluate(np.array(MATRICES[name]))
    found = np.vstack([result.by_label, result.macro, result.micro, result.corrective])
    expected = np.array(TABLES[name].split(), float).reshape(-1, 3)
    deviation = np.abs(found - expected)
    if name == "BEETLE lexical":
        # The table has 0.72 for the F1 of "correct"; the matrix gives 0.7146.
        assert found[0, 2] == pytest.approx(0.7146, abs=1e-4)
        deviation[0, 2] = 0
    if name == "BEETLE majority":
        # The table has 0.09 for the macro precision; 0.424 / 5 is 0.0848.
        assert found[5, 0] == pytest.approx(0.0848, abs=1e-4)
        deviation[5, 0] = 0
    assert deviation.max() <= 0.005 + 1e-9


def plain_evaluation(counts: npt.NDArray[np.int64]) -> list[list[float]]:
    """Compute the same measures answer by answer."""
    n = counts.shape[1]
    pairs = [
        (row, column)
        for row, column in np.ndindex(counts.shape)
        for _ in range(counts[row, column])
    ]

    def measures(
        is_predicted: Callable[[int], bool], is_gold: Callable[[int], bool]
    ) -> list[float]:
        both = sum(is_predicted(p) and is_gold(g) for p, g in pairs)
        predicted, gold = (
            sum(map(is_predicted, (p for p, _ in pairs))),
            sum(is_gold(g) for _, g in pairs),
        )
        precision = both / predicted if predicted else 0.0
        recall = both / gold if gold else 0.0
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        return [precision, recall, f1]

    by_label = [measures(lambda x, k=k: x == k, lambda x, k=k: x == k) for k in range(n)]  # type: ignore[misc]
    macro = [sum(column) / n for column in zip(*by_label, strict=True)]
    micro = [sum(by_label[gold][m] for _, gold in pairs) / len(pairs) for m in range(3)]
    corrective = measures(lambda p: 0 < p < n, lambda g: g > 0)
    return [*by_label, macro, micro, corrective]


@given(
    st.integers(2, 4).flatmap(lambda n: arrays(np.int64, (n + 1, n), elements=st.integers(0, 4)))
)
def test_measures_agree_with_plain_ones(counts: npt.NDArray[np.int64]) -> None:
    counts[0, 0] += 1
    result = grading_measures.evaluate(counts)
    found = np.vstack([result.by_label, result.macro, result.micro, result.corrective])
    np.testing.assert_allclose(found, plain_evaluation(counts), atol=1e-12)
    accuracy = np.diag(counts).sum() / counts.sum()
    assert result.accuracy == pytest.approx(accuracy)


def test_counts_put_predictions_in_rows() -> None:
    counts = grading_measures.count(
        ["correct", "correct", "incorrect"],
        ["incorrect", "uninterpretable", "incorrect"],
        responses.LABEL_SETS[2],
    )
    assert counts.tolist() == [[0, 0], [1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("name", "ways", "coarse"),
    [
        ("irrelevant", 5, "irrelevant"),
        ("irrelevant", 3, "incorrect"),
        ("contradictory", 3, "contradictory"),
        ("contradictory", 2, "incorrect"),
        ("correct", 2, "correct"),
        ("uninterpretable", 2, "uninterpretable"),
    ],
)
def test_coarser_labels(name: str, ways: int, coarse: str) -> None:
    assert responses.coarsen(name, ways) == coarse


def test_shared_phrases_by_hand() -> None:
    left = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert " ".join(left) == "the bulb isnt in a closed path so it is out"
    right = similarity.words("it is not in a closed path")
    assert similarity.shared_phrases(left, right) == [4, 2]
    overlap, f1, lesk, cosine = similarity.measure(left, right)
    assert (overlap, lesk) == (6, 20)
    assert f1 == pytest.approx(2 * 6 / (11 + 7))
    assert cosine == pytest.approx(6 / 77**0.5)


def plain_phrases(left: list[str], right: list[str]) -> int:
    """Length of the longest shared phrase, by trying all."""
    spans = [(i, j) for i in range(len(left)) for j in range(i + 1, len(left) + 1)]
    inside = [
        j - i for i, j in spans if any(left[i:j] == right[k : k + j - i] for k in range(len(right)))
    ]
    return max(inside, default=0)


texts = st.lists(st.sampled_from("abcd"), max_size=8)


@given(texts, texts)
def test_properties_of_similarity(left: list[str], right: list[str]) -> None:
    lengths = similarity.shared_phrases(left, right)
    assert max(lengths, default=0) == plain_phrases(left, right)
    # As many words as appear in both; only phrases split by an earlier one change the rest.
    assert sum(lengths) == sum(min(left.count(word), right.count(word)) for word in set(left))
    overlap, f1, lesk, cosine = similarity.measure(left, right)
    assert overlap <= lesk <= overlap**2
    assert 0 <= f1 <= cosine + 1e-12 <= 1 + 2e-12
    if left:
        assert similarity.measure(left, left) == (len(left), 1, len(left) ** 2, 1)


QUESTION = """<question id="{0}"><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers><studentAnswer id="{0}.1" accuracy="{1}">it is</studentAnswer>
<studentAnswer id="{0}.2" accuracy="{2}"></studentAnswer></studentAnswers></question>"""


@pytest.mark.parametrize(
    ("labels", "ways"),
    [
        (("correct", "incorrect"), 2),
        (("contradictory", "incorrect"), 3),
        (("correct", "contradictory"), 5),
        (("correct", "non_domain"), 5),
    ],
)
def test_finds_the_label_set(write: Write, labels: tuple[str, str], ways: int) -> None:
    folder = write("a.xml", QUESTION.format("a", *labels)).parent
    answers = responses.read_responses(folder)
    assert answers.labels == responses.LABEL_SETS[ways]
    assert [answers.labels[number] for number in answers.label] == list(labels)
    assert answers.texts == ["it is", ""]


GOOD = QUESTION.format("a", "correct", "irrelevant")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD[:200], "is not XML.*is the file cut off"),
        ("<answers/>", "holds <answers>, expected <question>"),
        (GOOD.replace("Why?", ""), "<questionText> is missing or empty"),
        (
            GOOD.replace("referenceAnswer ", "other ").replace("/referenceAnswer>", "/other>"),
            "no referenceAnswer",
        ),
        (GOOD.replace("a.2", "a.1"), "studentAnswer 'a.1' is in .* already"),
        (GOOD.replace('accuracy="correct"', ""), "<studentAnswer> has no attribute 'accuracy'"),
        (GOOD.replace('"correct"', '"right"'), "studentAnswer 'a.1' is 'right', expected one of"),
        (GOOD.replace('"correct"', '"incorrect"'), "'a.1' is 'incorrect', expected one of"),
        (f'<?xml version="1.0" encoding="nothing"?>{GOOD}', "cannot be read as XML: unknown encod"),
        (f'<?xml version="1.0" encoding="shift_jis"?>{GOOD}', "cannot be read as XML: multi-byte"),
        (GOOD.replace('"correct"', '"\u202eevil"'), r"'a.1' is '\\u202eevil', expected one of"),
    ],
)
def test_refuses_wrong_questions(write: Write, content: str, message: str) -> None:
    folder = write("a.xml", content).parent
    with pytest.raises(InputError, match=message):
        responses.read_responses(folder)


def test_refuses_an_empty_folder(fails: Callable[..., str], tmp_path: Path) -> None:
    line = fails([f"{FOLDER}/local_data_split.py", "--input_dir", tmp_path])
    assert "file not found" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\na.1,correct\n", "1 of 2 ids are missing, first 'a.2'"),
        ("id,label\na.1,correct\na.2,right\n", "row 3 is 'right', expected one of correct"),
        ("id,label\na.1,correct\na.1,correct\n", "row 3 repeats 'a.1'"),
        ("id,label\na.1,correct\na.3,correct\n", "row 3 is 'a.3', which is not in the answers"),
        ("id,label\na.1,correct\na.2,\n", "row 3 is empty"),
    ],
)
def test_refuses_a_wrong_submission(write: Write, content: str, message: str) -> None:
    answers = responses.read_responses(write("a.xml", GOOD).parent)
    with pytest.raises(InputError, match=message):
        responses.read_predictions(write("submission.csv", content), answers)


def test_refuses_finer_labels_than_the_files_tell(write: Write, fails: Callable[..., str]) -> None:
    folder = write("a.xml", QUESTION.format("a", "correct", "incorrect")).parent
    line = fails([f"{FOLDER}/local_evaluation.py", "--input_dir", folder, "--ways", "5"])
    assert "has only 2 labels" in line


TWO = """<question id="{0}" module="{1}"><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers><studentAnswer id="{2}"{3}>it is</studentAnswer></studentAnswers></question>"""


def test_labels_are_not_read_where_answers_are_only_predicted(write: Write) -> None:
    folder = write("a.xml", TWO.format("a", "M", "a.1", "")).parent
    write("b.xml", TWO.format("b", "M", "b.1", ' accuracy="whatever"'))
    answers = responses.read_responses(folder, reads_labels=False)
    assert (answers.ids, answers.labels) == (["a.1", "b.1"], ())
    assert answers.label.tolist() == [responses.UNKNOWN] * 2
    with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute 'accu"):
        responses.read_responses(folder)


def test_submissions_for_answers_without_labels_are_checked(write: Write) -> None:
    folder = write("a.xml", TWO.format("a", "M", "a.1", "")).parent
    answers = responses.read_responses(folder, reads_labels=None)
    assert answers.labels == ()
    for name in ("incorrect", "irrelevant"):  # Of two sets: which one is not known.
        good = write("submission.csv", f"id,label\na.1,{name}\n")
        assert responses.read_predictions(good, answers) == [name]
    with pytest.raises(InputError, match="row 2 is 'right', expected one of correct"):
        responses.read_predictions(write("submission.csv", "id,label\na.1,right\n"), answers)
    write("b.xml", TWO.format("b", "M", "b.1", ' accuracy="correct"'))
    with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute"):
        responses.read_responses(folder, reads_labels=None)


def test_finds_the_test_sets_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("beetle/train/Core/t.xml", TWO.format("t", "M", "t.1", ""))
    write("beetle/test-unseen-questions/Core/b.xml", TWO.format("b", "M", "b.1", ""))
    write("beetle/test-unseen-answers/a.xml", TWO.format("a", "M", "a.1", ""))
    answers = responses.read_responses(tmp_path / "beetle", reads_labels=False)
    assert [question.scenario for question in answers.questions] == [
        "test-unseen-answers",
        "test-unseen-questions",
    ]
    for folder in ("test-unseen-questions", "test-unseen-questions/Core"):
        one = responses.read_responses(tmp_path / "beetle" / folder, reads_labels=False)
        # One set alone is that of its folder's name.
        assert [question.scenario for question in one.questions] == ["test-unseen-questions"]


def join(write: Write, scenario: str, question: str, module: str, answer: str) -> Any:
    """Join training answers t.1, to question Q of module M, and a test set with one answer."""
    train = write("train/t.xml", TWO.format("Q", "M", "t.1", ' accuracy="correct"')).parent
    test = write(f"{scenario}/a.xml", TWO.format(question, module, answer, "")).parent
    return train_and_test.join(
        responses.read_responses(train), responses.read_responses(test, reads_labels=False)
    )


@pytest.mark.parametrize(
    ("scenario", "question", "module", "numbers"),
    [
        ("test-unseen-answers", "Q", "M", [0, 0]),
        ("test-unseen-questions", "R", "M", [0, 1]),
        ("test-unseen-domains", "Q", "N", [0, 1]),
        ("anything", "Q", "M", [0, 0]),
    ],
)
def test_join_numbers_questions(
    write: Write, scenario: str, question: str, module: str, numbers: list[int]
) -> None:
    answers: Any = join(write, scenario, question, module, "a.1")
    assert answers.question.tolist() == numbers
    assert answers.label.tolist() == [0, responses.UNKNOWN]


@pytest.mark.parametrize(
    ("scenario", "question", "module", "answer", "message"),
    [
        ("any", "R", "M", "t.1", r"a.xml: line 3: studentAnswer 't.1' is to be learnt .*t.xml: li"),
        ("test-unseen-answers", "R", "M", "a.1", "question 'R' .* is not in the training files"),
        ("test-unseen-questions", "Q", "M", "a.1", "question 'Q' .* is in .*t.xml, expected a new"),
        ("test-unseen-domains", "R", "M", "a.1", "'R' of module 'M': the module is in the train"),
    ],
)
def test_refuses_test_sets_that_are_none(
    write: Write, scenario: str, question: str, module: str, answer: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        join(write, scenario, question, module, answer)


def test_refuses_to_learn_from_a_test_set(write: Write) -> None:
    test = write("test-unseen-answers/a.xml", TWO.format("Q", "M", "a.1", ' accuracy="correct"'))
    answers = responses.read_responses(test.parent)
    with pytest.raises(InputError, match=r"a.xml: is of a test set, expected files to learn"):
        train_and_test.join(answers, answers)


def scorers_f1(gold: list[str], predicted: list[str], name: str) -> float:
    """Compute the F1 of a label as `fmeasure` in the task's evaluation.R does."""
    both = sum(g == p == name for g, p in zip(gold, predicted, strict=True))
    n_predicted, n_gold = predicted.count(name), gold.count(name)
    precision = both / n_predicted if n_predicted else float(n_gold == 0)
    recall = both / n_gold if n_gold else float(n_predicted == 0)
    return 2 * precision * recall / (precision + recall) if precision or recall else 0.0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(responses.LABEL_SETS[5]),
            st.sampled_from((*responses.LABEL_SETS[5], responses.UNINTERPRETABLE)),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([2, 3, 5]),
    st.booleans(),
)
def test_measures_of_the_task_are_its_scorers(
    pairs: list[tuple[str, str]], ways: int, excludes: bool
) -> None:
    gold, predicted = map(list, zip(*pairs, strict=True))
    excluded = ["non_domain"] if excludes else []
    found = semeval_2013.measure(gold, predicted, ways, excluded)
    gold = [responses.coarsen(name, ways) for name in gold]
    predicted = [responses.coarsen(name, ways) for name in predicted]
    f1 = {name: scorers_f1(gold, predicted, name) for name in responses.LABEL_SETS[ways]}
    kept = [value for name, value in f1.items() if name not in excluded]
    accuracy = sum(g == p for g, p in pairs_of(gold, predicted)) / len(gold)
    weighted = sum(f1[name] for name in gold) / len(gold)
    assert found == pytest.approx((accuracy, sum(kept) / len(kept), weighted))


def pairs_of(gold: list[str], predicted: list[str]) -> list[tuple[str, str]]:
    return list(zip(gold, predicted, strict=True))


def test_the_macro_average_leaves_out_what_the_scorer_does() -> None:
    left_out = {
        (corpus, ways, scenario)
        for corpus in ("", semeval_2013.BEETLE, semeval_2013.SCIENTSBANK)
        for ways in (2, 3, 5)
        for scenario in responses.SCENARIOS
        if semeval_2013.excluded_labels(corpus, ways, scenario)
    }
    assert left_out == {
        (semeval_2013.SCIENTSBANK, 5, "test-unseen-answers"),
        (semeval_2013.SCIENTSBANK, 5, "test-unseen-questions"),
    }


def test_the_table_shows_what_is_published(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "3way/sciEntsBank"
    write("3way/sciEntsBank/test-unseen-domains/a.xml", QUESTION.format("a", *["correct"] * 2))
    answers = responses.read_responses(folder)
    corpus = semeval_2013.corpus_of(folder)
    assert corpus == semeval_2013.SCIENTSBANK
    scores = semeval_2013.score_scenarios(answers, ["correct", "irrelevant"], corpus)
    assert [(score.ways, score.answers, score.accuracy) for score in scores] == [
        (5, 2, 0.5),
        (3, 2, 0.5),
        (2, 2, 0.5),
    ]
    header, rows = semeval_2013.table(scores, corpus)
    assert all(len(row) == len(header) for row in rows)
    assert rows[1] == ["  best [3]", "5", "", "", "0.375", ""]
    assert len(rows) == 4


def test_alignment_by_hand() -> None:
    assert alignment.stems("The switches connected it") == ["the", "switch", "connect", "it"]
    spelling = alignment.compare_spelling(["bulb", "bulbs", "cat"])
    # ^bulb$ has 5 pairs and 4 triples, ^bulbs$ 6 and 5; they share ^b bu ul lb ^bu bul ulb.
    assert spelling[0].tolist() == pytest.approx([1, 2 * 7 / (9 + 11), 0])
    weight = np.array([1.0, 1.0, 3.0])
    assert alignment.covered(np.array([0, 2]), np.array([1]), spelling, weight) == pytest.approx(
        0.7 / 4
    )
    runs = alignment.shared_runs(np.array([0, 1, 2]), np.array([0, 1, 0, 1]), 2)
    assert runs == (1 / 3, 1 / 2)


def words_of(vocabulary: list[str], question: list[str]) -> Any:
    return alignment.know_words(vocabulary, question, 9, alignment.Counter({"the": 9}))


def test_words_are_weighed_and_told_apart() -> None:
    words = words_of(["the", "bulb", "not", "b", "12", "bulbz"], ["bulb"])
    assert words.weight.tolist() == pytest.approx(
        [0.3 * 0.3, *[np.log(10) + 0.3] * 5] * np.array([1, 1, 0.3, 1, 1, 1])
    )
    assert words.is_negation.tolist() == [False, False, True, False, False, False]
    assert words.is_symbol.tolist() == [False, False, False, True, True, False]
    assert words.is_in_question.tolist() == [False, True, False, False, False, False]


numbered = st.lists(st.integers(0, 5), max_size=8).map(lambda values: np.array(values, int))


@given(numbered, numbered)
def test_properties_of_comparison(answer: Any, reference: Any) -> None:
    words = words_of(["the", "bulb", "not", "b", "light", "lights"], ["bulb"])
    compared = dict(
        zip(alignment.COMPARED, alignment.compare(answer, reference, words), strict=True)
    )
    limited = [name for name in compared if "negations" not in name and "length" not in name]
    assert all(0 <= compared[name] <= 1 + 1e-9 for name in limited if name != "rarest word missing")
    # What an answer covers of a reference is what the reference covers of the answer, swapped.
    swapped = dict(
        zip(alignment.COMPARED, alignment.compare(reference, answer, words), strict=True)
    )
    assert compared["recall"] == swapped["precision"]
    assert compared["recall of triples"] == swapped["precision of triples"]
    assert compared["more negations"] == -swapped["more negations"]
    same = dict(zip(alignment.COMPARED, alignment.compare(answer, answer, words), strict=True))
    assert same["rarest word missing"] == 0
    if len(answer):
        assert same["f1"] == pytest.approx(1)
        assert same["recall of words as spelt"] == 1


def test_features_know_neither_labels_nor_other_answers_to_predict(write: Write) -> None:
    def describe(last: str) -> Any:
        text = GOOD.replace("it is", "the bulb is lit").replace("></studentA", f">{last}</studentA")
        return responses.read_responses(write("a.xml", text).parent, reads_labels=False)

    train = np.array([True, False])
    features = [alignment.describe(describe(last), train) for last in ("because", "no", "")]
    assert np.isfinite(features).all()
    for other in features[1:]:
        np.testing.assert_array_equal(features[0][0], other[0])
        assert (features[0][1] != other[1]).any()
    # Only the words of training answers are counted.
    assert (alignment.describe(describe("because"), ~train) != features[0]).any()
    marked = alignment.mark_words(describe("because lamp"))
    assert marked[1] == "=because +lamp because_lamp because lamp"


def test_texts_without_a_word_have_features_too(write: Write) -> None:
    text = GOOD.replace("Because.", "!").replace("Why?", "?").replace("it is", "...")
    answers = responses.read_responses(write("a.xml", text).parent)
    features = alignment.describe(answers, np.array([True, False]))
    assert np.isfinite(features).all()
    assert alignment.mark_words(answers) == ["", ""]


def test_folds_by_domain_keep_modules_together(
    write: Write, succeeds: Callable[..., str], fails: Callable[..., str], tmp_path: Path
) -> None:
    for name, module in (("a", "M"), ("b", "N"), ("c", "M"), ("d", "O")):
        write(f"{name}.xml", TWO.format(name, module, f"{name}.1", ' accuracy="correct"'))
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out", "--by_domain"]
    succeeds([f"{FOLDER}/local_data_split.py", *flags, "--folds", "3"])
    rows = (tmp_path / "out/folds.csv").read_text().split()[1:]
    fold = dict(row.split(",") for row in rows)
    assert fold["a.1"] == fold["c.1"]
    assert len(set(fold.values())) == 3
    line = fails([f"{FOLDER}/local_data_split.py", *flags])
    assert "--folds is 10, expected a whole number from 2 to 3" in line
    write("d.xml", TWO.format("d", "", "d.1", ' accuracy="correct"'))
    line = fails([f"{FOLDER}/local_data_split.py", *flags])
    assert "d.xml: <question> has no attribute 'module', which --by_domain needs" in line


def test_label_distribution(write: Write, succeeds: Callable[..., str], tmp_path: Path) -> None:
    write("x/a.xml", QUESTION.format("a", "correct", "irrelevant"))
    write("y/b.xml", QUESTION.format("b", "correct", "incorrect"))
    printed = succeeds(
        [f"{FOLDER}/label_distribution.py", "--input_dir", tmp_path / "x", tmp_path / "y"]
    )
    rows = {line.split("  ")[0]: line.split()[1:] for line in printed.splitlines()[1:]}
    assert rows["correct"] == ["1", "(50.0%)", "1", "(50.0%)"]
    assert rows["irrelevant"] == rows["incorrect"] == ["1", "(50.0%)"]
    assert rows["non_domain"] == ["0", "(0.0%)"]
    assert rows["questions"] == ["1", "1"]


def test_refuses_training_files_without_a_test(fails: Callable[..., str], tmp_path: Path) -> None:
    line = fails([f"{FOLDER}/sample_model_majority.py", "--train_dir", tmp_path])
    assert "--train_dir needs --test_dir" in line


def test_refuses_to_learn_one_label(
    write: Write, fails: Callable[..., str], tmp_path: Path
) -> None:
    write("train/t.xml", TWO.format("Q", "M", "t.1", ' accuracy="correct"'))
    write("test/t.xml", TWO.format("Q", "M", "t.2", ""))
    flags = ["--train_dir", tmp_path / "train", "--test_dir", tmp_path / "test"]
    line = fails([f"{FOLDER}/sample_model_majority.py", *flags, "--output_dir", tmp_path])
    assert "train: all 1 answers to learn from are 'correct', expected at least two" in line
    assert not (tmp_path / "submission.csv").exists()


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
    page = (tmp_path / "scores_student_response.html").read_text()
    assert page.count("test-unseen-domains") >= 3


def test_scripts(
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    run: Callable[..., "subprocess.CompletedProcess[str]"],
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
