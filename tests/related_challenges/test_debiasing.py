"""Debiasing: metrics by hand, splits, and models that do not see the answers they predict."""

import dataclasses
import shutil
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from common import writing

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, succeeds
from question_files import Kits, evaluation, last_record, page_in, scores_in
from sample_blocks import needs_blocks

boosting = import_module("sample_model_gradient_boosting")
candidates = import_module("candidates")
clicks = import_module("clicks")
recommend = import_module("recommend")

FOLDER = "related_challenges/debiasing"
FIFTY = list(range(1, 51))


def submission_row(user: int, items: list[int] = FIFTY) -> str:
    """Return a line of a submission, which recommends these items to this user."""
    return ",".join(map(str, [user, *items])) + "\n"


# The users and items of `make_phase`. Twelve users have clicks. The test users are two of them and
# one more user, who has no click. In arrays, users are numbered from 0, so that the user without a
# click has the number 12. In files, this user has the id 77; the id of every other user is the
# user's number.
N_ACTIVE_USERS = 12
N_ITEMS = 60
USER_WITHOUT_CLICK = N_ACTIVE_USERS
TEST_USERS = [3, 5, USER_WITHOUT_CLICK]
TEST_USER_IDS = [3, 5, 77]


def make_phase(seed: int, n_clicks: int) -> Any:
    """Return a phase of random clicks, in which no user clicks the same item twice.

    The clicks have times from 0 to 1.
    """
    rng = np.random.default_rng(seed)
    # A number stands for a pair of a user and an item. Draw different numbers.
    n_pairs = N_ACTIVE_USERS * N_ITEMS
    drawn_pairs = np.sort(rng.permutation(n_pairs)[:n_clicks])
    user = drawn_pairs // N_ITEMS
    item = drawn_pairs % N_ITEMS
    time = rng.random(n_clicks)
    # In a phase, clicks are sorted by user, and the clicks of a user by time.
    by_user_and_time = np.lexsort((time, user))
    return recommend.Phase(
        user=user[by_user_and_time],
        item=item[by_user_and_time],
        time=time[by_user_and_time],
        # In the files, the items have other ids than in a phase: 100, 101 and so on.
        item_ids=np.arange(N_ITEMS) + 100,
        test_user_ids=np.array(TEST_USER_IDS),
        test_user=np.array(TEST_USERS),
        # The times of the three clicks to predict, one of each test user.
        query_time=np.array([0.9, 0.4, 1.2]),
        # The users with clicks, and one more: USER_WITHOUT_CLICK.
        n_users=N_ACTIVE_USERS + 1,
    )


# A row holds the phase, the user, the item to predict, and the degree of the item. An item is rare
# if its degree is at most the median of the phase's degrees (the larger of two middle values).
# Therefore only item 3 of user 22 is not rare.
ANSWERS_BEFORE_PHASE_9 = """0,0,1,4
0,11,99,4
0,22,3,9
7,7,1,20
8,8,3,4
"""
ANSWERS = f"""{ANSWERS_BEFORE_PHASE_9}9,9,99,4
9,20,99,9
"""


@pytest.fixture
def evaluated(write: Write) -> Path:
    """Return a folder with `ANSWERS` and a submission that recommends items 1 to 50 to every user.

    The submission also has a row for user 5, who is no test user of any phase.
    """
    write("submission.csv", "".join(map(submission_row, (5, 0, 9, 22, 8, 20, 11, 7))))
    return write("debias_track_answer.csv", ANSWERS).parent


# The metrics of `evaluated`, worked out by hand.
#
# Item 1 has the first place in all recommendations and gains 1. Item 3 has the third place and
# gains 1 / log2(3 + 1) = 1/2. Item 99 is not recommended and gains 0. In phase 0, users 0, 11 and
# 22 gain 1, 0 and 1/2, so that NDCG is 1/2 and the hit rate 2/3. Over the users of rare items, 0
# and 11, both are 1/2. In phase 7, user 7 gains 1. In phase 8, user 8 gains 1/2. In phase 9, users
# 9 and 20 gain 0.
#
# The columns are NDCG and hit rate: NDCG full, NDCG half, hit rate full, hit rate half.
METRICS_BY_PHASE = [
    ["phase 0", "0.5000", "0.5000", "0.6667", "0.5000"],
    ["phase 7", "1.0000", "1.0000", "1.0000", "1.0000"],
    ["phase 8", "0.5000", "0.5000", "1.0000", "1.0000"],
    ["phase 9", "0.0000", "0.0000", "0.0000", "0.0000"],
    ["mean", "0.5000", "0.5000", "0.6667", "0.6250"],
    ["sum", "2.0000", "2.0000", "2.6667", "2.5000"],
]


