"""Stands in for the package of this name, which the platform's image lacks."""

from unittest.mock import MagicMock

tqdm = MagicMock()
