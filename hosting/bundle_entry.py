"""The parts of competition.yaml, each with its place for messages, and what their keys may hold.

`read` walks a table of rules. The kind of a rule is a function of the entry, the key, its value
(None where it is missing) and a limit: it returns the value, checked, or raises.
"""

import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from common.errors import InputError, one_line, printable, quote

import yaml
from dateutil import parser as dates

REQUIRED = object()
# In place of a path: data that only the server has.
ON_SERVER = Path("on the server")

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")
_TIME = 'a time in quotes, such as "2026-10-01 09:00"'


@dataclass(frozen=True)
class Entry:
    """A mapping in competition.yaml: its place, for messages, and the folder of the bundle."""

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


class Rule(NamedTuple):
    """What a key may hold, and what the platform takes if it is not set, told if that surprises."""

    kind: Callable[[Entry, str, Any, Any], Any]
    limit: Any = None
    default: Any = REQUIRED
    is_told: bool = False


def read(entry: Entry, rules: Mapping[str, Rule]) -> SimpleNamespace:
    """Return the value of every key that a table of rules names."""
    values = {}
    for key, rule in rules.items():
        value = entry.content.get(key)
        if value is None and rule.default is not REQUIRED:
            if rule.is_told:
                entry.warn(f"{key} is not set, so that it is {rule.default}")
            values[key] = rule.default
        else:
            values[key] = rule.kind(entry, key, value, rule.limit)
    return SimpleNamespace(**values)


def read_distinct(
    found: Sequence[Entry], read_one: Callable[[Entry], SimpleNamespace], what: str, *keys: str
) -> list[SimpleNamespace]:
    """Read entries of which no two may have the same value of some keys."""
    said: list[SimpleNamespace] = []
    for entry in found:
        one = read_one(entry)
        for key in keys:
            value = getattr(one, key)
            if any(getattr(other, key) == value for other in said):
                raise entry.fault(
                    f"{key} is {shown(value)}, as of another {what}, expected different ones"
                )
        said.append(one)
    return said


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


def shown(value: object) -> str:
    """Return a value for a message."""
    if value is None:
        return "missing"
    return quote(value) if isinstance(value, str) else printable(repr(value), 80)


# ---- Kinds of values -----------------------------------------------------------------------------


def entries(entry: Entry, key: str, value: Any, least: int) -> list[Entry]:
    """Return the mappings of a list."""
    if not isinstance(value, list) or len(value) < least:
        raise entry.fault(
            f"{key} is {shown(value)}, expected a list" + " of at least one" * bool(least)
        )
    found = []
    for number, item in enumerate(value, 1):
        place = f"{entry.place}: {key}, entry {number}"
        if not isinstance(item, dict):
            raise InputError(f"{place}: is {shown(item)}, expected keys with values")
        name = next((item[k] for k in ("name", "title", "key") if isinstance(item.get(k), str)), "")
        place += f" ({quote(name)})" * bool(name)
        found.append(Entry(place, item, entry.root, entry.warnings))
    return found


def text(entry: Entry, key: str, value: Any, most: int | None) -> str:
    """Return a text.

    With a greatest length, as of what goes into the platform's tables, a number is as good.
    """
    if most and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise entry.fault(f"{key} is {shown(value)}, expected text")
    if most is not None and len(value) > most:
        raise entry.fault(
            f"{key} has {len(value)} characters, {quote(value)}, expected at most {most}"
        )
    return value


def whole(entry: Entry, key: str, value: Any, _: None) -> int:
    """Return a whole number; the platform keeps all of them as positive 32-bit integers."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise entry.fault(f"{key} is {shown(value)}, expected a whole number of at least 0")
    return value


def choice(entry: Entry, key: str, value: Any, choices: tuple[str, ...]) -> Any:
    """Return one of several texts."""
    if value not in choices:
        raise entry.fault(f"{key} is {shown(value)}, expected one of {', '.join(choices)}")
    return value


def flag(_entry: Entry, _key: str, value: Any, _: None) -> bool:
    """Return whether something is set."""
    return bool(value)


def indexes(entry: Entry, key: str, value: Any, _: None) -> list[Any]:
    """Return a list of indexes."""
    if not isinstance(value, list) or not value:
        raise entry.fault(f"{key} is {shown(value)}, expected at least one index of a task")
    return value


def moment(entry: Entry, key: str, value: Any, _: None) -> datetime:
    """Return a time: YAML's own kind loses its hours, text its time zone (unpackers/utils.py)."""
    if isinstance(value, date):
        midnight = datetime.combine(value, time())
        if isinstance(value, datetime) and value.time() != time():
            entry.warn(
                f"{key} is {value} without quotes, which the platform reads as {midnight}; "
                "expected the time in quotes"
            )
        return midnight
    try:
        parsed = dates.parse(value)
    except (ValueError, OverflowError, TypeError):
        raise entry.fault(f"{key} is {shown(value)}, expected {_TIME}") from None
    assert isinstance(parsed, datetime)
    if parsed.utcoffset():
        entry.warn(f"{key} is {shown(value)}, of which the platform drops the time zone")
    return parsed.replace(tzinfo=None)


def inside(entry: Entry, key: str, value: Any, what: str) -> Path:
    """Return a path in the bundle; nothing outside is read."""
    name = text(entry, key, value, None)
    path = entry.root / name
    try:
        is_inside = path.resolve().is_relative_to(entry.root.resolve())
    except (OSError, ValueError, RuntimeError):
        is_inside = False
    if not is_inside:
        raise entry.fault(f"{key} is {quote(name)}, which leads out of the bundle")
    if what and not path.is_file():
        raise entry.fault(f"{key}: file {quote(name)} is not in the bundle, expected {what}")
    return path


def page(entry: Entry, key: str, value: Any, _: None) -> None:
    """A page or the terms: a file with text (unpackers/v2.py, _unpack_pages, _unpack_terms)."""
    path = inside(entry, key, value, "a page there")
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise entry.fault(f"{key}: file {quote(value)} is not UTF-8 text") from None
    if not content:
        raise entry.fault(f"{key}: file {quote(value)} is empty, expected a page")


def image(entry: Entry, key: str, value: Any, _: None) -> None:
    """The logo: a picture (base_unpacker.py, _read_image; api/fields.py, NamedBase64ImageField)."""
    with inside(entry, key, value, "a picture").open("rb") as file:
        if not file.read(16).startswith(_IMAGES):
            raise entry.fault(f"{key}: file {quote(value)} is no PNG, JPEG or GIF, expected one")


def data(entry: Entry, key: str, value: Any, _: None) -> Path:
    """A file or folder, or the UUID of data on the server (base_unpacker.py, _get_data_key)."""
    if value is None:
        raise entry.fault(f"{key} is missing, expected a folder or zip of the bundle")
    path = inside(entry, key, value, "")
    if path.exists():
        return path
    try:
        uuid.UUID(value)
    except ValueError:
        raise entry.fault(
            f"{key}: {quote(value)} is not in the bundle, expected a file or folder there"
        ) from None
    entry.warn(f"{key} names data on the server, which only the server can look up")
    return ON_SERVER


def unpacked(entry: Entry, key: str, value: Any, _: None) -> Path:
    """Return `data` that programs see unpacked: a folder or a zip."""
    path = data(entry, key, value, None)
    if path.is_file() and not zipfile.is_zipfile(path):
        raise entry.fault(f"{key}: {quote(value)} is no zip, expected one")
    return path