def test_the_score_is_the_sum_of_ndcg_over_the_phases(evaluated: Path) -> None:
    """The score is the sum of the NDCG of the phases 0, 7, 8 and 9.

    Other scores sum up other metrics. The metrics NDCG and hit rate are means over all test users
    of a phase ("full"), or over the test users whose item is rare ("half"). The comment above
    METRICS_BY_PHASE works them out by hand.
    """
    printed = succeeds(evaluation("debiasing", evaluated))
    assert "score 2.0000 (NDCG@50 full of 7 users, a sum over 4 phases)" in printed
    # The four terms are the metrics of the phases 0, 7, 8 and 9. In these phases, NDCG full equals
    # NDCG half, and "score" is NDCG full.
    sum_of_ndcg = 1 / 2 + 1 + 1 / 2 + 0
    # The scores in the order in which the evaluation writes them.
    expected = {
        "score": sum_of_ndcg,
        "ndcg_50_full": sum_of_ndcg,
        "ndcg_50_half": sum_of_ndcg,
        "hitrate_50_full": 2 / 3 + 1 + 1 + 0,
        "hitrate_50_half": 1 / 2 + 1 + 1 + 0,
    }
    scores = scores_in(evaluated)
    assert scores == pytest.approx(expected)
    assert list(scores) == list(expected)


def test_the_metrics_by_phase_are_printed_shown_and_recorded(evaluated: Path) -> None:
    printed = succeeds(evaluation("debiasing", evaluated))
    words = " ".join(printed.split())
    for row in METRICS_BY_PHASE:
        assert " ".join(row) in words
    page = page_in(evaluated)
    assert page.table("Metrics by phase").rows == METRICS_BY_PHASE
    assert page.tables[0].row("Users of rare items (half)")[1] == "6"
    assert last_record(evaluated)["parts"]["hit rate@50 full, phase 0"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("flags", "phases", "rules", "sums"),
    [
        # In the final stage, only the phases from 7 on count. To each sum, the organisers then
        # added 7, as if each of the phases 0 to 6 had the score 1. The flags --final_stage and
        # --official_sum make the evaluation do so, too.
        ("--final_stage", "3 phases, plus 7", "final stage", [8.5, 8.5, 8.5, 9, 9]),
        ("--phase 9", "3 phases", "phase 9", [1.5, 1.5, 1.5, 2, 2]),
        ("--phase 7 --official_sum", "1 phase, plus 7", "phase 7, plus 7", [8, 8, 8, 8, 8]),
        ("--phase 0", "1 phase", "phase 0", [0.5, 0.5, 0.5, 2 / 3, 0.5]),
    ],
)
def test_flags_choose_the_phases_of_the_sum(
    evaluated: Path, flags: str, phases: str, rules: str, sums: list[float]
) -> None:
    printed = succeeds(evaluation("debiasing", evaluated, *flags.split()))
    assert f"a sum over {phases})" in printed
    assert list(scores_in(evaluated).values()) == pytest.approx(sums)
    assert last_record(evaluated)["rules"] == rules


def test_the_final_stage_needs_the_answers_of_its_phases(write: Write, evaluated: Path) -> None:
    write("debias_track_answer.csv", ANSWERS_BEFORE_PHASE_9)
    line = fails(evaluation("debiasing", evaluated, "--final_stage"))
    assert "holds the phases 0, 7, 8; phase 9 needs 7, 8, 9" in line


def test_the_official_sum_is_refused_for_a_phase_before_the_final_stage(evaluated: Path) -> None:
    line = fails(evaluation("debiasing", evaluated, "--phase", "6", "--official_sum"))
    assert "--official_sum needs --phase 7, 8 or 9" in line


