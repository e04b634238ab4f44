"""The competition as a folder of pages, for any web server: its pages, files and leaderboards."""

import re
import shutil
from html import escape
from pathlib import Path

from common import io, pages
from common.pages import Html

from bundle import Bundle
from competition import PUBLIC_DATA, STARTING_KIT

_INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
)


def write(site: Path, bundle: Bundle, phase: str, folder: Path) -> None:
    """Publish the leaderboards of a phase, from their folder, in a folder of pages.

    What another phase has published there stays.
    """
    (site / "details").mkdir(parents=True, exist_ok=True)
    board = (folder / "leaderboard.html").read_text(encoding="utf-8")
    for name in re.findall(r'href="(details/[0-9a-f_]+\.html)"', board):
        shutil.copyfile(folder / name, site / name)
    for suffix in ("html", "csv"):
        name = f"leaderboard_{phase.lower()}.{suffix}"
        shutil.copyfile(folder / f"leaderboard.{suffix}", site / name)
    links = {title: f"{path.stem}.html" for title, path in bundle.pages.items()}
    for name in (each.name.lower() for each in bundle.phases):
        if (site / f"leaderboard_{name}.html").is_file():
            links[f"Leaderboard, {name}"] = f"leaderboard_{name}.html"
    for title, name in (("Public data", PUBLIC_DATA), ("Starting kit", STARTING_KIT)):
        shutil.copyfile(bundle.folder / name, site / name)
        links[title] = name
    for title, path in bundle.pages.items():
        page = pages.render(
            "site.html",
            title=bundle.title,
            tab=f"{bundle.title}: {title}",
            links=links,
            text=Html(to_html(path.read_text(encoding="utf-8"))),
        )
        io.write_text(site / f"{path.stem}.html", page)
        if title == next(iter(bundle.pages)):
            io.write_text(site / "index.html", page)


def to_html(markdown: str) -> str:
    """Return the Markdown that the pages of a bundle are written in as HTML."""
    parts = []
    for block in re.split(r"\n\s*\n", markdown.strip("\n")):
        lines = block.splitlines()
        text = _inline(" ".join(line.strip() for line in lines))
        if heading := re.fullmatch(r"(#+) (.*)", text):
            # The page has a title above its text.
            level = len(heading[1]) + 1
            parts.append(f"<h{level}>{heading[2]}</h{level}>")
        elif all(line.startswith("    ") for line in lines):
            parts.append(f"<pre>{escape(block)}</pre>")
        elif block.startswith("|"):
            rows = [[Html(_inline(cell)) for cell in line.strip("|").split("|")] for line in lines]
            parts.append(pages.table(rows[0], rows[2:]))
        elif block.startswith("- "):
            items = re.split(r"(?:^|\s)- ", text)[1:]
            parts.append(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")
        else:
            parts.append(f"<p>{text}</p>")
    return "\n".join(parts)


def _inline(text: str) -> str:
    text = escape(text.strip())
    for pattern, html in _INLINE:
        text = pattern.sub(html, text)
    return text
