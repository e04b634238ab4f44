"""Where answers come from: official files, a simulation, or a source that is not known."""

from collections.abc import Iterable
from enum import StrEnum


class Origin(StrEnum):
    """The three origins of answers. Published scores stand beside official answers alone."""

    # The checksum of the file is that of an official file, or a record leads to such a file.
    OFFICIAL = "official"
    # The marker of a simulation, a record, or the rows themselves say so.
    SIMULATED = "simulated"
    # All other files.
    UNKNOWN = "unknown"

    @property
    def answers(self) -> str:
        """Answers of this origin in words, as titles and tables name them."""
        return "answers of unknown origin" if self is Origin.UNKNOWN else f"{self} answers"


def combine(origins: Iterable[Origin]) -> Origin:
    """Return the origin of what is made from files of some origins.

    The result is simulated if any of the files is simulated, and official if all files are
    official.
    """
    present = set(origins)
    if Origin.SIMULATED in present:
        return Origin.SIMULATED
    return Origin.OFFICIAL if present == {Origin.OFFICIAL} else Origin.UNKNOWN