def test_users_of_later_phases_are_not_needed_for_an_early_phase(write: Write) -> None:
    """With the flag --phase 6, a submission needs rows only for test users of the phases 0 to 6.

    Each of these seven phases has one test user, for whom the right item is recommended first: the
    NDCG of a phase is 1, and the sum is 7.
    """
    lines_of_answers = ""
    for phase in range(10):
        # Each phase has one test user, whose id is the number of the phase.
        test_user = phase
        # The user, the item and the time of a training click. The scripts need the file, but it
        # does not matter which click it holds.
        write(f"underexpose_train_click-{phase}.csv", "11,1,0.5\n")
        # The test user, and the time of the click to predict.
        write(f"underexpose_test_qtime-{phase}.csv", f"{test_user},0.5\n")
        # The phase, the user, the item to predict, and the number of clicks on the item, which may
        # be any number here.
        lines_of_answers += f"{phase},{test_user},1,4\n"
    folder = write("debias_track_answer.csv", lines_of_answers).parent
    # The submission recommends the items 1 to 50, in this order, to each of the users 0 to 6.
    test_users_of_phases_0_to_6 = range(7)
    rows = [submission_row(user) for user in test_users_of_phases_0_to_6]
    path = write("submission.csv", "".join(rows))

    evaluate = evaluation("debiasing", folder)
    assert "3 of 10 test users are missing" in fails(evaluate)
    assert "score 7.0000" in succeeds([*evaluate, "--phase", "6"])

    check = [f"{FOLDER}/check_submission.py", path, "--input_dir", folder]
    assert "3 of 10 test users are missing" in fails(check)
    assert "phases 0, 1, 2, 3, 4, 5, 6 in " in succeeds([*check, "--phase", "6"])


# Two times that differ only in the last digit.
EARLY = "0.9839525152735815"
LATE = "0.9839525152735816"


@dataclass(frozen=True)
class Split:
    """A local split of the clicks of two phases."""

    # The folder of the original clicks, which are split.
    source: Path
    # The folder into which the split is written.
    folder: Path


@pytest.fixture
def split(write: Write, tmp_path: Path) -> Split:
    """Split the clicks of two phases: the latest click of each test user is masked.

    The test users are 0 and 11 in phase 0, and 12 in phase 1. In their latest clicks, user 0 clicks
    item 8, user 11 clicks item 9, and user 12 clicks item 7. The two latest clicks of user 11, at
    the times EARLY and LATE, are only 1e-16 apart, so that a rounded time would hide their order.
    """
    # A line holds a user, an item and a time. The lines of a file are not in the order of times.
    text_by_file = {
        "train_click-0": "1,7,0.1\n2,7,0.2\n2,8,0.3\n",
        "test_click-0": f"11,9,{LATE}\n0,7,0.3\n11,7,{EARLY}\n0,8,0.4\n0,9,0.1\n",
        "train_click-1": "2,9,0.5\n",
        "test_click-1": "12,7,0.6\n12,8,0.5\n",
    }
    for name, text in text_by_file.items():
        write(f"train_data/underexpose_{name}.csv", text)
    source = tmp_path / "train_data"
    folder = tmp_path / "test_input"
    succeeds([f"{FOLDER}/local_data_split.py", "--input_dir", source, "--output_dir", folder])
    return Split(source, folder)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("click", f"0,7,0.3\n11,7,{EARLY}\n0,9,0.1\n", id="known clicks"),
        pytest.param("qtime", f"0,0.4\n11,{LATE}\n", id="times of masked clicks"),
        pytest.param("qtime_with_answer", f"0,8,0.4\n11,9,{LATE}\n", id="masked clicks"),
    ],
)
def test_the_split_masks_the_latest_click_of_each_test_user(
    split: Split, name: str, expected: str
) -> None:
    """The split masks the latest click of each test user; other clicks stay known.

    Only the last digit of a time tells which click of user 11 is the latest.
    """
    assert (split.folder / f"underexpose_test_{name}-0.csv").read_text() == expected


def test_the_split_counts_the_degrees_of_the_masked_items(split: Split) -> None:
    """The degree of an item is the number of clicks on it that are not masked.

    Clicks in the phase of the masked click and in all earlier phases count. Items 8 and 9 have one
    click each in phase 0. Item 7 has four clicks in phase 0 and none in phase 1.
    """
    # A row holds the phase, the user, the item and its degree.
    rows = (split.folder / "debias_track_answer.csv").read_text()
    assert rows == "0,0,8,1\n0,11,9,1\n1,12,7,4\n"


@pytest.fixture
def files_of_phases(split: Split, tmp_path: Path) -> Path:
    """Return a folder with all files of the phases, laid out like the organisers' folder.

    It holds the files of a split and the training clicks. It does not hold debias_track_answer.csv
    or the record of the split.
    """
    folder = tmp_path / "all"
    shutil.copytree(split.folder, folder)
    (folder / "debias_track_answer.csv").unlink()
    (folder / "split_debiasing.json").unlink()
    for path in split.source.glob("underexpose_train_click-*"):
        shutil.copy(path, folder)
    return folder


