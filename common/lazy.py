"""pandas, imported where it is first used: that takes 0.4 s, which `--help` does without."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pd"]

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Pandas:
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("pandas"), name)

    pd = _Pandas()
