"""Pages in the kit's style, from the templates in `templates/`; all but `Html` is escaped."""

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
    """Text that is HTML already, so that no template escapes it."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it: what Jinja2 asks of text that it shall not escape."""
        return self


def render(name: str, **facts: Any) -> str:
    """Return what a template makes of facts: a complete page, of characters that UTF-8 has."""
    text = environment().get_template(name).render(facts)
    return text.encode(errors="backslashreplace").decode()


def part(name: str, *args: Any, **options: Any) -> Html:
    """Return what a macro of `macros.html` makes, for pages that are put together elsewhere."""
    macro = getattr(environment().get_template("macros.html").module, name)
    return Html(macro(*args, **options))


@cache
def environment(folder: Path = TEMPLATES, **options: Any) -> "Environment":
    """Return Jinja2's environment of a folder of templates, by default those of pages."""
    # Only what writes a page waits for this import.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, **options}
    found = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, **options)
    found.filters["breakable"] = _breakable
    return found


def _breakable(text: str) -> Html:
    """Escape a text, and say where a browser may break it and where not."""
    if hasattr(text, "__html__"):
        return Html(text)
    # Paths and long names may break after a slash or underscore; flags would after their hyphens.
    html = _LONG_WORD.sub(lambda word: re.sub("([/_])", r"\1<wbr>", word[0]), escape(text))
    return Html(_FLAG.sub(r'<span class="flag">\g<0></span>', html))