def test_answers_are_also_read_from_the_files_of_the_phases(
    split: Split, files_of_phases: Path, write: Write, tmp_path: Path
) -> None:
    """Without debias_track_answer.csv, the answers are read from a file for each phase.

    The names of these files contain `qtime_with_answer`. They are read from the folder of a split,
    and from a folder laid out like the organisers' folder.
    """
    answer_path = split.folder / "debias_track_answer.csv"
    answers_in_one_file = clicks.read_answers(answer_path)
    answer_path.unlink()
    test_users = (0, 11, 12)
    write("submission.csv", "".join(map(submission_row, test_users)))
    for folder in (split.folder, files_of_phases):
        # `read_answers` gets the path of debias_track_answer.csv, which is missing.
        answers = clicks.read_answers(folder / answer_path.name)
        pd.testing.assert_frame_equal(answers, answers_in_one_file, check_dtype=False)
        printed = succeeds(evaluation("debiasing", tmp_path, "--input_dir", folder))
        # In the printed line, the score and "NDCG@50" precede this text.
        assert "full of 3 users, a sum over 2 phases)" in printed


def test_a_user_in_the_file_of_another_phase_is_refused(
    files_of_phases: Path, write: Write, tmp_path: Path
) -> None:
    write("submission.csv", "".join(map(submission_row, (0, 11, 12))))
    # User 13 is a test user of phase 2, not of phase 1.
    wrong = files_of_phases / "underexpose_test_qtime_with_answer-1.csv"
    wrong.write_text("12,7,0.6\n13,7,0.6\n")
    line = fails(evaluation("debiasing", tmp_path, "--input_dir", files_of_phases))
    assert "column 'user_id': row 2 is 13, who is no test user of phase 1, expected" in line


# ---- Reading phase 2 -----------------------------------------------------------------------------
#
# Phase 2 is read from the files of phases 2, 1 and 0, whose times overlap.
#
# - From the files of phase 2, all clicks are read. Known clicks have times from 0.41 to 0.61. The
#   oldest click is a click to predict, at 0.40.
# - From the files of phase 1, clicks before 0.40 are read. The oldest of them is at 0.37.
# - From the files of phase 0, clicks before 0.37 are read, but none before 0.21. The known clicks
#   of phase 2 span 0.20, so that clicks before 0.41 - 0.20 are too old.

FIRST_TIME = 0.41
TIME_SPAN = 0.20


class Click(NamedTuple):
    """A click in the files of several phases."""

    # The name of the file, without "underexpose_" and ".csv". It ends with the number of a phase.
    file: str
    user: int
    item: int
    time: float


CLICKS_READ = [
    Click("train_click-0", user=5, item=8, time=0.35),
    Click("train_click-0", user=1, item=8, time=0.34),
    Click("test_click-0", user=0, item=9, time=0.22),
    Click("train_click-1", user=2, item=8, time=0.39),
    Click("train_click-1", user=5, item=7, time=0.395),
    Click("test_click-1", user=1, item=9, time=0.37),
    Click("train_click-2", user=5, item=7, time=0.61),
    Click("train_click-2", user=5, item=8, time=0.5),
    Click("train_click-2", user=6, item=9, time=0.42),
    Click("test_click-2", user=2, item=9, time=0.41),
]
CLICKS_NOT_READ = [
    # These clicks are not read, because they come before 0.21, too long before phase 2.
    Click("train_click-0", user=5, item=7, time=0.15),
    Click("train_click-0", user=6, item=7, time=0.19),
    # This click is not read: in a file of phase 0, only clicks before 0.37 are read.
    Click("test_click-0", user=0, item=7, time=0.38),
    # These clicks are not read: in a file of phase 1, only clicks before 0.40 are read.
    Click("train_click-1", user=2, item=9, time=0.40),
    Click("train_click-1", user=2, item=7, time=0.45),
    Click("train_click-1", user=5, item=9, time=0.405),
    Click("train_click-1", user=7, item=8, time=0.5),
    # Item 6 occurs in no file of phase 2. So this older click on it is not read.
    Click("train_click-1", user=6, item=6, time=0.39),
    # This click is not read, because it is in a file of a later phase.
    Click("train_click-3", user=2, item=7, time=0.45),
]
# Two test users of phase 2, with the times of the clicks to predict.
QUERY_TIMES_OF_PHASE_2 = {1: 0.40, 2: 0.45}
# The users of CLICKS_READ. In phase 2, they are numbered from 0 in this order.
USERS_READ = [0, 1, 2, 5, 6]


