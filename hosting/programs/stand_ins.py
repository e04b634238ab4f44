"""Stand-ins for the packages that the kit uses and the platform's image lacks.

The image holds Python 3.12, NumPy 1.26, SciPy, pandas, scikit-learn and matplotlib, but neither
pyarrow nor tqdm. Of pyarrow, the kit's evaluation reads CSV files and compares columns: that is in
`arrow.py`, `arrow_compute.py` and `arrow_csv.py` beside this file, with NumPy and Python's own CSV
reader. They are used even where pyarrow is installed, so that a trial on one's own machine runs
what the platform runs.
"""

import sys
from types import ModuleType, TracebackType
from typing import Any


def install() -> None:
    """Put the stand-ins in place of the packages; to be called before the kit is imported."""
    # pandas looks for pyarrow as it is imported, and must find none, as on the platform.
    sys.modules["pyarrow"] = None  # type: ignore[assignment]
    import arrow
    import arrow_compute
    import arrow_csv
    import pandas  # noqa: F401

    parquet, progress = ModuleType("pyarrow.parquet"), ModuleType("tqdm")
    progress.tqdm = Silent  # type: ignore[attr-defined]
    sys.modules.update({"pyarrow": arrow, "tqdm": progress})
    for name, module in (("compute", arrow_compute), ("csv", arrow_csv), ("parquet", parquet)):
        sys.modules[f"pyarrow.{name}"] = module
        setattr(arrow, name, module)


class Silent:
    """A progress bar that nobody sees."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "Silent":
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""

    def update(self, n: int = 1) -> None:
        """Go on."""
