"""Intervals, and the significance of many tests at once."""

from common.arrays import FloatArray

import numpy as np

# 90 % of a normal distribution lie within this many standard deviations of its mean.
QUANTILE_90 = 1.645


def adjust_for_many(p: FloatArray) -> FloatArray:
    """Return the p-values `p`, adjusted because there are many tests.

    If all tests with an adjusted p-value of at most 0.05 are called significant, at most 5 % of
    those called significant are expected to be false alarms. NaN stays NaN and does not count as a
    test. Source: Benjamini and Hochberg (1995), Controlling the false discovery rate.
    """
    adjusted = np.full(len(p), np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    # The positions of the tests in `p`, from the smallest p to the largest.
    order = tests[np.argsort(p[tests], kind="stable")]
    n = len(order)
    rank = np.arange(1, n + 1)
    ratio = p[order] * n / rank
    # The adjusted p-value of a test is the smallest ratio of this test and all tests with a larger
    # p, but at most 1. A running minimum from the largest p to the smallest finds these ratios.
    smallest_ratio = np.minimum.accumulate(ratio[::-1])[::-1]
    adjusted[order] = np.minimum(smallest_ratio, 1)
    return adjusted