@pytest.fixture
def phase_2(write: Write) -> Any:
    """Write files with the clicks of several phases, and read phase 2 from them."""
    queries = [f"{user},{time}\n" for user, time in QUERY_TIMES_OF_PHASE_2.items()]
    lines_by_file = {"test_qtime-2": "".join(queries)}
    for click in CLICKS_READ + CLICKS_NOT_READ:
        line = f"{click.user},{click.item},{click.time}\n"
        lines_by_file[click.file] = lines_by_file.get(click.file, "") + line
    for name, lines in lines_by_file.items():
        folder = write(f"underexpose_{name}.csv", lines).parent
    return recommend.read_phase(folder, folder, 2)


def scale_time(time: float) -> float:
    """Return a time on the scale of phase 2: its known clicks have the times 0 to 1."""
    return (time - FIRST_TIME) / TIME_SPAN


def test_clicks_of_earlier_phases_are_read_if_they_come_before_the_phase(phase_2: Any) -> None:
    """The clicks of phase 2 are those of CLICKS_READ, sorted by user and time.

    Some of them come from the files of the phases 0 and 1.
    """
    expected = []
    for click in CLICKS_READ:
        expected.append((USERS_READ.index(click.user), scale_time(click.time), click.item))
    read = np.transpose([phase_2.user, phase_2.time, phase_2.item_ids[phase_2.item]])
    np.testing.assert_allclose(read, sorted(expected), atol=1e-12)


def test_users_and_items_of_the_clicks_that_are_read_are_numbered(phase_2: Any) -> None:
    assert phase_2.item_ids.tolist() == [7, 8, 9]
    assert phase_2.n_users == len(USERS_READ)
    assert phase_2.test_user.tolist() == [USERS_READ.index(user) for user in QUERY_TIMES_OF_PHASE_2]


def test_the_times_of_clicks_to_predict_are_scaled_like_those_of_known_clicks(phase_2: Any) -> None:
    expected = [scale_time(time) for time in QUERY_TIMES_OF_PHASE_2.values()]
    np.testing.assert_allclose(phase_2.query_time, expected, atol=1e-12)


@pytest.mark.parametrize("part", [0, 1])
def test_the_features_of_a_candidate_do_not_depend_on_the_masked_click(part: int) -> None:
    """The item of a masked click must not change any feature of a candidate.

    The model learns to predict clicks. For this, it masks (hides) the latest click of some users.
    The items that it may predict for a user are the candidates. The features of a candidate must be
    computed from the remaining clicks alone.

    The training users are divided into N_PARTS parts. The model masks the clicks of one part.
    """
    phase = make_phase(seed=3, n_clicks=200)
    training_users = np.setdiff1d(np.arange(N_ACTIVE_USERS), TEST_USERS)
    users_of_part = training_users[part :: boosting.N_PARTS]
    # The clicks of a user are sorted by time, so the latest click of a user is the last one.
    clicks_of_users = [np.flatnonzero(phase.user == user) for user in users_of_part]
    latest_clicks = np.array([clicks_of_user[-1] for clicks_of_user in clicks_of_users])
    # `mask_latest` must leave out users without a click in the phase, which begins at the time 0.
    # There are two such users here: all clicks of user 3 are moved before the phase, and the user
    # USER_WITHOUT_CLICK has no click at all.
    phase.time[phase.user == 3] -= 1
    users_to_mask = np.append(users_of_part, [3, USER_WITHOUT_CLICK])

    def features_with_shifted_items(shift: int) -> Any:
        """Return the features after the item of each latest click has been changed by `shift`."""
        item = phase.item.copy()
        item[latest_clicks] = (item[latest_clicks] + shift) % N_ITEMS
        shifted_phase = dataclasses.replace(phase, item=item)
        masked, answer = candidates.mask_latest(shifted_phase, users_to_mask)
        # `mask_latest` returns the items of the masked clicks as answers, and keeps only the other
        # clicks.
        np.testing.assert_array_equal(answer, item[latest_clicks])
        np.testing.assert_array_equal(masked.item, np.delete(item, latest_clicks))
        np.testing.assert_array_equal(masked.query_time, phase.time[latest_clicks])
        pairs, neighbours, vectors = candidates.find_candidates(masked)
        return boosting.describe(masked, neighbours, vectors, pairs)

    features = features_with_shifted_items(shift=0)
    assert len(features)
    np.testing.assert_array_equal(features, features_with_shifted_items(shift=17))


