"""Debiasing: metrics by hand, splits, models that see no answer they predict."""

import dataclasses
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

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


def row(user: int, items: list[int]) -> str:
    """Return a line of a submission."""
    return ",".join(map(str, [user, *items])) + "\n"


def make_phase(seed: int, n_clicks: int) -> Any:
    """Return a phase of random clicks with three test users, the last of whom has no click."""
    rng, n_users, n_items = np.random.default_rng(seed), 12, 60
    pairs = rng.permutation(n_users * n_items)[:n_clicks]
    user, item = np.sort(pairs) // n_items, np.sort(pairs) % n_items
    time = rng.random(n_clicks)
    order = np.lexsort((time, user))
    return recommend.Phase(
        user=user[order],
        item=item[order],
        time=time[order],
        item_ids=np.arange(n_items) + 100,
        test_user_ids=np.array([3, 5, 77]),
        test_user=np.array([3, 5, n_users]),
        query_time=np.array([0.9, 0.4, 1.2]),
        n_users=n_users + 1,
    )


# A row holds the phase, the user, the item to predict, and the degree of the item. An item is rare
# if its degree is at most the median of its phase, or the larger middle value. Therefore only item
# 3 of user 22 is not rare.
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

    The submission also has a user 5, who belongs to no phase.
    """
    write("submission.csv", "".join(row(user, FIFTY) for user in (5, 0, 9, 22, 8, 20, 11, 7)))
    return write("debias_track_answer.csv", ANSWERS).parent


def test_an_evaluation_by_hand(evaluated: Path) -> None:
    """Metrics by phase and their sums are printed, written as text, shown, and recorded."""
    printed = succeeds(evaluation("debiasing", evaluated))
    assert "score 2.0000 (NDCG@50 full of 7 users, a sum over 4 phases)" in printed
    scores = scores_in(evaluated)
    names = ["score", "ndcg_50_full", "ndcg_50_half", "hitrate_50_full", "hitrate_50_half"]
    assert [*scores] == names
    assert [*scores.values()] == pytest.approx([2, 2, 2, 2 / 3 + 1 + 1, 1 / 2 + 1 + 1])
    page = page_in(evaluated)
    table = page.table("Metrics by phase")
    assert table.rows == [
        ["phase 0", "0.5000", "0.5000", "0.6667", "0.5000"],
        ["phase 7", "1.0000", "1.0000", "1.0000", "1.0000"],
        ["phase 8", "0.5000", "0.5000", "1.0000", "1.0000"],
        ["phase 9", "0.0000", "0.0000", "0.0000", "0.0000"],
        ["mean", "0.5000", "0.5000", "0.6667", "0.6250"],
        ["sum", "2.0000", "2.0000", "2.6667", "2.5000"],
    ]
    assert all(" ".join(cells) in " ".join(printed.split()) for cells in table.rows)
    assert page.tables[0].row("Users of rare items (half)")[1] == "6"
    assert last_record(evaluated)["parts"]["hit rate@50 full, phase 0"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("flags", "phases", "rules", "sums"),
    [
        # The official sum adds 7: a score of 1 for each of the phases 0 to 6, for everybody.
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
    assert "holds the phases 0, 7, 8; --phase 9 needs 7, 8, 9" in line


def test_the_official_sum_is_refused_for_a_phase_before_the_final_stage(evaluated: Path) -> None:
    line = fails(evaluation("debiasing", evaluated, "--phase", "6", "--official_sum"))
    assert "--official_sum needs --phase 7, 8 or 9" in line


def test_users_of_later_phases_are_not_needed_for_an_early_phase(write: Write) -> None:
    for phase in range(10):
        write(f"underexpose_train_click-{phase}.csv", "11,1,0.5\n")
        write(f"underexpose_test_qtime-{phase}.csv", f"{phase},0.5\n")
    answers = "".join(f"{phase},{phase},1,4\n" for phase in range(10))
    folder = write("debias_track_answer.csv", answers).parent
    path = write("submission.csv", "".join(row(user, FIFTY) for user in range(7)))
    check = [f"{FOLDER}/check_submission.py", path, "--input_dir", folder]
    for command, expected in (
        (evaluation("debiasing", folder), "score 7.0000"),
        (check, "phases 0, 1, 2, 3, 4, 5, 6 in "),
    ):
        assert "3 of 10 test users are missing" in fails(command)
        assert expected in succeeds([*command, "--phase", "6"])


# Two times that differ in the last digit.
EARLY = "0.9839525152735815"
LATE = "0.9839525152735816"


@pytest.fixture
def split_folders(write: Write, tmp_path: Path) -> tuple[Path, Path]:
    """Split the clicks of two phases; return the folder of the clicks and that of the split."""
    for name, text in {
        "train_click-0": "1,7,0.1\n2,7,0.2\n2,8,0.3\n",
        "test_click-0": f"11,9,{LATE}\n0,7,0.3\n11,7,{EARLY}\n0,8,0.4\n0,9,0.1\n",
        "train_click-1": "2,9,0.5\n",
        "test_click-1": "12,7,0.6\n12,8,0.5\n",
    }.items():
        source = write(f"train_data/underexpose_{name}.csv", text).parent
    split = tmp_path / "test_input"
    succeeds([f"{FOLDER}/local_data_split.py", "--input_dir", source, "--output_dir", split])
    return source, split


def test_split_masks_the_latest_click_and_counts_degrees(split_folders: tuple[Path, Path]) -> None:
    """Times keep all their digits."""
    _, split = split_folders
    for name, text in {
        "click": f"0,7,0.3\n11,7,{EARLY}\n0,9,0.1\n",
        "qtime": f"0,0.4\n11,{LATE}\n",
        "qtime_with_answer": f"0,8,0.4\n11,9,{LATE}\n",
    }.items():
        assert (split / f"underexpose_test_{name}-0.csv").read_text() == text
    # The degree counts the clicks that are not masked, in all phases up to the answer's. Items 8
    # and 9 have one such click each in phase 0. Item 7 has four in phase 0 and none in phase 1.
    assert (split / "debias_track_answer.csv").read_text() == "0,0,8,1\n0,11,9,1\n1,12,7,4\n"


def test_answers_are_also_read_from_the_files_of_the_phases(
    split_folders: tuple[Path, Path], write: Write, tmp_path: Path
) -> None:
    """If debias_track_answer.csv is missing, the files `qtime_with_answer` replace it.

    They are read from a split as well as from a folder laid out like the organisers'.
    """
    source, split = split_folders
    answers = split / "debias_track_answer.csv"
    known = clicks.read_answers(answers)
    answers.unlink()
    shutil.copytree(split, tmp_path / "all")
    shutil.copytree(source, tmp_path / "all", dirs_exist_ok=True)
    for path in split.glob("underexpose_test_click-*"):
        shutil.copy(path, tmp_path / "all")
    write("submission.csv", "".join(row(user, FIFTY) for user in (0, 11, 12)))
    for folder in (split, tmp_path / "all"):
        pd.testing.assert_frame_equal(clicks.read_answers(folder / answers.name), known, False)
        score = evaluation("debiasing", tmp_path, "--input_dir", folder)
        assert "full of 3 users, a sum over 2 phases)" in succeeds(score)
    write("all/underexpose_test_qtime_with_answer-1.csv", "12,7,0.6\n13,7,0.6\n")
    assert "column 'user_id': row 2 is 13, who is no test user of phase 1, expected" in fails(score)


def test_clicks_of_earlier_phases_are_read_if_they_come_before_the_phase(write: Write) -> None:
    """Clicks before a phase are read from its earlier phases, back to one length of the phase.

    The known clicks of phase 2 last from 0.41 to 0.61, so that clicks from 0.21 on are read. The
    first click of the phase, at 0.40, is to be predicted. Each earlier phase fills the time before
    the clicks that have been read: phase 1, which begins at 0.37, the time from 0.37 to 0.40, and
    phase 0 the time from 0.21 to 0.37. Only items with a known click in phase 2 count.
    """
    # A line holds a user, an item and a time. Lines after a `+` are not read, for the reason above.
    files = {
        # Before 0.21.
        "train_click-0": "5,8,0.35\n1,8,0.34\n" + "5,7,0.15\n6,7,0.19\n",
        # Not before 0.37.
        "test_click-0": "0,9,0.22\n" + "0,7,0.38\n",
        # Not before 0.40; or on item 6, which has no known click in phase 2.
        "train_click-1": "2,8,0.39\n5,7,0.395\n"
        + "2,9,0.40\n2,7,0.45\n5,9,0.405\n7,8,0.5\n"
        + "6,6,0.39\n",
        "test_click-1": "1,9,0.37\n",
        "train_click-2": "5,7,0.61\n5,8,0.5\n6,9,0.42\n",
        "test_click-2": "2,9,0.41\n",
        "test_qtime-2": "1,0.40\n2,0.45\n",
        # A later phase, which is not read.
        "train_click-3": "2,7,0.45\n",
    }
    for name, text in files.items():
        folder = write(f"underexpose_{name}.csv", text).parent
    phase = recommend.read_phase(folder, folder, 2)
    # Users, items and times of the clicks that are read.
    clicked = [
        (0, 9, 0.22), (1, 8, 0.34), (1, 9, 0.37), (2, 8, 0.39), (2, 9, 0.41), (5, 8, 0.35),
        (5, 7, 0.395), (5, 8, 0.5), (5, 7, 0.61), (6, 9, 0.42),
    ]  # fmt: skip
    user_ids = [0, 1, 2, 5, 6]
    assert phase.item_ids.tolist() == [7, 8, 9]
    assert phase.n_users == len(user_ids)
    assert phase.test_user.tolist() == [user_ids.index(1), user_ids.index(2)]
    # A time of 0 is the first known click of the phase, 1 is the last one.
    expected = [(user_ids.index(user), item, (time - 0.41) / 0.2) for user, item, time in clicked]
    read = np.transpose([phase.user, phase.item_ids[phase.item], phase.time])
    np.testing.assert_allclose(read, expected, atol=1e-12)
    np.testing.assert_allclose(phase.query_time, [-0.01 / 0.2, 0.04 / 0.2], atol=1e-12)


@pytest.mark.parametrize("part", [0, 1])
def test_the_features_of_a_candidate_do_not_depend_on_the_masked_click(part: int) -> None:
    phase = make_phase(3, n_clicks=200)
    users = np.setdiff1d(np.arange(12), [3, 5])[part :: boosting.N_PARTS]
    latest = np.array([np.flatnonzero(phase.user == user)[-1] for user in users])
    # All clicks of user 3 come before the phase, and user 12 has none.
    phase.time[phase.user == 3] -= 1
    # `mask_latest` leaves out these two, who have no click in the phase that could be masked.
    asked = np.append(users, [3, 12])

    def describe(shift: int) -> Any:
        """Return the features after the item of each masked click has become another item."""
        item = phase.item.copy()
        item[latest] = (item[latest] + shift) % 60
        masked, answer = candidates.mask_latest(dataclasses.replace(phase, item=item), asked)
        np.testing.assert_array_equal(answer, item[latest])
        np.testing.assert_array_equal(masked.item, np.delete(item, latest))
        np.testing.assert_array_equal(masked.query_time, phase.time[latest])
        pairs, neighbours, vectors = candidates.find_candidates(masked)
        return boosting.describe(masked, neighbours, vectors, pairs)

    features = describe(0)
    np.testing.assert_array_equal(features, describe(17))
    assert len(features)


def test_an_item_with_fewer_than_four_clicks_in_the_phase_counts_as_one_with_four() -> None:
    """The clicks of an item before the phase are added."""
    phase = make_phase(1, n_clicks=240)
    phase = dataclasses.replace(phase, time=2 * phase.time - 1)
    inside = np.bincount(phase.item[phase.time >= 0], minlength=60)
    before = np.bincount(phase.item[phase.time < 0], minlength=60)
    np.testing.assert_array_equal(candidates.count_clicks(phase), np.maximum(inside, 4) + before)


@needs_blocks(f"{FOLDER}/sample_model_popularity.py", f"{FOLDER}/sample_model_gradient_boosting.py")
def test_models_need_items_and_clicks(write: Write) -> None:
    for model, n_users, message in (
        ("popularity", 1, "active test user has not clicked, expected at least 50"),
        ("gradient_boosting", 40, "phase 0: no training user's latest click is on a candidate"),
    ):
        # Each user has clicked two items that no other user has clicked. The number of a training
        # user is no multiple of 11: those are the test users.
        lines = []
        for number in range(n_users):
            user = 11 * number + 1
            lines += [f"{user},{2 * number},0.1\n", f"{user},{2 * number + 1},0.2\n"]
        write("underexpose_train_click-0.csv", "".join(lines))
        write("underexpose_test_click-0.csv", "0,100,0.1\n0,101,0.2\n")
        folder = write("underexpose_test_qtime-0.csv", "0,0.3\n").parent
        script = f"{FOLDER}/sample_model_{model}.py"
        assert message in fails([script, "--input_dir", folder, "--output_dir", folder])


def gains_by_user(submission: Path, answers: pd.DataFrame) -> np.ndarray:
    """Return each user's NDCG@50: 1 / log2(rank + 1) of the item to be predicted, or 0."""
    recommended = pd.read_csv(submission, header=None, index_col=0)
    is_answer = recommended.loc[answers.user_id].to_numpy() == answers[["item_id"]].to_numpy()
    gains: np.ndarray = is_answer @ (1 / np.log2(np.arange(50) + 2))
    return gains


