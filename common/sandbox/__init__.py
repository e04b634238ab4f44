"""Run an entry of task 4 in isolation: `IsolatedEntry` is the one way in.

README.md beside this file says what an entry can reach and what it cannot. Other code of the kit
imports these names from `common.sandbox`, and nothing from the modules in it.
"""

from common.sandbox.entry_process import EntryError
from common.sandbox.inside.faults import KIT_PACKAGES
from common.sandbox.inside.submission import MODULE as ENTRY_MODULE
from common.sandbox.inside.submission import InvalidEntryError, call_method
from common.sandbox.isolated_entry import IsolatedEntry, Limits

__all__ = [
    "ENTRY_MODULE",
    "KIT_PACKAGES",
    "EntryError",
    "InvalidEntryError",
    "IsolatedEntry",
    "Limits",
    "call_method",
]
