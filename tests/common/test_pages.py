"""Pages: text is shown as text, and tables can be read on a phone."""

import re

from common import pages

import pytest
from page_reading import read_page

HEADER = ["name", "score & more", "seeds"]
ROWS = [["<a>", "0.5", "3"], ["b", "0.25", ""]]


def page_of(html: str) -> str:
    """Return a whole page whose body is `html`."""
    return pages.render("base.html", title="<title>", body=pages.Html(html))


@pytest.mark.parametrize("stacks", [False, True])
def test_a_table_can_be_read_on_a_phone(stacks: bool) -> None:
    """With `stacks`, a phone shows a row's cells below each other; without it, the table scrolls.

    Each stacked cell but the first is labelled with the name of its column: HTML holds the label in
    `data-label`, and a rule in CSS shows the label on narrow screens.
    """
    html = page_of(pages.part("table", HEADER, ROWS, caption="<what>", stacks=stacks))

    # The page shows the title and the whole table, whose special characters are shown as text.
    page = read_page(html)
    assert page.headings == ["<title>"]
    table = page.table("<what>")
    assert table.columns == HEADER
    assert table.rows == ROWS
    # A row has three cells, of which all but the first are labelled.
    labels_of_row = ["score &amp; more", "seeds"] if stacks else []
    labels = re.findall(r'data-label="(.*?)"', html)
    assert labels == labels_of_row * len(ROWS)
    # A table that is too wide scrolls inside this element.
    assert '<div class="wide"><table' in html
    # The style sheet has one rule that shows labels, and this rule applies only to narrow screens.
    # The rules for narrow screens are the last rules of the style sheet.
    shows_labels = "content: attr(data-label)"
    _, _, rest_of_page = html.partition("@media (max-width: 34rem)")
    rules_of_narrow_screens, _, _ = rest_of_page.partition("</style>")
    assert html.count(shows_labels) == 1
    assert rules_of_narrow_screens.count(shows_labels) == 1


def test_cells_escape_all_but_html_and_break_long_words() -> None:
    path = "data/test_output/submission_<1>.csv"
    name = "my_idea --n_dimensions 8"
    rows = [[pages.Html("<b>x</b>"), "<b>"], [path, name]]
    html = pages.part("table", ["partially_correct_incomplete", "own"], rows)
    assert '<th scope="row"><b>x</b></th><td>&lt;b&gt;</td>' in html
    assert ">data/<wbr>test_<wbr>output/<wbr>submission_<wbr>&lt;1&gt;.csv</th>" in html
    assert '>my_idea <span class="flag">--n_dimensions</span> 8</td>' in html
    assert ">partially_<wbr>correct_<wbr>incomplete</th>" in html
    assert read_page(page_of(html)).tables[0].rows == [["x", "<b>"], [path, name]]
