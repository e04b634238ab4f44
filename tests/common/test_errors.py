"""Texts of unknown origin in messages: on one line, printable, cut."""

from common.errors import MAX_SHOWN, one_line, quote

from hypothesis import given
from hypothesis import strategies as st


@given(st.text(st.characters(codec=None)))
def test_whatever_a_file_holds_can_be_shown(text: str) -> None:
    shown = quote(text)
    assert shown.isprintable()
    assert len(shown) <= MAX_SHOWN + 2
    assert one_line(text).isprintable()
    if text.isprintable() and len(text) <= MAX_SHOWN:
        assert shown == f"'{text}'"
