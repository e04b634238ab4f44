"""Precision, recall and F1 of predicted labels, as Dzikovska et al. (2012) report them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from responses import LABEL_SETS, UNINTERPRETABLE, FloatArray, IntArray, coarsen

MACRO, MICRO, CORRECTIVE = "macro average", "micro average", "corrective feedback"


def count(gold: Sequence[str], predicted: Sequence[str], ways: int) -> IntArray:
    """Count every combination of predicted and gold label, made coarser, as the paper's figures do.

    Predictions are in rows, the last of which is ``uninterpretable``, gold labels in columns.
    """
    rows = [*LABEL_SETS[ways], UNINTERPRETABLE]
    numbers = [[rows.index(coarsen(name, ways)) for name in names] for names in (predicted, gold)]
    cells = np.zeros((len(rows), ways), np.int64)
    np.add.at(cells, tuple(numbers), 1)
    return cells


def evaluate(counts: IntArray) -> pd.DataFrame:
    """Compute the paper's measures from a matrix of counts; 0/0 counts as 0.

    Predictions are in rows, gold labels in columns, ``correct`` first. A row beyond the labels
    holds the answers without an interpretation: they count in the gold totals, but are no
    prediction of any label and lead to no correction.

    The columns are precision, recall and F1, the rows each label, then their mean (`MACRO`), their
    mean weighted by how many gold answers have each label (`MICRO`: its recall is the accuracy),
    and the decision that an answer needs correction, which is anything but ``correct``
    (`CORRECTIVE`): section 4 of the paper.
    """
    labelled = counts[: counts.shape[1]]
    gold, predicted = counts.sum(axis=0), labelled.sum(axis=1)
    by_label = precision_recall_f1(np.diag(labelled), predicted, gold)
    corrective = labelled[1:, 1:].sum(), predicted[1:].sum(), gold[1:].sum()
    means = by_label.mean(axis=0), gold @ by_label / gold.sum()
    names = [*LABEL_SETS[counts.shape[1]], MACRO, MICRO, CORRECTIVE]
    rows = [*by_label, *means, precision_recall_f1(*corrective)]
    return pd.DataFrame(rows, names, ["precision", "recall", "F1"])


def precision_recall_f1(agreed: Any, predicted: Any, gold: Any) -> FloatArray:
    """Return precision, recall and F1 along a last axis of 3, from counts; 0/0 counts as 0."""
    agreed = np.asarray(agreed, float)
    ratios = (agreed, predicted), (agreed, gold), (2 * agreed, np.add(predicted, gold))
    return np.stack([above / np.maximum(below, 1) for above, below in ratios], axis=-1)
