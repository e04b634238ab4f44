"""Precision, recall and F1 of predicted labels, as Dzikovska et al. (2012) report them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from responses import UNINTERPRETABLE, FloatArray, IntArray


def count(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> IntArray:
    """Count every combination of predicted and gold label, as the paper's figures do.

    Returns
    -------
    array of int64, shape (labels + 1, labels)
        Predictions in rows, gold labels in columns; the last row is ``uninterpretable``.
    """
    rows = [*labels, UNINTERPRETABLE]
    cells = np.zeros((len(rows), len(labels)), np.int64)
    predicted_number = [rows.index(name) for name in predicted]
    np.add.at(cells, (predicted_number, [labels.index(name) for name in gold]), 1)
    return cells


@dataclass(frozen=True)
class Measures:
    """Precision, recall and F1 in columns, in the order of the tables of Dzikovska et al. (2012).

    Attributes
    ----------
    by_label
        Shape (labels, 3).
    macro
        Mean over the labels, shape (3,).
    micro
        Mean weighted by how many gold answers have each label, shape (3,); the paper's micro
        average. Its recall is the accuracy.
    corrective
        The decision whether the answer needs correction, which is anything but ``correct``,
        shape (3,).
    """

    by_label: FloatArray
    macro: FloatArray
    micro: FloatArray
    corrective: FloatArray

    @property
    def accuracy(self) -> float:
        """Share of answers with the right label."""
        return float(self.micro[1])


def evaluate(counts: IntArray) -> Measures:
    """Compute the paper's measures from a matrix of counts; 0/0 counts as 0.

    Parameters
    ----------
    counts
        Predictions in rows, gold labels in columns, ``correct`` first. A row beyond the labels
        holds the answers without an interpretation: they count in the gold totals, but are no
        prediction of any label and lead to no correction.

    References
    ----------
    Dzikovska, Nielsen, Brew (2012), Towards effective tutorial feedback for explanation questions:
    a dataset and baselines, NAACL-HLT, section 4 and tables 2 and 3.
    """
    labelled = counts[: counts.shape[1]]
    gold, predicted, agreed = counts.sum(axis=0), labelled.sum(axis=1), np.diag(labelled)
    by_label = precision_recall_f1(agreed, predicted, gold)
    corrected = labelled[1:, 1:].sum()
    return Measures(
        by_label=by_label,
        macro=by_label.mean(axis=0),
        micro=gold @ by_label / gold.sum(),
        corrective=precision_recall_f1(corrected, predicted[1:].sum(), gold[1:].sum()),
    )


def precision_recall_f1(agreed: Any, predicted: Any, gold: Any) -> FloatArray:
    """Return precision, recall and F1 along a last axis of 3, from counts; 0/0 counts as 0."""
    agreed = np.asarray(agreed, float)
    ratios = (agreed, predicted), (agreed, gold), (2 * agreed, np.add(predicted, gold))
    return np.stack([above / np.maximum(below, 1) for above, below in ratios], axis=-1)
