"""Intervals, and the significance of many tests at once."""

from common.arrays import FloatArray

import numpy as np

# Ends of the interval that holds 90 % of a normal distribution, in standard deviations.
QUANTILE_90 = 1.645


def adjust_for_many(p: FloatArray) -> FloatArray:
    """Return p-values adjusted for many tests; NaN stays NaN and does not count as a test.

    If all tests with an adjusted value of at most 0.05 are called significant, at most 5 % of them
    are expected to be false alarms. Source: Benjamini and Hochberg (1995), Controlling the false
    discovery rate.
    """
    adjusted = np.full(len(p), np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    n = len(order)
    ratio = p[order] * n / np.arange(1, n + 1)
    # The adjusted value is the smallest ratio at this p or a larger one.
    adjusted[order] = np.minimum(np.minimum.accumulate(ratio[::-1])[::-1], 1)
    return adjusted
