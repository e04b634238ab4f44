"""Student responses: the measures of the paper and of the task's scorer, and what is published."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

responses = import_module("responses")
measures = import_module("measures")

# Dzikovska, Nielsen, Brew (2012), figures 3 and 4: predictions in rows, gold labels in columns;
# tables 2 and 3: by label, macro average, micro average, corrective feedback.
PUBLISHED = {
    "BEETLE II": (
        [
            (617, 20, 23, 0, 3), (249, 332, 146, 29, 20), (68, 38, 149, 3, 0), (4, 22, 23, 15, 1),
            (3, 3, 1, 1, 94), (216, 211, 314, 38, 86),
        ],
        "0.93 0.53 0.68  0.43 0.53 0.47  0.58 0.23 0.33  0.23 0.17 0.20  0.92 0.46 0.61 "
        "0.62 0.39 0.46  0.71 0.44 0.53  0.73 0.56 0.63",
    ),
    "SciEntsBank lexical": (
        [
            (1213, 553, 209, 392, 2), (432, 497, 128, 241, 2), (115, 109, 58, 74, 3),
            (335, 272, 131, 468, 17), (0, 0, 0, 0, 0),
        ],
        "0.51 0.58 0.54  0.38 0.35 0.36  0.16 0.11 0.13  0.38 0.40 0.39  0 0 0 "
        "0.29 0.29 0.29  0.41 0.43 0.42  0.69 0.63 0.66",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_matrices_give_the_papers_tables(name: str) -> None:
    counts, table = PUBLISHED[name]
    result = measures.evaluate(np.array(counts))
    expected = np.array(table.split(), float).reshape(-1, 3)
    np.testing.assert_allclose(result, expected, atol=0.005 + 1e-9)
    accuracy = sum(counts[label][label] for label in range(5)) / np.sum(counts)
    assert result.loc["micro average", "recall"] == pytest.approx(accuracy)


def scorers_f1(gold: list[str], predicted: list[str], name: str) -> float:
    """Compute the F1 of a label as `fmeasure` in the task's evaluation.R does."""
    both = sum(g == p == name for g, p in zip(gold, predicted, strict=True))
    n_predicted, n_gold = predicted.count(name), gold.count(name)
    precision = both / n_predicted if n_predicted else float(n_gold == 0)
    recall = both / n_gold if n_gold else float(n_predicted == 0)
    return 2 * precision * recall / (precision + recall) if precision or recall else 0.0


true_label = st.sampled_from(responses.LABEL_SETS[5])
predicted_label = st.sampled_from((*responses.LABEL_SETS[5], responses.UNINTERPRETABLE))


@given(
    st.lists(st.tuples(true_label, predicted_label), min_size=1, max_size=12),
    st.sampled_from([2, 3, 5]),
    st.booleans(),
)
def test_measures_of_the_task_are_its_scorers(
    pairs: list[tuple[str, str]], ways: int, excludes: bool
) -> None:
    gold, predicted = map(list, zip(*pairs, strict=True))
    excluded = ["non_domain"] if excludes else []
    found = measures.measure(gold, predicted, ways, excluded)
    gold = [responses.coarsen(name, ways) for name in gold]
    predicted = [responses.coarsen(name, ways) for name in predicted]
    f1 = {name: scorers_f1(gold, predicted, name) for name in responses.LABEL_SETS[ways]}
    kept = [value for name, value in f1.items() if name not in excluded]
    accuracy = sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)
    weighted = sum(f1[name] for name in gold) / len(gold)
    assert found == pytest.approx((accuracy, sum(kept) / len(kept), weighted))


def test_the_macro_average_leaves_out_what_the_scorer_does() -> None:
    """Of SciEntsBank's test sets with five labels, `non_domain` where domains are known."""
    names = ["correct", "non_domain"] * 3
    answers = pd.DataFrame({"label": pd.Categorical(names, responses.LABEL_SETS[5])})
    answers["scenario"] = np.repeat(responses.SCENARIOS, 2)
    # Three labels do not occur, and so count 1; that left out is never predicted.
    for corpus, expected in (("beetle", [3.667 / 5] * 3), ("sciEntsBank", [0.917, 0.917, 0.733])):
        scores = measures.score_test_sets(answers, ["correct"] * 6, corpus)
        macro = scores["macro F1"][scores["labels"] == 5].tolist()
        assert macro == pytest.approx(expected, abs=1e-3)
