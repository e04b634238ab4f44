"""The 97.5 % quantile of Student's distribution, without SciPy.

SciPy has it as `scipy.special.stdtrit`, but the import would make every local evaluation a fifth
slower, and a platform may lack SciPy.
"""

from common.arrays import FloatArray, IntArray

import numpy as np

# The 97.5 % quantiles for 1 to 100 degrees of freedom, computed with `scipy.special.stdtrit`.
_TABLE = np.array(
    [
        12.706204736175, 4.302652729749, 3.182446305284, 2.776445105198, 2.570581835636,
        2.446911851145, 2.364624251593, 2.306004135204, 2.262157162798, 2.228138851986,
        2.200985160092, 2.178812829667, 2.160368656463, 2.144786687918, 2.131449545560,
        2.119905299221, 2.109815577833, 2.100922040241, 2.093024054408, 2.085963447266,
        2.079613844728, 2.073873067904, 2.068657610419, 2.063898561628, 2.059538552753,
        2.055529438643, 2.051830516480, 2.048407141795, 2.045229642133, 2.042272456301,
        2.039513446396, 2.036933343460, 2.034515297449, 2.032244509318, 2.030107928250,
        2.028094000980, 2.026192463029, 2.024394163912, 2.022690920037, 2.021075390306,
        2.019540970441, 2.018081702818, 2.016692199228, 2.015367574444, 2.014103388881,
        2.012895598919, 2.011740513730, 2.010634757624, 2.009575237129, 2.008559112101,
        2.007583770316, 2.006646805062, 2.005745995318, 2.004879288188, 2.004044783289,
        2.003240718848, 2.002465459291, 2.001717484145, 2.000995378088, 2.000297822014,
        1.999623584995, 1.998971517033, 1.998340542521, 1.997729654318, 1.997137908392,
        1.996564418952, 1.996008354025, 1.995468931430, 1.994945415107, 1.994437111771,
        1.993943367846, 1.993463566662, 1.992997125890, 1.992543495181, 1.992102154002,
        1.991672609645, 1.991254395388, 1.990847068812, 1.990450210230, 1.990063421254,
        1.989686323457, 1.989318557137, 1.988959780175, 1.988609666976, 1.988267907477,
        1.987934206239, 1.987608281589, 1.987289864831, 1.986978699506, 1.986674540704,
        1.986377154419, 1.986086316951, 1.985801814346, 1.985523441867, 1.985251003505,
        1.984984311522, 1.984723186014, 1.984467454508, 1.984216951586, 1.983971518524,
    ]
)  # fmt: skip
# The 97.5 % quantile of the normal distribution.
_NORMAL = 1.959963984540054


def student_quantile(degrees: IntArray) -> FloatArray:
    """Return the 97.5 % quantile t of Student's distribution, to ten digits.

    95 % of the distribution lie between -t and t.

    Parameters
    ----------
    degrees
        Degrees of freedom, 1 or more, of any shape.

    Notes
    -----
    Up to 100 degrees of freedom, the quantile is looked up in the table. Beyond, it is computed
    from the normal quantile with four corrections (Abramowitz and Stegun 1964, 26.7.5).
    """
    # Abramowitz and Stegun write x for the normal quantile and v for the degrees of freedom.
    x = _NORMAL
    v = np.asarray(degrees, np.float64)
    expansion = (
        x
        + (x**3 + x) / 4 / v
        + (5 * x**5 + 16 * x**3 + 3 * x) / 96 / v**2
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384 / v**3
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160 / v**4
    )
    table_index = np.minimum(degrees, len(_TABLE)) - 1
    return np.where(v <= len(_TABLE), _TABLE[table_index], expansion)