def test_an_item_counts_as_having_at_least_four_clicks_in_the_phase() -> None:
    """An item counts as having at least four clicks in the phase.

    To these, its clicks before the phase are added.
    """
    phase = make_phase(seed=1, n_clicks=240)
    # Stretch the times to the range from -1 to 1. The phase begins at 0, so about half of the
    # clicks come before it.
    phase = dataclasses.replace(phase, time=2 * phase.time - 1)
    n_in_phase = np.bincount(phase.item[phase.time >= 0], minlength=N_ITEMS)
    n_before = np.bincount(phase.item[phase.time < 0], minlength=N_ITEMS)
    expected = np.maximum(n_in_phase, 4) + n_before
    np.testing.assert_array_equal(candidates.count_clicks(phase), expected)


@needs_blocks(f"{FOLDER}/sample_model_popularity.py", f"{FOLDER}/sample_model_gradient_boosting.py")
@pytest.mark.parametrize(
    ("model", "n_users", "message"),
    [
        ("popularity", 1, "active test user has not clicked, expected at least 50"),
        ("gradient_boosting", 40, "phase 0: no training user's latest click is on a candidate"),
    ],
)
def test_models_need_items_and_clicks(model: str, n_users: int, message: str, write: Write) -> None:
    """A model with too few items or clicks ends with a message that says so.

    The model "popularity" must recommend 50 items to a user. Here, the only training user has
    clicked only two items. The model "gradient_boosting" learns from pairs of users who have
    clicked the same item. Here, no two of the 40 training users have.
    """
    # Each user has clicked two items that no other user has clicked.
    lines = []
    for number in range(n_users):
        # A user whose id is a multiple of 11 is a test user of phase 0. The ids of these training
        # users are no such multiples.
        user = 11 * number + 1
        lines += [f"{user},{2 * number},0.1\n", f"{user},{2 * number + 1},0.2\n"]
    write("underexpose_train_click-0.csv", "".join(lines))
    write("underexpose_test_click-0.csv", "0,100,0.1\n0,101,0.2\n")
    folder = write("underexpose_test_qtime-0.csv", "0,0.3\n").parent
    script = f"{FOLDER}/sample_model_{model}.py"
    assert message in fails([script, "--input_dir", folder, "--output_dir", folder])


def ndcg_by_user(submission: Path, answers: pd.DataFrame) -> np.ndarray:
    """Return each user's NDCG@50: 1 / log2(rank + 1), or 0 if the right item is not recommended.

    `rank` is the place of the right item among the 50 recommended items.
    """
    recommended = pd.read_csv(submission, header=None, index_col=0)
    # Whether each of the 50 recommended items is the answer, shape (users, 50).
    is_answer = recommended.loc[answers.user_id].to_numpy() == answers[["item_id"]].to_numpy()
    rank = np.arange(1, 51)
    ndcg: np.ndarray = is_answer @ (1 / np.log2(rank + 1))
    return ndcg


