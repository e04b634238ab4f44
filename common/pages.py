"""Make pages in the kit's style from `templates/`. Every text that is not `Html` is escaped."""

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).resolve().parent / "templates"
_LONG_WORD = re.compile(r"\S{20,}")
_FLAG = re.compile(r"(?<!\S)--[\w-]+")


class Html(str):
    """Text that is HTML already. Templates do not escape it."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return this text. Jinja2 does not escape text that has this method."""
        return self


def render(name: str, **facts: Any) -> str:
    """Return a complete page: a template filled in with facts."""
    # File names may hold surrogates, which UTF-8 cannot encode.
    text = environment().get_template(name).render(facts)
    return text.encode(errors="backslashreplace").decode()


def part(name: str, *args: Any, **options: Any) -> Html:
    """Return a part of a page: a macro of `macros.html` called with arguments."""
    macro = getattr(environment().get_template("macros.html").module, name)
    return Html(macro(*args, **options))


@cache
def environment(folder: Path = TEMPLATES, **options: Any) -> "Environment":
    """Return the Jinja2 environment for a folder of templates, by default those of pages."""
    # Imported here, because the import is slow and few runs write a page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, **options}
    loader = FileSystemLoader(folder)
    created = Environment(loader=loader, undefined=StrictUndefined, **options)
    created.filters["breakable"] = _breakable
    return created


def _breakable(text: str) -> Html:
    """Escape a text, and mark where a browser may and may not break lines."""
    if hasattr(text, "__html__"):
        return Html(text)
    # Paths and long names may break after a slash or underscore. Flags must not break at hyphens.
    html = _LONG_WORD.sub(lambda word: re.sub("([/_])", r"\1<wbr>", word[0]), escape(text))
    return Html(_FLAG.sub(r'<span class="flag">\g<0></span>', html))
