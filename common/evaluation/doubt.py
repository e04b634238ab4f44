"""A reason why a score may not mean what it seems to mean."""

from collections.abc import Iterable
from dataclasses import dataclass

# A doubt is a reason why a score may not mean what it seems to mean. Its attribute `mark` names the
# reason. The scoreboard has special rules for these two marks.

# The code that made the entry was edited after the entry was made.
EARLIER_CODE = "made by earlier code"
# The user stopped the fit early, so the model has learned less than its options say.
INTERRUPTED = "fit interrupted"


@dataclass(frozen=True)
class Doubt:
    """A reason why a score may not mean what it seems to mean.

    For instance, the model may have been trained on the answers that it had to predict.
    """

    # The reason in a few words, for a cell of a table: "may have seen these answers".
    mark: str
    # A sentence for the terminal and the page.
    sentence: str


def keep_first_of_each_mark(doubts: Iterable[Doubt]) -> list[Doubt]:
    """Return the doubts; if several have the same mark, only the first of them."""
    by_mark: dict[str, Doubt] = {}
    for doubt in doubts:
        by_mark.setdefault(doubt.mark, doubt)
    return list(by_mark.values())
