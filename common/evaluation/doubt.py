"""A reason why a score may not mean what it seems to mean."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Doubt:
    """A reason why a score may not mean what it seems to mean."""

    # A few words for tables: "may have seen these answers".
    mark: str
    # A sentence for the terminal and the page.
    sentence: str
