"""If an entry forges replies on the evaluator's channel, the game ends at once.

A stand-in for the program `common.sandbox.inside` replies as the program does when it starts, then
with a forged reply, and sleeps. The stand-in does not isolate itself: these tests do not need that.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common.adaptive.playing import isolate, play_all
from common.adaptive.setting import Setting
from common.errors import InputError
from common.sandbox import EntryError, entry_process, isolated_entry

import numpy as np
import pytest
from entry_folders import STUDENTS, make_setting
from platforms import on_linux

pytestmark = on_linux("the protections against an entry")

Forge = Callable[..., Setting]

# A request is a line of JSON, followed by the bytes of arrays, which end without a line feed. So
# `readline` returns the first line, and then the bytes of one request together with the line of the
# next request. One call for each request is enough, because no array of these games holds the byte
# of a line feed.
STAND_IN = """import sys, time
for reply in REPLIES:
    sys.stdin.buffer.readline()
    sys.stdout.buffer.write(reply)
    sys.stdout.flush()
time.sleep(1000)
"""
READY = b'{"protections": {}, "memory_limited": false, "refusal": null, "arrays": []}\n'
DONE = b'{"arrays": []}\n'
# A game that lasts fewer seconds than this has ended at once. The limit is large enough for a busy
# machine, and much less than the 1,000 seconds that the stand-in sleeps.
ENDS_WITHIN = 40

GARBLED = "closed or garbled the channel"
# Forged replies. The key describes the reply. The value holds the reply, and the message of the
# error with which it ends the game.
FORGED = {
    "an empty line": (b"\n", GARBLED),
    "half a line": (b'{"arr', GARBLED),
    "nesting without end": (b"[" * 60_000 + b"\n", GARBLED),
    "no list of arrays": (b"{}\n", GARBLED),
    "two arrays": (b'{"arrays": [["|i1", [1]], ["|i1", [1]]]}\nab', GARBLED),
    "an array that is too large": (b'{"arrays": [["<i8", [1000000000000]]]}\n', GARBLED),
    "an array that is cut off": (b'{"arrays": [["<i8", [2]]]}\n12345678', GARBLED),
    "a negative length": (b'{"arrays": [["<i8", [-1]]]}\n12345678', GARBLED),
    "two negative lengths": (b'{"arrays": [["<i8", [-1, -9]]]}\n', GARBLED),
    "a length that is a boolean": (b'{"arrays": [["<i8", [true]]]}\n12345678', GARBLED),
    "a length that is a fraction": (b'{"arrays": [["<i8", [1.0]]]}\n12345678', GARBLED),
    "a length that is text": (b'{"arrays": [["<i8", ["1"]]]}\n12345678', GARBLED),
    "a shape that is a number": (b'{"arrays": [["<i8", 1]]}\n12345678', GARBLED),
    "a hundred dimensions": (
        json.dumps({"arrays": [["|i1", [1] * 100]]}).encode() + b"\n1",
        GARBLED,
    ),
    "objects": (b'{"arrays": [["|O", [1]]]}\n12345678', GARBLED),
    "text": (b'{"arrays": [["<U2", [1]]]}\n12345678', GARBLED),
    "dates": (b'{"arrays": [["<M8[s]", [1]]]}\n12345678', GARBLED),
    "numbers of three bytes": (b'{"arrays": [["<i3", [1]]]}\n123', GARBLED),
    "a dtype that is a list": (b'{"arrays": [[["<i8"], [1]]]}\n12345678', GARBLED),
    "changed arguments that are a number": (b'{"changed": 5, "arrays": []}\n', GARBLED),
    "a fault that is a list": (b'{"fault": [1], "arrays": []}\n', GARBLED),
    "a fault that steers the terminal": (
        b'{"fault": "a\\n\\u001b[31mb", "arrays": []}\n',
        r"^a \\x1b\[31mb$",
    ),
    "a long fault": (b'{"fault": "' + b"x" * 60_000 + b'", "arrays": []}\n', "^x{1000}$"),
}


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """Return a function that replaces the program of the sandbox by a stand-in with given replies.

    The function takes the replies and returns the arguments of `play_all`, which then plays a game
    with the stand-in. At first, the stand-in replies READY and DONE, as the program of the sandbox
    does when it starts. Then it sends the given replies.
    """

    def replace_program(*replies: bytes) -> Setting:
        stand_in = tmp_path / "inside/__main__.py"
        stand_in.parent.mkdir()
        stand_in.write_text(STAND_IN.replace("REPLIES", repr([READY, DONE, *replies])))
        monkeypatch.setattr(isolated_entry.program, "__file__", str(stand_in))
        # The stand-in sends no further reply and does not end. Save time: do not wait for it long.
        monkeypatch.setattr(entry_process, "_MAX_REPLYING", 0.5)
        monkeypatch.setattr(entry_process, "_MAX_EXITING", 0.1)
        return make_setting(tmp_path)

    return replace_program


@pytest.mark.parametrize(("reply", "message"), FORGED.values(), ids=FORGED)
def test_a_message_that_is_no_reply_ends_the_game_at_once(
    forge: Forge, reply: bytes, message: str
) -> None:
    setting = forge(reply)
    started = time.monotonic()
    with pytest.raises(EntryError, match=message) as caught, isolate(setting) as entry:
        entry.call("predict", ())
    assert time.monotonic() - started < ENDS_WITHIN
    fault = str(caught.value)
    assert len(fault) < 1500
    assert fault.isprintable()


def message_with(dtype: str, shape: Sequence[int], content: bytes) -> bytes:
    """Return a reply that claims to hold an array in these bytes."""
    return json.dumps({"arrays": [[dtype, shape]]}).encode() + b"\n" + content


def as_reply(values: object, dtype: str) -> bytes:
    """Return a reply that holds an array of these values."""
    array = np.asarray(values, dtype)
    return message_with(dtype, array.shape, array.tobytes())


# Replies to a call of `select_questions`, and below to a call of `predict`, each with the message
# of the error that it causes. There are 4 students and 20 questions. The answers to the last three
# questions are targets, i.e. are to be predicted.
SELECTIONS = {
    "nothing": (DONE, "returned nothing, expected one column index for each of the 4 students"),
    "one number": (as_reply(0, "<i8"), r"returned shape \(\), expected one column index"),
    "a row": (as_reply([[0] * 4], "<i8"), r"returned shape \(1, 4\)"),
    "no columns": (message_with("<i8", [4, 0], b""), r"returned shape \(4, 0\)"),
    "no students, many columns": (
        message_with("<i8", [0, 10**12], b""),
        r"returned shape \(0, 1000000000000\)",
    ),
    "fractions": (as_reply([0.5] * 4, "<f8"), "returned float64 values, expected whole numbers"),
    "booleans": (as_reply([1] * 4, "|b1"), "returned bool values, expected whole numbers"),
    "below all columns": (as_reply([-1] * 4, "|i1"), "chose column -1, expected 0 to 19"),
    "above int64": (as_reply([2**64 - 1] * 4, "<u8"), "chose column 18446744073709551615, exp"),
    "another byte order": (as_reply([256] * 4, ">i8"), "chose column 256, expected 0 to 19"),
    "a target": (as_reply([17] * 4, "<i8"), "chose QuestionId 17, which is a target"),
}
PREDICTIONS = {
    "nothing": (DONE, r"returned nothing, expected an array of shape \(4, 20\)"),
    "transposed": (as_reply(np.zeros((20, 4)), "<i8"), r"returned shape \(20, 4\)"),
    "one axis": (as_reply(np.zeros(80), "<i8"), r"returned shape \(80,\)"),
    "three axes": (as_reply(np.zeros((4, 20, 1)), "<i8"), r"returned shape \(4, 20, 1\)"),
    "NaN": (as_reply(np.full((4, 20), np.nan), "<f2"), "predicted nan for QuestionId 17"),
    "infinity": (as_reply(np.full((4, 20), np.inf), "<f4"), "predicted inf for QuestionId 17"),
    "fractions": (as_reply(np.full((4, 20), 0.7), "<f8"), "predicted 0.7 for QuestionId 17"),
    "options": (as_reply(np.full((4, 20), 4), "|u1"), "predicted 4 for QuestionId 17"),
}


@pytest.mark.parametrize(("reply", "message"), SELECTIONS.values(), ids=SELECTIONS)
def test_a_forged_selection_is_checked_like_any_other(
    forge: Forge, reply: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=f"mask, round 1, select_questions: .*{message}"):
        play_all(forge(reply), STUDENTS)


def reply_to_rounds() -> list[bytes]:
    """Return the replies of ten rounds, in which all students are asked questions 0 to 9."""
    replies = []
    for question in range(10):
        replies += [as_reply([question] * 4, "<i8"), DONE]
    return replies


@pytest.mark.parametrize(("reply", "message"), PREDICTIONS.values(), ids=PREDICTIONS)
def test_a_forged_prediction_is_checked_like_any_other(
    forge: Forge, reply: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=f"mask, after round 10, predict: .*{message}"):
        play_all(forge(*reply_to_rounds(), reply), STUDENTS)


def test_any_byte_but_0_is_the_boolean_true(forge: Forge) -> None:
    reply = message_with("|b1", [4, 20], bytes([7]) * 80)
    games = play_all(forge(*reply_to_rounds(), reply), STUDENTS).games
    assert games["mask"].prediction.tolist() == [1] * 12
