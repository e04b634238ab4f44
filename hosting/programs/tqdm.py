"""Stands in for the package of this name, which the platform's image lacks."""

from typing import Any


class tqdm:  # noqa: N801
    """A progress bar that nobody sees."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "tqdm":
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def update(self, n: int = 1) -> None:
        """Go on."""
