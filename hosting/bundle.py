"""What a competition bundle says, as `platform_rules.read_bundle` returns it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """A task: what is run on a submission.

    Attributes
    ----------
    index, name
        By which phases and people name it.
    scoring_program, reference_data, ingestion_program, input_data
        Folders or zips in the bundle; None where there is none.
    played_by_server
        Why it cannot be played without the server; empty if it can.
    """

    index: int
    name: str
    scoring_program: Path | None = None
    reference_data: Path | None = None
    ingestion_program: Path | None = None
    input_data: Path | None = None
    played_by_server: str = ""


@dataclass(frozen=True)
class Phase:
    """A phase: when it is, in the server's time, its tasks by index, and seconds for each step."""

    name: str
    start: datetime
    end: datetime | None
    tasks: tuple[int, ...]
    time_limit: int


@dataclass(frozen=True)
class Column:
    """A column of the leaderboard; `computed` where the platform makes it from others."""

    index: int
    key: str
    title: str
    descending: bool
    precision: int
    computed: bool


@dataclass(frozen=True)
class Bundle:
    """What a bundle says.

    Attributes
    ----------
    folder
        Where it lies, unpacked.
    title, image
        Of the competition, and the name of the container that programs run in.
    tasks
        By index.
    phases
        In order.
    columns
        Of the first leaderboard, the only one that is used, by index.
    primary
        The column by which submissions are ordered.
    shows_details
        Whether participants see detailed_results.html.
    warnings
        What the platform takes, but probably not as it was meant.
    """

    folder: Path
    title: str
    image: str
    tasks: Mapping[int, Task]
    phases: tuple[Phase, ...]
    columns: tuple[Column, ...]
    primary: Column
    shows_details: bool
    warnings: list[str]
