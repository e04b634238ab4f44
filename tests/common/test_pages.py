"""Pages: tables whose cells keep their labels on a phone, and show that they can be scrolled."""

import re

import pytest
from page_reading import read_page as check_page

from common import pages

HEADER = ["name", "score & more", "seeds"]
ROWS = [["<a>", "0.5", "3"], ["b", "0.25", ""]]


def test_a_stacked_table_labels_every_cell() -> None:
    page = pages.page("title", pages.table(HEADER, ROWS, css_class="own", stacks=True))
    check_page(page)
    assert 'class="own stacked"' in page
    found = re.findall(r'<td data-label="(.*?)">(.*?)</td>', page)
    score, seeds = "score &amp; more", "seeds"
    assert found == [(score, "0.5"), (seeds, "3"), (score, "0.25"), (seeds, "")]
    # Shown on a phone alone, and not for a cell that is empty.
    phone = page[page.index("@media (max-width: 34rem)") : page.index("</style>")]
    assert "content: attr(data-label)" in phone
    assert page.count("content: attr(data-label)") == 1
    assert ".stacked td:empty { display: none; }" in phone


@pytest.mark.parametrize("stacks", [False, True])
def test_a_table_that_is_too_wide_scrolls_with_a_shadow(stacks: bool) -> None:
    page = pages.page("title", pages.table(HEADER, ROWS, caption="<what>", stacks=stacks))
    assert '<div class="wide"><table' in page
    (style,) = re.findall(r"^\.wide {(.*?)}", page, re.MULTILINE | re.DOTALL)
    assert "overflow-x: auto" in style
    # A shadow at each end, and what covers it where the table ends.
    assert style.count("var(--shadow)") == style.count("Canvas") == 2
    assert style.count("local") == style.count("scroll,") + style.count("scroll;") == 2
    assert page.count("--shadow: ") == 2, "one colour for light pages, one for dark ones"
    assert ("data-label" in page.split("</style>")[1]) == stacks
    assert "<caption>&lt;what&gt;</caption>" in page


def test_only_what_is_html_stays_html() -> None:
    table = pages.table(HEADER, [[pages.Html("<b>x</b>"), "<b>", pages.Html("<i>y</i>")]])
    assert '<th scope="row"><b>x</b></th><td>&lt;b&gt;</td><td><i>y</i></td>' in table


def test_long_words_may_go_on_in_the_next_line() -> None:
    path, name = "data/test_output/submission_<1>.csv", "my_idea --n_dimensions 8"
    table = pages.table(["partially_correct_incomplete"], [[path], [name]])
    shown = "data/<wbr>test_<wbr>output/<wbr>submission_<wbr>&lt;1&gt;.csv"
    assert f">{shown}</th>" in table
    assert '>my_idea <span class="flag">--n_dimensions</span> 8</th>' in table
    assert ">partially_<wbr>correct_<wbr>incomplete</th>" in table
    check_page(pages.page("title", table))


def test_a_table_without_column_names() -> None:
    table = pages.table([], [("Rank", "1 of 2"), ("Answers", "20")], css_class="facts")
    assert "<thead>" not in table
    assert re.findall(r"<td>(.*?)</td>", table) == ["1 of 2", "20"]
    assert "<tbody>" in pages.table(HEADER, [])
