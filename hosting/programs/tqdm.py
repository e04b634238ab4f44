"""Stands in for the package of this name, which the platform's image lacks."""

from unittest.mock import MagicMock

# A progress bar that nobody sees.
tqdm = MagicMock()
