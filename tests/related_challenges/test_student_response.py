"""Student responses: the paper's tables, the measures of similarity, bad input, the scripts."""

import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

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
