"""The parts of competition.yaml, each with its place for messages, and the values in them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.errors import InputError, one_line, printable, quote

import yaml


@dataclass(frozen=True)
class Entry:
    """A mapping in competition.yaml.

    Attributes
    ----------
    place
        Where it is, for messages.
    content
        What it holds.
    root
        The folder of the bundle.
    warnings
        Of the whole file, so far.
    """

    place: str
    content: dict[Any, Any]
    root: Path
    warnings: list[str] = field(default_factory=list)

    def fault(self, text: str) -> InputError:
        """Return an error that names this place."""
        return InputError(f"{self.place}: {text}")

    def warn(self, text: str) -> None:
        """Note what the platform takes, but probably not as it was meant."""
        self.warnings.append(f"{self.place}: {text}")


def parse(text: bytes, place: str) -> Any:
    """Read YAML; a fault names the place and the line."""
    try:
        return yaml.safe_load(text.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{place}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise InputError(f"{place}: {line}is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # An impossible date such as 2026-02-30 is a ValueError.
        raise InputError(f"{place}: is not YAML: {one_line(str(error))}") from None


def entries_of(entry: Entry, key: str, *, at_least_one: bool = False) -> list[Entry]:
    """Return the mappings of a list."""
    items = entry.content.get(key)
    if not isinstance(items, list) or (at_least_one and not items):
        raise entry.fault(
            f"{key} is {shown(items)}, expected a list" + " of at least one" * at_least_one
        )
    entries = []
    for number, item in enumerate(items, 1):
        place = f"{entry.place}: {key}, entry {number}"
        if not isinstance(item, dict):
            raise InputError(f"{place}: is {shown(item)}, expected keys with values")
        name = next((item[k] for k in ("name", "title", "key") if isinstance(item.get(k), str)), "")
        place += f" ({quote(name)})" * bool(name)
        entries.append(Entry(place, item, entry.root, entry.warnings))
    return entries


def text_of(entry: Entry, key: str, max_length: int | None = None) -> str:
    """Return a text that must be there.

    With a greatest length, as of what goes into the platform's tables, a number is as good.
    """
    value = entry.content.get(key)
    if max_length and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise entry.fault(f"{key} is {shown(value)}, expected text")
    if max_length is not None and len(value) > max_length:
        raise entry.fault(
            f"{key} has {len(value)} characters, {quote(value)}, expected at most {max_length}"
        )
    return value


def whole_of(entry: Entry, key: str, default: int | None = None) -> int:
    """Return a whole number; the platform keeps all of them as positive 32-bit integers."""
    value = entry.content.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise entry.fault(f"{key} is {shown(value)}, expected a whole number of at least 0")
    return value


def choice_of(entry: Entry, key: str, choices: tuple[str, ...], default: str) -> str:
    """Return one of several texts."""
    value = entry.content.get(key, default)
    if value not in choices:
        raise entry.fault(f"{key} is {shown(value)}, expected one of {', '.join(choices)}")
    assert isinstance(value, str)
    return value


def path_of(entry: Entry, key: str, name: str) -> Path:
    """Return a path in the bundle; nothing outside is read."""
    path = entry.root / name
    try:
        inside = path.resolve().is_relative_to(entry.root.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        raise entry.fault(f"{key} is {quote(name)}, which leads out of the bundle")
    return path


def shown(value: object) -> str:
    """Return a value for a message."""
    if value is None:
        return "missing"
    return quote(value) if isinstance(value, str) else printable(repr(value), 80)
