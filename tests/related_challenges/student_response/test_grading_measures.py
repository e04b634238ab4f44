"""Student responses: the paper's tables, and its measures computed otherwise."""

from collections.abc import Callable
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

grading_measures = import_module("grading_measures")
responses = import_module("responses")


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