@needs_blocks(
    f"{FOLDER}/sample_model_item_cf_time.py", f"{FOLDER}/sample_model_gradient_boosting.py"
)
@pytest.mark.slow
def test_boosting_beats_the_model_that_gives_it_candidates(
    challenge_kit: Kits, tmp_path: Path
) -> None:
    """It does so for all users of the ten phases, and for those whose item is rare."""
    kit = challenge_kit("debiasing")
    answers = clicks.read_answers(kit / FOLDER / "data/test_input/debias_track_answer.csv")
    gains = {}
    for model in ("item_cf_time", "gradient_boosting"):
        output = ["--output_dir", tmp_path]
        succeeds([f"{FOLDER}/sample_model_{model}.py", "--local", *output], kit=kit)
        scored = [f"{FOLDER}/local_evaluation.py", "--submission_dir", tmp_path, *output]
        succeeds(scored, kit=kit)
        gains[model] = gains_by_user(tmp_path / "submission.csv", answers)
        by_phase = pd.Series(gains[model]).groupby(answers.phase_id.to_numpy()).mean()
        assert scores_in(tmp_path)["score"] == pytest.approx(by_phase.sum())
    # The same users are scored with both models, so the standard error is that of the mean of their
    # differences: about 0.012 over all 398 users, 0.017 over the 204 users of rare items. Boosting
    # gains 0.077 and 0.122, six and seven standard errors. Rounding on another machine changes the
    # gain by up to 0.004.
    difference = gains["gradient_boosting"] - gains["item_cf_time"]
    for own in (difference, difference[clicks.is_rare(answers)]):
        assert own.mean() > 4 * own.std(ddof=1) / np.sqrt(len(own))


