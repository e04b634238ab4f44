"""Quantiles of Student's distribution that need no SciPy."""

from common.evaluation.student_quantile import student_quantile

import numpy as np
import pytest
from scipy.special import stdtrit


def test_quantiles_of_student_s_distribution_are_those_of_scipy() -> None:
    # Degrees of freedom.
    freedom = np.r_[np.arange(1, 500), 1000, 20_000, 120_000]
    assert student_quantile(freedom) == pytest.approx(stdtrit(freedom, 0.975), rel=1e-10)
