"""Texts of unknown origin in messages: on one line, printable, cut."""

from common.errors import MAX_SHOWN, one_line, printable, quote

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


def test_texts_as_they_are_shown() -> None:
    assert quote("a\nb") == r"'a\nb'"
    assert quote("\x1b[31mred") == r"'\x1b[31mred'"
    assert quote("\ud800\u2028\u202e") == r"'\ud800\u2028\u202e'"
    assert quote("y" * 1_000_000) == f"'{'y' * 79}…'"
    assert quote(None) == "'None'"
    # A message stays whole, on one line.
    assert one_line("a.csv:\n  row 2 \x07") == r"a.csv: row 2 \x07"
    assert printable("x" * 1000) == "x" * 1000