@needs_blocks(f"{FOLDER}/sample_model_item_cf_time.py")
def test_the_scores_on_real_clicks_are_the_measured_ones(real_data: Path, tmp_path: Path) -> None:
    """The model adds up pairs of clicks and fits nothing: all machines give the same scores."""
    source = real_data / "related/debiasing"
    for path in source.glob("underexpose_t*_click-1.csv"):
        shutil.copyfile(path, tmp_path / path.name)
    given, masked = ["--input_dir", tmp_path], tmp_path / "masked"
    succeeds([f"{FOLDER}/local_data_split.py", *given, "--output_dir", masked])
    output = ["--test_dir", masked, "--output_dir", masked]
    succeeds([f"{FOLDER}/sample_model_item_cf_time.py", *given, *output])
    assert "a sum over 1 phase)" in succeeds(evaluation("debiasing", masked))
    scores = scores_in(masked)
    # If two nearly equal items change places, one of some 1,700 users gains or loses at most 0.37,
    # which is 0.0002 of the mean over all users. The tolerance is five times that.
    assert [scores["ndcg_50_full"], scores["ndcg_50_half"]] == pytest.approx(
        [0.0580, 0.0423], abs=1e-3
    )


def test_a_model_that_reads_the_answers_gets_no_score(challenge_kit: Kits, tmp_path: Path) -> None:
    """Without --local, a model reads the original clicks, which hold the clicks to predict."""
    kit = challenge_kit("debiasing")
    own = ["--output_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_popularity.py", "--output_file", "test.csv", *own], kit=kit)
    more = tmp_path / "more.csv"
    more.write_text((tmp_path / "test.csv").read_text() + row(9999, FIFTY))
    checked = succeeds([f"{FOLDER}/check_submission.py", more], kit=kit)
    assert "399 rows: every test user of the phases 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 in " in checked
    assert checked.endswith("\n1 rows of other users are ignored\n")
    scored = ["--submit_data", "test.csv", "--submission_dir", tmp_path, *own]
    line = fails([f"{FOLDER}/local_evaluation.py", *scored], kit=kit)
    assert "sample_model_popularity.py --output_file test.csv" in line
    assert "which reads the clicks to predict; make it again with --local or" in line
    assert not (tmp_path / "scores_debiasing.txt").exists()


def test_equal_and_nearly_equal_items_come_in_the_order_of_their_columns() -> None:
    """Differences below single precision do not count, since processors round sums differently."""
    values = np.array(
        [
            [0.0, 0.5, 0.0, 0.5, 0.7],
            [0.5, 0.5 + 1e-12, 0.1, 0.1, 0.1],
            [-np.inf, 0.2, 0.3, 0.0, 0.0],
        ]
    )
    assert recommend.largest_columns(values, 3).tolist() == [[4, 1, 3], [0, 1, 2], [2, 1, 3]]
    all_columns = recommend.largest_columns(values, 5)
    assert all_columns[0].tolist() == [4, 1, 3, 0, 2]