@needs_blocks(
    f"{FOLDER}/sample_model_item_cf_time.py", f"{FOLDER}/sample_model_gradient_boosting.py"
)
@pytest.mark.slow
def test_boosting_beats_the_model_that_gives_it_candidates(
    challenge_kit: Kits, tmp_path: Path
) -> None:
    """Gradient boosting ranks candidates better than the model item_cf_time, which finds them.

    Both models recommend items to the test users of the phases 0 to 5. Gradient boosting must have
    the larger mean NDCG@50, both over all these users and over the users whose right item is rare
    (has few clicks).
    """
    kit = challenge_kit("debiasing")
    answers = clicks.read_answers(kit / FOLDER / "data/test_input/debias_track_answer.csv")
    answers = answers[answers.phase_id < 6]
    for phase in range(6):
        name = clicks.TRAIN_CLICKS.format(phase)
        shutil.copyfile(kit / FOLDER / "data/train_data" / name, tmp_path / name)
    output_flags = ["--output_dir", tmp_path]
    evaluate = [f"{FOLDER}/local_evaluation.py", "--submission_dir", tmp_path, *output_flags]
    evaluate += ["--phase", 5]
    ndcg = {}
    for model in ("item_cf_time", "gradient_boosting"):
        script = f"{FOLDER}/sample_model_{model}.py"
        succeeds([script, "--local", "--input_dir", tmp_path, *output_flags], kit=kit)
        succeeds(evaluate, kit=kit)
        ndcg[model] = ndcg_by_user(tmp_path / "submission.csv", answers)
        # With --phase 5, the score is the sum of the mean NDCG of the phases 0 to 5.
        mean_by_phase = pd.Series(ndcg[model]).groupby(answers.phase_id.to_numpy()).mean()
        assert scores_in(tmp_path)["score"] == pytest.approx(mean_by_phase.sum())
    # Both models are scored on the same users, so the difference of their NDCG is taken for each
    # user. Over all 259 users, the mean difference is 0.076 with a standard error of 0.015, which
    # makes five standard errors. Over the 138 users of rare items, the mean difference is 0.129
    # with a standard error of 0.021, which makes six. Rounding on another machine changes the means
    # by up to 0.004, so they always exceed four standard errors.
    gain_of_all_users = ndcg["gradient_boosting"] - ndcg["item_cf_time"]
    gain_of_users_of_rare_items = gain_of_all_users[clicks.is_rare(answers)]
    for gain in (gain_of_all_users, gain_of_users_of_rare_items):
        standard_error = gain.std(ddof=1) / np.sqrt(len(gain))
        assert gain.mean() > 4 * standard_error


