"""Playing an entry with all masks: its files, what it prints, its curve, faulty zips."""

import itertools
import time
from dataclasses import replace
from pathlib import Path

from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import N_ROUNDS
from common.adaptive.playing import measure_curves, play_all
from common.adaptive.setting import Setting
from common.errors import InputError

import numpy as np
import pytest
import toy_bundle
from conftest import Write
from entry_folders import STUDENTS, TWO_MASKS, make_setting, with_entry


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """Write an entry and a file of hidden answers; return the arguments of `play_all` for them."""
    return make_setting(tmp_path)


# Code that an entry runs when it starts, in `__init__`. It checks which files the entry finds. Then
# it writes a new file, and empties another one.
LOOK_AT_FILES = """
from pathlib import Path
assert Path('weights/model_task_4_a.txt').read_text() == 'weights'
assert Path('model_task_4_b.txt').read_text() == 'weights'
assert Path('train_task_3_4.csv').read_text() == "the challenge's training file"
assert Path('subject_metadata.csv').read_text() == 'subjects'
names = {path.name for path in Path().iterdir() if path.name != '__pycache__'}
assert names == {
    'submission_model_task_4.py',
    'weights',
    'model_task_4_b.txt',
    'train_task_3_4.csv',
    'subject_metadata.csv',
}, names

Path('left_behind').write_text('')
Path('train_task_3_4.csv').write_text('')
"""


def test_an_entry_finds_its_own_files_and_those_of_the_challenge_fresh_for_every_mask(
    setting: Setting, write: Write
) -> None:
    """The entry runs in a fresh copy of its folder, to which the files of the challenge are added.

    Here the entry's folder holds a file of training answers with the same name as a file of the
    challenge. In the copy, the challenge's file must take its place.

    The entry is started once for each mask (a choice of the answers to hide). When it starts, it
    runs `LOOK_AT_FILES`. This code fails unless the entry finds exactly the expected files. Then it
    adds a file and empties another one. When the entry starts with the next mask, it must find the
    original files again.
    """
    package = setting.submission
    write("package/train_task_3_4.csv", "the entry's training file")
    write("package/weights/model_task_4_a.txt", "weights")
    (package / "model_task_4_b.txt").symlink_to("weights/model_task_4_a.txt")
    write("subject_metadata.csv", "subjects")
    train = write("train_task_4.csv", "the challenge's training file")
    entry = with_entry(setting, __init__=LOOK_AT_FILES)

    games = play_all(replace(entry, train=train), TWO_MASKS).games

    # The entry was started anew for each of the two masks, and looked at its files each time.
    assert len(games) == 2
    assert train.read_text() == "the challenge's training file"
    assert not (package / "left_behind").exists()


def test_global_variables_of_an_entry_do_not_outlive_a_mask(setting: Setting) -> None:
    # `update_model` is called ten times with each mask. A process that played both masks would
    # count 20 calls.
    count = "global calls\ncalls = globals().get('calls', 0) + 1\nassert calls <= 10"
    games = play_all(with_entry(setting, update_model=count), TWO_MASKS).games
    assert len(games) == 2


def test_an_entry_can_open_a_temporary_file_by_its_name(setting: Setting) -> None:
    body = "import tempfile\nwith tempfile.NamedTemporaryFile() as file: open(file.name).close()"
    play_all(with_entry(setting, __init__=body), STUDENTS)


def test_the_end_of_what_a_failing_entry_prints_is_written(setting: Setting) -> None:
    output = setting.submission.parent / "output.txt"
    entry = with_entry(setting, predict="print('long ago')\nprint('x' * 150_000)\n1 / 0")
    with pytest.raises(InputError, match=r"; what it printed is in .*output.txt$"):
        play_all(entry, STUDENTS, output)
    text = output.read_text()
    assert "long ago" not in text
    assert text.endswith("ZeroDivisionError: division by zero\n")


def test_the_curve_replays_the_choices_and_compares_them_with_random_ones(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curve is the accuracy of an entry's predictions before the first round and after each one.

    To measure it, each game is replayed twice: with the questions that the entry has chosen, and
    with random questions. There is a game for each of two masks.

    Each student has three answers to predict (targets), whose outcomes are 1, 0 and 1. The entry
    predicts 0 for all of them until question 0 has been asked, and 1 from then on. So one in three
    predictions is right before question 0, and two in three after it. The entry asks question 0
    first.
    """
    predict = """
knows_question_0 = masked_binary_data[:, :1] >= 0
return np.repeat(knows_question_0, masked_data.shape[1], axis=1)
"""
    entry = with_entry(setting, predict=predict)
    games = play_all(entry, TWO_MASKS).games
    # Each of the four replays may take 60 seconds. To check that they do not share one limit, a
    # false clock advances by 1.5 seconds whenever it is read. The kit reads it about 24 times in a
    # replay. So a replay takes some 36 seconds by this clock, and all four take more than 60.
    clock = itertools.count(step=1.5)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))

    curves = measure_curves(entry, TWO_MASKS, games)

    # `measure_curves` returns a text if the entry fails.
    assert not isinstance(curves, str)
    # The shape is (masks, 2, rounds + 1): the entry's own choice, then the random choice. The first
    # column is the accuracy before the first round, and each later column that after a round.
    curve_of_entry = curves[:, 0]
    curve_of_random_choice = curves[:, 1]
    # The entry asks question 0 in the first round. That raises the accuracy from 1/3 to 2/3.
    assert curve_of_entry[:, 0].tolist() == [1 / 3] * 2
    assert curve_of_entry[:, 1:].tolist() == [[2 / 3] * N_ROUNDS] * 2
    # With random questions, question 0 is asked in a random round, if at all.
    assert curve_of_random_choice[:, 0].tolist() == [1 / 3] * 2
    assert np.all(np.diff(curve_of_random_choice) >= 0)
    # The questions are drawn anew for each mask.
    assert curve_of_random_choice[0].tolist() != curve_of_random_choice[1].tolist()


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({f"folder/{ENTRY_FILE}": ""}, r"holds a folder \(folder/submission_model"),
        ({"model.py": ""}, "holds no submission_model_task_4.py, expected"),
        ({ENTRY_FILE: "x = 1"}, "has no class Submission"),
        ({ENTRY_FILE: "import model"}, "starting Sub.*: raised ModuleNotFoundError: .*'model'"),
    ],
)
def test_a_faulty_zip_is_refused(setting: Setting, members: dict[str, str], fault: str) -> None:
    path = toy_bundle.write_zip(setting.reference.parent / "entry.zip", members)
    with pytest.raises(InputError, match=fault):
        play_all(replace(setting, submission=path), STUDENTS)
