"""Pages in the kit's style: one file each, for light and dark screens, needing no network."""

import re
from collections.abc import Sequence
from html import escape

_LONG_WORD = re.compile(r"\S{20,}")
_FLAG = re.compile(r"(?<!\S)--[\w-]+")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --shadow: #0005;
        --accent: 37 99 235; }
@media (prefers-color-scheme: dark) { :root { --accent: 96 165 250; --shadow: #fff6; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2.5rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; }
.score { font-size: 3.4rem; font-weight: 650; line-height: 1.2; margin: .3rem 0 0;
         font-variant-numeric: tabular-nums; }
.what { margin: 0 0 1.5rem; opacity: .75; }
.note { border-left: 4px solid rgb(var(--accent)); background: var(--soft); margin: 1.2rem 0;
        padding: .5rem .9rem; border-radius: 0 6px 6px 0; }
/* What is too wide scrolls sideways; a shadow at its edge says so, which the page's colour, moving
   with the content, covers where the content ends. */
.wide { overflow-x: auto; background:
    linear-gradient(to right, Canvas 40%, transparent) left / 2.5rem 101% no-repeat local,
    linear-gradient(to left, Canvas 40%, transparent) right / 2.5rem 101% no-repeat local,
    linear-gradient(to right, var(--shadow), transparent) left / .9rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shadow), transparent) right / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .8rem; border-bottom: 1px solid var(--line); text-align: right;
         vertical-align: top; }
th { font-weight: 600; } th:first-child, td:first-child { padding-left: 0; }
th[scope=row], thead th:first-child, :is(.facts, .rounds) :is(td, th) { text-align: left; }
.facts { width: 100%; } .facts th { width: 12.5rem; } .facts td { overflow-wrap: anywhere; }
.confusion { width: 100%; } .cell { white-space: nowrap; }
.cell small { display: block; opacity: .75; }
.confusion tr:first-child td:empty { border: 0; }
.confusion [colspan] { text-align: center; border: 0; padding-bottom: 0; font-weight: 400; }
caption { text-align: left; opacity: .75; padding: 1.2rem 0 .4rem; max-width: calc(100vw - 2rem); }
figure { margin: 0; } .flag { white-space: nowrap; }
.chart { display: block; width: 100%; max-width: 32rem; height: auto; overflow: visible; }
@media (max-width: 34rem) {
  body { margin: 1.5rem auto; } th, td { padding-inline: .45rem; } .confusion { font-size: .9rem; }
  .facts :is(tr, th, td) { display: block; width: auto; padding: 0; border: 0; }
  .facts tr { border-bottom: 1px solid var(--line); padding: .35rem 0; }
  .facts th { font-weight: 400; font-size: .85rem; opacity: .75; }
  .stacked thead { display: none; } .stacked :is(tbody, tr, th) { display: block; }
  .stacked, .stacked caption { display: block; width: auto; }
  .stacked tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .stacked :is(th, td) { border: 0; padding: .1rem 0; }
  .stacked td { display: flex; justify-content: space-between; gap: 1.2rem; }
  .stacked td::before { content: attr(data-label); opacity: .75; text-align: left; }
  .stacked td:empty { display: none; }
}
"""


def page(title: str, body: str, *, tab: str = "", style: str = "") -> str:
    """Return a complete page in the kit's style, for light and dark screens.

    Parameters
    ----------
    title
        Heading of the page.
    body
        HTML below the heading.
    tab
        Title of the browser's tab, if not the heading.
    style
        Further CSS that only this page needs.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(tab or title)}</title>
<style>{_STYLE}{style}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
"""


class Html(str):
    """Text of a cell that is HTML already, so that `table` does not escape it."""

    __slots__ = ()


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    css_class: str = "",
    caption: str = "",
    stacks: bool = False,
) -> str:
    """Return a table as HTML; the first cell of every row names the row.

    Parameters
    ----------
    header
        Column names, possibly none.
    rows
        Texts of the cells, escaped here unless they are `Html`.
    css_class
        Class of the table.
    caption
        What the table shows.
    stacks
        Whether a phone shows every cell on a line of its own, beside the name of its column; else
        it scrolls a table that is too wide.
    """
    head = "".join(f'<th scope="col">{_as_html(name)}</th>' for name in header)
    n_columns = max(map(len, rows), default=0)
    labels = [f' data-label="{escape(name)}"' for name in header] if stacks else [""] * n_columns
    lines = "".join(
        f'<tr><th scope="row">{_as_html(row[0])}</th>'
        + "".join(
            f"<td{label}>{_as_html(cell)}</td>"
            for label, cell in zip(labels[1:], row[1:], strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    css_class = " ".join([css_class] * bool(css_class) + ["stacked"] * stacks)
    return (
        f'<div class="wide"><table class="{css_class}">'
        + (f"<caption>{escape(caption)}</caption>" if caption else "")
        + (f"<thead><tr>{head}</tr></thead>" if header else "")
        + f"<tbody>\n{lines}</tbody></table></div>"
    )


def _as_html(cell: str) -> str:
    if isinstance(cell, Html):
        return cell
    # A path or a long name may go on in the next line after a slash or an underscore; a browser
    # would also break a flag after its hyphens.
    html = _LONG_WORD.sub(lambda word: re.sub("([/_])", r"\1<wbr>", word[0]), escape(cell))
    return _FLAG.sub(r'<span class="flag">\g<0></span>', html)


def simulated_note(simulated: bool) -> str:
    """Return a note, as HTML, that the answers are simulated; nothing for real answers."""
    if not simulated:
        return ""
    return (
        '<p class="note">From simulated answers. The figures say whether a model works, not how '
        "well it does on real students.</p>"
    )
