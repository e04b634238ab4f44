"""The messages between the evaluator and an entry's process, a dataclass for each.

The evaluator sends `Start` first and gets `Ready`. Then it sends `Call` after `Call` and gets a
`Reply` to each. `channel.py` turns messages and their arrays into bytes.
"""

from dataclasses import dataclass, field
from typing import Any

from .protections import Protections


@dataclass(frozen=True)
class Start:
    """The evaluator's first message: how to isolate the process."""

    # Folders that the entry must not be able to read.
    hidden: list[str]
    # The protections to use, as far as the system allows them.
    protections: Protections
    # The largest address space of the process, in bytes.
    memory: int

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> "Start":
        """Make the message from its JSON object."""
        return cls(fields["hidden"], Protections(**fields["protections"]), fields["memory"])


@dataclass(frozen=True)
class Ready:
    """The first reply: the process is isolated, or why it cannot be."""

    # The protections in force.
    protections: Protections = field(default_factory=Protections)
    # Whether the operating system enforces the limit of memory.
    memory_limited: bool = False
    # Why the process cannot be isolated; None if it is isolated.
    refusal: str | None = None

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> "Ready":
        """Make the message from its JSON object, which the kit's own code has written."""
        return cls(
            Protections(**fields["protections"]), fields["memory_limited"], fields["refusal"]
        )


@dataclass(frozen=True)
class Call:
    """A request to call a method of the entry; the arrays of its arguments are sent after it."""

    # The name of the method. "__init__" makes a new instance of the entry's class.
    method: str


@dataclass(frozen=True)
class Reply:
    """The reply to a call. If the method returned an array, it is sent after this message."""

    # Why the call failed; None if it did not.
    fault: str | None = None
    # Names of the arguments that the method changed.
    changed: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> "Reply":
        """Make the message from its JSON object; `ValueError` if a field has a wrong type.

        An entry that cheats may have sent the message instead of the kit, so the types are checked.
        """
        fault = fields.get("fault")
        changed = fields.get("changed", [])
        if not isinstance(fault, str | None) or not isinstance(changed, list):
            raise ValueError("not a reply to a call")
        return cls(fault, changed)
