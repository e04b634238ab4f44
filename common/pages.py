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


def render(name: str, **variables: Any) -> str:
    """Return a complete page: a template filled in with variables."""
    # File names may hold surrogates, which UTF-8 cannot encode. Write them as escapes such as
    # \udcff.
    text = environment().get_template(name).render(variables)
    return text.encode(errors="backslashreplace").decode()


def part(name: str, *args: Any, **options: Any) -> Html:
    """Return a part of a page: the macro `name` of `macros.html`, called with the arguments."""
    macro = getattr(environment().get_template("macros.html").module, name)
    return Html(macro(*args, **options))


@cache
def environment(folder: Path = TEMPLATES, **options: Any) -> "Environment":
    """Return the Jinja2 environment for a folder of templates, by default common/templates."""
    # Import Jinja2 only here: the import is slow, and few runs write a page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, **options}
    loader = FileSystemLoader(folder)
    created = Environment(loader=loader, undefined=StrictUndefined, **options)
    created.filters["breakable"] = _breakable
    return created


def _breakable(text: str) -> Html:
    """Return a text as HTML that browsers break into lines at suitable characters.

    In a long word, a line may end after a slash or an underscore (``<wbr>``). A flag such as
    ``--log`` is kept on one line (class ``flag``).
    """
    if hasattr(text, "__html__"):
        return Html(text)
    html = _LONG_WORD.sub(lambda word: re.sub("([/_])", r"\1<wbr>", word[0]), escape(text))
    return Html(_FLAG.sub(r'<span class="flag">\g<0></span>', html))