@needs_blocks(f"{FOLDER}/sample_model_item_cf_time.py")
def test_the_scores_on_real_clicks_are_the_measured_ones(real_data: Path, tmp_path: Path) -> None:
    """The model item_cf_time still gets the scores that it had on phase 1 of the real clicks.

    The score "full" is the mean NDCG over all test users, the score "half" the mean over the test
    users whose right item is rare. The model fits nothing, so its scores hardly depend on the
    machine.
    """
    source = real_data / "related/debiasing"
    for name in ("underexpose_train_click-1.csv", "underexpose_test_click-1.csv"):
        shutil.copyfile(source / name, tmp_path / name)
    # The folder of the local split, in which the latest click of each test user is masked (hidden).
    masked = tmp_path / "masked"
    input_flags = ["--input_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *input_flags, "--output_dir", masked])
    masked_flags = ["--test_dir", masked, "--output_dir", masked]
    succeeds([f"{FOLDER}/sample_model_item_cf_time.py", *input_flags, *masked_flags])
    # The folder has only the clicks of phase 1, so each score is the score of this phase.
    assert "a sum over 1 phase)" in succeeds(evaluation("debiasing", masked))
    scores = scores_in(masked)
    # If rounding makes two nearly equal items change places, the NDCG of one user changes by at
    # most 1 − 1 / log2(3) = 0.37, the difference between the first and the second place. The mean
    # over some 1,700 users then changes by 0.0002. The tolerance is five times this change.
    assert scores["ndcg_50_full"] == pytest.approx(0.0580, abs=1e-3)
    assert scores["ndcg_50_half"] == pytest.approx(0.0423, abs=1e-3)


def test_successive_phases_of_the_sample_share_two_thirds_of_their_clicks(
    challenge_kit: Kits,
) -> None:
    """Two thirds of the clicks of a phase are also clicks of the next phase.

    The times of the two phases overlap by two thirds. Clicks are not spread evenly over the time,
    so the share of common clicks differs a little: with the seeds 0 to 3, it is 0.677 to 0.681.
    """
    folder = challenge_kit("debiasing") / FOLDER / "data/train_data"
    clicks_by_phase = []
    for phase in range(10):
        train_path = folder / clicks.TRAIN_CLICKS.format(phase)
        test_path = folder / clicks.TEST_CLICKS.format(phase)
        table = clicks.read_clicks(train_path, test_path)
        clicks_by_phase.append(set(table.itertuples(index=False)))
    n_shared = 0
    n_clicks = 0
    for one_phase, next_phase in pairwise(clicks_by_phase):
        n_shared += len(one_phase & next_phase)
        n_clicks += len(one_phase)
    assert n_shared / n_clicks == pytest.approx(2 / 3, abs=0.03)


@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_model_that_reads_the_answers_gets_no_score(
    is_one_file: bool, challenge_kit: Kits, tmp_path: Path
) -> None:
    """A model that has read the clicks to predict gets no score.

    The local split takes the clicks to predict, the answers, out of the original clicks. With
    --local, a model reads the remaining clicks. This test runs a model without --local, so that it
    reads all original clicks. The evaluation must notice this, whether it reads the answers from
    the one file debias_track_answer.csv (`is_one_file`) or from a file for each phase.
    """
    kit = challenge_kit("debiasing")
    model = [f"{FOLDER}/sample_model_popularity.py", "--output_file", "test.csv"]
    succeeds([*model, "--output_dir", tmp_path], kit=kit)
    data = shutil.copytree(kit / FOLDER / "data", tmp_path / "data")
    answers_folder = data / "test_input"
    if not is_one_file:
        # Without this file, the evaluation must read the answers from a file for each phase.
        (answers_folder / "debias_track_answer.csv").unlink()

    flags = ["--submit_data", "test.csv", "--submission_dir", tmp_path, "--output_dir", tmp_path]
    evaluate = [f"{FOLDER}/local_evaluation.py", "--input_dir", answers_folder, *flags]
    line = fails(evaluate, kit=kit)

    assert "sample_model_popularity.py --output_file test.csv" in line
    assert "test.csv: was made from underexpose_test_click-0.csv, which holds the answers" in line
    # The message ends with the request for a submission that was made with --local.
    assert line.endswith("for the local split one made with --local")
    assert not (tmp_path / "scores_debiasing.txt").exists()


def test_a_submission_made_from_the_files_of_answers_gets_no_score(
    files_of_phases: Path, tmp_path: Path
) -> None:
    """A submission that was made from a file of answers gets no score.

    The organisers' files have no record of their origin, but the kit recognises the answers.
    """
    path = tmp_path / "submission.csv"
    answers = files_of_phases / "underexpose_test_qtime_with_answer-1.csv"
    rows = "".join(map(submission_row, (0, 11, 12)))
    writing.write_files({path: rows}, record=path.with_suffix(".json"), made_from=[answers])
    line = fails(evaluation("debiasing", tmp_path, "--input_dir", files_of_phases))
    assert f"was made from {answers.name}, which holds the answers that it is scored on" in line


def test_a_split_of_other_clicks_is_refused(split: Split, write: Write, tmp_path: Path) -> None:
    write("submission.csv", "".join(map(submission_row, (0, 11, 12))))
    (split.source / "underexpose_test_click-1.csv").write_text("12,8,0.6\n12,7,0.5\n")
    line = fails(evaluation("debiasing", tmp_path, "--input_dir", split.folder))
    assert "debias_track_answer.csv: was made from other data than now lie in" in line


def test_the_check_ignores_other_users(challenge_kit: Kits, write: Write) -> None:
    kit = challenge_kit("debiasing")
    queries = sorted((kit / FOLDER / "data/train_data").glob("underexpose_test_qtime-*.csv"))
    test_users = np.concatenate([clicks.read_queries(path)["user_id"] for path in queries])
    path = write("more.csv", "".join(map(submission_row, [*test_users, 9999])))

    checked = succeeds([f"{FOLDER}/check_submission.py", path], kit=kit)

    # The simulated clicks have 398 test users, and one row belongs to another user.
    assert "399 rows: every test user of the phases 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 in " in checked
    assert checked.endswith("\n1 rows of other users are ignored\n")


def test_equal_and_nearly_equal_values_come_in_the_order_of_their_columns() -> None:
    """`largest_columns` returns the columns of the largest values in each row, the largest first.

    Differences below single precision do not count, since processors round sums differently.
    """
    values = np.array(
        [
            # In this row, the values in the columns 1 and 3 are equal, and so are those in the
            # columns 0 and 2.
            [0.0, 0.5, 0.0, 0.5, 0.7],
            # The first two values of this row are equal in single precision. The last three are
            # equal.
            [0.5, 0.5 + 1e-12, 0.1, 0.1, 0.1],
            # The last two values of this row are equal. Minus infinity is smaller than all other
            # values.
            [-np.inf, 0.2, 0.3, 0.0, 0.0],
        ]
    )
    assert recommend.largest_columns(values, 3).tolist() == [[4, 1, 3], [0, 1, 2], [2, 1, 3]]
    all_columns = recommend.largest_columns(values, values.shape[1])
    assert all_columns[0].tolist() == [4, 1, 3, 0, 2]
