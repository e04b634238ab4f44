"""Type hints for NumPy arrays, by the kind of their elements."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.floating[Any]]
