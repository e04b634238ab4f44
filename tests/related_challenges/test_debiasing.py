"""Debiasing: metrics by known answers and a second implementation, models, bad input, scripts."""

import dataclasses
import math
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError

boosting = import_module("sample_model_gradient_boosting")
candidates = import_module("candidates")
clicks = import_module("clicks")
recommend = import_module("recommend")
item_cf_time = import_module("sample_model_item_cf_time")

Write = Callable[[str, str | bytes], Path]
FOLDER = "related_challenges/debiasing"
FIFTY = list(range(1, 51))


def row(user: int, items: list[int]) -> str:
    return ",".join(map(str, [user, *items])) + "\n"


@pytest.mark.parametrize(
    ("answer", "rank", "gain"), [(1, 0, 1), (3, 2, 0.5), (50, 49, 1 / math.log2(51)), (51, 50, 0)]
)
def test_rank_and_gain(answer: int, rank: int, gain: float) -> None:
    found = clicks.rank_of_answer(np.array([FIFTY]), np.array([answer]))
    assert found.tolist() == [rank]
    score = clicks.score_phase(found, np.array([7]))
    assert score.ndcg_full == pytest.approx(gain)
    assert score.hit_rate_full == (rank < 50)


def plain_phase(cases: list[tuple[int, int]]) -> list[float]:
    """Score (rank, degree) cases one by one, as the organisers describe it."""
    degrees = sorted(degree for _, degree in cases)
    median = degrees[len(degrees) // 2]
    sums = {"full": [0.0, 0, 0], "half": [0.0, 0, 0]}
    for rank, degree in cases:
        for name in ("full", "half") if degree <= median else ("full",):
            sums[name][2] += 1
            if rank < 50:
                sums[name][0] += 1 / math.log2(rank + 2)
                sums[name][1] += 1
    return [sums[name][k] / sums[name][2] for k in (0, 1) for name in ("full", "half")]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1))
def test_metrics_agree_with_plain_ones(cases: list[tuple[int, int]]) -> None:
    rank, degree = map(np.array, zip(*cases, strict=True))
    score = clicks.score_phase(rank, degree)
    found = [score.ndcg_full, score.ndcg_half, score.hit_rate_full, score.hit_rate_half]
    assert found == pytest.approx(plain_phase(cases))


def evaluation(folder: Path, *flags: object) -> list[object]:
    where = ("--input_dir", folder, "--submission_dir", folder, "--output_dir", folder)
    return [f"{FOLDER}/local_evaluation.py", *where, *flags]


def scores_in(folder: Path) -> dict[str, float]:
    lines = (folder / "scores_debiasing.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(":") for line in lines)}


def score_of(folder: Path) -> float:
    return scores_in(folder)["score"]


def test_sums_over_phases_and_final_stage(write: Write, succeeds: Callable[..., str]) -> None:
    # Users 0, 11 and 22 belong to phase 0, 7, 8 and 9 to those phases; 5 is nobody's test user.
    answers = "0,0,1,4\n0,11,99,4\n0,22,3,9\n7,7,1,4\n8,8,3,4\n9,9,99,4\n"
    folder = write("debias_track_answer.csv", answers).parent
    users = (5, 0, 9, 22, 8, 11, 7)
    write("submission.csv", "".join(row(user, FIFTY) for user in users))
    printed = succeeds(evaluation(folder))
    assert "score 2.0000 (NDCG@50 full of 6 users, a sum over 4 phases)" in printed
    assert scores_in(folder) == pytest.approx(
        {
            "score": 0.5 + 1 + 0.5 + 0,
            "ndcg_50_full": 0.5 + 1 + 0.5 + 0,
            # The items of users 0 and 11 are rare, that of user 22 is not.
            "ndcg_50_half": 0.5 + 1 + 0.5 + 0,
            "hitrate_50_full": 2 / 3 + 1 + 1 + 0,
            "hitrate_50_half": 1 / 2 + 1 + 1 + 0,
        }
    )
    first, *_ = (folder / "scores_debiasing.txt").read_text().splitlines()
    assert first.startswith("score:")
    printed = succeeds(evaluation(folder, "--final_stage"))
    assert "a sum over 3 phases, plus 7)" in printed
    assert list(scores_in(folder).values()) == pytest.approx([8.5, 8.5, 8.5, 9, 9])


def test_final_stage_needs_its_phases(write: Write, fails: Callable[..., str]) -> None:
    folder = write("debias_track_answer.csv", "0,0,1,4\n7,7,1,4\n").parent
    line = fails(evaluation(folder, "--final_stage"))
    assert "holds the phases 0, 7, --final_stage expects 7, 8, 9" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (row(0, FIFTY) + row(11, FIFTY[:-1]), "row 2 has 50 columns, expected 51"),
        (row(0, FIFTY) + row(11, [*FIFTY, 51]), "row 2 has 52 columns, expected 51"),
        (row(0, FIFTY) + row(11, [*FIFTY[:-1], 1]), "row 2: user 11 has 49 different items"),
        (row(0, FIFTY) + row(0, FIFTY), "row 2 repeats user 0"),
        (row(0, FIFTY) + "\n\n" + row(0, FIFTY), "row 4 repeats user 0"),
        (row(0, FIFTY), "1 of 2 test users are missing, first user_id 11"),
        (row(0, FIFTY) + row(11, FIFTY).replace("11,", "x,", 1), "column 'user_id': row 2 is 'x'"),
        (row(0, FIFTY) + row(11, [-1, *FIFTY[1:]]), "column 'item_1': row 2 is '-1'"),
        ("", "is empty, expected rows"),
    ],
)
def test_refuses_a_wrong_submission(write: Write, content: str, message: str) -> None:
    path = write("submission.csv", content)
    with pytest.raises(InputError, match=message):
        clicks.select_users(path, *clicks.read_recommendations(path), np.array([0, 11]))


def test_incomplete_submission_gets_no_score(write: Write, fails: Callable[..., str]) -> None:
    folder = write("debias_track_answer.csv", "0,0,1,4\n0,11,1,4\n").parent
    write("submission.csv", row(0, FIFTY))
    assert "1 of 2 test users are missing" in fails(evaluation(folder))
    assert not (folder / "scores_debiasing.txt").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0,0,1,4\n1,13,1,4\n", "column 'phase_id': row 2 is 1 for user 13"),
        ("0,0,1,4\n0,0,2,4\n", "row 2 repeats user 0"),
        ("0,0,1\n", "has 3 columns, expected 4"),
    ],
)
def test_refuses_wrong_answers(write: Write, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        clicks.read_answers(write("debias_track_answer.csv", content))


def test_refuses_wrong_clicks(write: Write) -> None:
    with pytest.raises(InputError, match=r"column 'time': row 2 is '1\.5'"):
        clicks.read_clicks(write("clicks.csv", "1,2,0.5\n1,3,1.5\n"))


def test_times_keep_all_their_digits(write: Write) -> None:
    first, second = 0.9839525152735815, 0.9839525152735816
    path = write("clicks.csv", f"1,2,{first}\n1,3,{second}\n")
    data = clicks.read_clicks(path)
    assert data.time[0] < data.time[1]
    clicks.write_clicks(path, data)
    assert clicks.read_clicks(path).time.tolist() == [first, second]


def test_split_masks_the_latest_click_and_counts_degrees(
    write: Write, succeeds: Callable[..., str]
) -> None:
    write("in/underexpose_train_click-0.csv", "1,7,0.1\n2,7,0.2\n2,8,0.3\n")
    write("in/underexpose_test_click-0.csv", "11,9,0.7\n0,7,0.3\n11,7,0.2\n0,8,0.4\n0,9,0.1\n")
    write("in/underexpose_train_click-1.csv", "2,9,0.5\n")
    folder = write("in/underexpose_test_click-1.csv", "12,7,0.6\n12,8,0.5\n").parent
    output = folder.parent / "out"
    succeeds([f"{FOLDER}/local_data_split.py", "--input_dir", folder, "--output_dir", output])
    assert (output / "underexpose_test_click-0.csv").read_text() == "0,7,0.3\n11,7,0.2\n0,9,0.1\n"
    assert (output / "underexpose_test_qtime-0.csv").read_text() == "0,0.4\n11,0.7\n"
    # Item 8 has one click in phase 0 and item 9 one: the masked ones are not among them. Item 7 has
    # two training and two test clicks there, none in phase 1 but the masked one.
    answers = (output / "debias_track_answer.csv").read_text()
    assert answers == "0,0,8,1\n0,11,9,1\n1,12,7,4\n"


def read_phase(write: Write, lines: dict[str, str], number: int) -> Any:
    """Write files of clicks, by the middle of their names, and read a phase of them."""
    folders = [write(f"underexpose_{name}.csv", text).parent for name, text in lines.items()]
    return recommend.read_phase(folders[0], folders[0], number)


def test_earlier_phases_tell_only_what_came_before(write: Write) -> None:
    """User 2 is a test user of phase 2; phase 1 holds the click to be predicted, on item 7."""
    lines = {
        "train_click-0": "5,7,0.15\n5,8,0.35\n6,7,0.19\n",
        "test_click-0": "0,7,0.38\n0,9,0.30\n",
        "train_click-1": "2,8,0.39\n2,9,0.40\n2,7,0.45\n5,7,0.395\n6,6,0.39\n7,8,0.5\n",
        "test_click-1": "1,9,0.37\n",
        "train_click-2": "5,7,0.60\n5,8,0.5\n6,9,0.41\n",
        "test_click-2": "2,9,0.40\n",
        "test_qtime-2": "2,0.45\n",
        "train_click-3": "2,7,0.45\n",
    }
    phase = read_phase(write, lines, 2)
    # From 0.4 on, which is where the phase begins, its own files; before it those of phase 1 down
    # to 0.37, where that begins, and then those of phase 0 down to one length of the phase, 0.2.
    # Item 6 is none of the phase.
    assert phase.item_ids.tolist() == [7, 8, 9]
    moments = [
        (0, 9, 0.30), (1, 9, 0.37), (2, 8, 0.39), (2, 9, 0.40), (5, 8, 0.35), (5, 7, 0.395),
        (5, 8, 0.5), (5, 7, 0.6), (6, 9, 0.41),
    ]  # fmt: skip
    user_ids = [0, 1, 2, 5, 6]
    assert phase.n_users == len(user_ids)
    assert phase.user.tolist() == [user_ids.index(user) for user, _, _ in moments]
    assert phase.item.tolist() == [item - 7 for _, item, _ in moments]
    np.testing.assert_allclose(phase.time, [(time - 0.4) / 0.2 for _, _, time in moments])
    assert phase.test_user.tolist() == [2]
    np.testing.assert_allclose(phase.query_time, [0.25])


def test_a_phase_that_begins_with_a_click_to_be_predicted(write: Write) -> None:
    """User 1 has no other click in phase 1; phase 0 holds the one to be predicted, on item 7."""
    lines = {
        "train_click-0": "1,7,0.35\n1,8,0.34\n5,7,0.36\n",
        "test_click-0": "0,7,0.30\n",
        "train_click-1": "5,7,0.40\n5,8,0.60\n",
        "test_click-1": "12,8,0.50\n",
        "test_qtime-1": "1,0.35\n12,0.55\n",
    }
    phase = read_phase(write, lines, 1)
    before = phase.time < 0
    assert phase.item_ids[phase.item[before]].tolist() == [7, 8]
    np.testing.assert_allclose(phase.time[before], [-0.5, -0.3])


def test_rare_items_of_a_phase_are_not_told_apart_by_their_clicks() -> None:
    """Clicks in the phase count as four at least, those before it come on top."""
    phase = make_phase(1, n_items=60, n_clicks=240)
    time = 2 * phase.time - 1
    phase = dataclasses.replace(phase, time=time)
    n_inside, n_before = (
        np.bincount(phase.item[rows], minlength=60) for rows in (time >= 0, time < 0)
    )
    assert n_inside.min() < 4 < n_inside.max()
    found = candidates.find_neighbours(phase).n_clicks
    np.testing.assert_array_equal(found, np.maximum(n_inside, 4) + n_before)


def make_phase(seed: int, n_users: int = 12, n_items: int = 60, n_clicks: int = 120) -> Any:
    rng = np.random.default_rng(seed)
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
        test_user=np.array([3, 5, -1]),
        query_time=np.array([0.9, 0.4, 1.2]),
        n_users=n_users,
    )


@pytest.mark.parametrize("seed", range(3))
def test_item_similarity_agrees_with_a_plain_loop(seed: int) -> None:
    phase = make_phase(seed)
    n_clicks = np.bincount(phase.item, minlength=60)
    expected = np.zeros((60, 60))
    for a in range(120):
        for b in range(120):
            same = phase.user[a] == phase.user[b]
            if a != b and same and abs(a - b) <= item_cf_time.MAX_DISTANCE:
                gap = abs(phase.time[a] - phase.time[b])
                left, right = phase.item[a], phase.item[b]
                expected[left, right] += (
                    abs(a - b) ** -item_cf_time.DISTANCE_POWER
                    * math.exp(-item_cf_time.TIME_DECAY * gap)
                    / n_clicks[left] ** item_cf_time.CLICKED_POWER
                    / n_clicks[right] ** item_cf_time.SCORED_POWER
                )
    needed = np.isin(np.arange(60), phase.item[np.isin(phase.user, [3, 5])])
    found = item_cf_time.item_similarity(phase).toarray()
    np.testing.assert_allclose(found, expected * needed[:, None], rtol=1e-6)


def test_the_latest_clicks_are_masked() -> None:
    phase = make_phase(0)
    latest = {user: np.flatnonzero(phase.user == user)[-1] for user in (2, 7)}
    masked, answer = candidates.mask_latest(phase, np.array([2, 7]))
    assert answer.tolist() == [phase.item[row] for row in latest.values()]
    assert masked.query_time.tolist() == [phase.time[row] for row in latest.values()]
    assert masked.test_user.tolist() == [2, 7]
    rest = np.delete(np.arange(120), list(latest.values()))
    for name in ("user", "item", "time"):
        np.testing.assert_array_equal(getattr(masked, name), getattr(phase, name)[rest])
    # A user with one click keeps it, and so does one without a click in the phase itself.
    before = dataclasses.replace(phase, time=phase.time - (phase.user == 2))
    masked, answer = candidates.mask_latest(before, np.array([2, 7]))
    assert masked.test_user.tolist() == [7]
    first = np.flatnonzero(phase.user != 2)
    single = phase_with(phase, np.append(first, latest[2]))
    masked, answer = candidates.mask_latest(single, np.array([2, 7]))
    assert masked.test_user.tolist() == [7]
    assert len(answer) == 1


def phase_with(phase: Any, rows: npt.NDArray[np.int64], **changes: object) -> Any:
    """Return a phase with some of the clicks only."""
    rows = np.sort(rows)
    kept = {name: getattr(phase, name)[rows] for name in ("user", "item", "time")}
    return dataclasses.replace(phase, **kept, **changes)


@pytest.mark.parametrize("part", [0, 1])
def test_nothing_that_is_learned_from_shows_the_masked_click(part: int) -> None:
    """Whatever was clicked last, the features of a candidate are the same."""
    phase = make_phase(3, n_users=12, n_clicks=200)
    users = np.setdiff1d(np.arange(12), [3, 5])[part :: boosting.N_PARTS]
    latest = np.array([np.flatnonzero(phase.user == user)[-1] for user in users])
    described = []
    for shift in (0, 17):
        item = phase.item.copy()
        item[latest] = (item[latest] + shift) % 60
        changed = dataclasses.replace(phase, item=item)
        masked, _ = candidates.mask_latest(changed, users)
        neighbours = candidates.find_neighbours(masked)
        vectors = candidates.item_vectors(neighbours)
        found = candidates.find_candidates(masked, neighbours, vectors)
        described.append(boosting.describe(masked, neighbours, vectors, found))
    np.testing.assert_array_equal(*described)
    assert len(described[0])


@pytest.mark.parametrize("seed", range(2))
def test_neighbours_agree_with_the_similarity_of_the_simpler_sample(seed: int) -> None:
    phase = make_phase(seed, n_clicks=300)
    phase = dataclasses.replace(phase, test_user=np.arange(12))
    neighbours = candidates.find_neighbours(phase)
    n_clicks = np.bincount(phase.item, minlength=60)
    assert n_clicks.min() < candidates.FEWEST_CLICKS <= n_clicks.max()
    # There an item counts with all its clicks, here with four if it has fewer.
    np.testing.assert_array_equal(neighbours.n_clicks, np.maximum(n_clicks, 4))
    ratio = np.maximum(n_clicks, 1) / neighbours.n_clicks
    expected = item_cf_time.item_similarity(phase).toarray()
    expected *= np.outer(ratio**item_cf_time.CLICKED_POWER, ratio**item_cf_time.SCORED_POWER)
    parts = {
        name: recommend.csr_array(
            (getattr(neighbours, name), neighbours.item, neighbours.start), shape=(60, 60)
        ).toarray()
        for name in ("similarity", "forward", "count")
    }
    np.testing.assert_allclose(parts["similarity"], expected, rtol=1e-6)
    # What is clicked later by one is clicked earlier by the other.
    scale = np.outer(
        neighbours.n_clicks**-candidates.CLICKED_POWER,
        neighbours.n_clicks**-candidates.SCORED_POWER,
    )
    forward = parts["forward"] / scale
    np.testing.assert_allclose(forward + forward.T, parts["similarity"] / scale, atol=1e-9)
    clicked = recommend.click_matrix(phase).toarray()
    expected = clicked.T @ clicked
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(parts["count"], expected)


def test_candidates_are_unseen_and_scored_by_similarity() -> None:
    phase = make_phase(0)
    neighbours = candidates.find_neighbours(phase)
    vectors = candidates.item_vectors(neighbours)
    found = candidates.find_candidates(phase, neighbours, vectors)
    # The third test user has no click, so no candidates either.
    assert np.unique(found.user).tolist() == [0, 1]
    key = found.user * 60 + found.item
    assert (np.diff(key) > 0).all()
    similarity = recommend.csr_array(
        (neighbours.similarity, neighbours.item, neighbours.start), shape=(60, 60)
    )
    scores = (item_cf_time.recent_clicks(phase) @ similarity).toarray()
    np.testing.assert_allclose(found.score, scores[found.user, found.item])
    for place, user in enumerate((3, 5)):
        own = found.take(np.flatnonzero(found.user == place))
        seen = phase.item[phase.user == user]
        assert not set(own.item) & set(seen)
        scores[place, seen] = 0
        assert set(np.flatnonzero(scores[place])) <= set(own.item)
        scored = own.score > 0
        assert sorted(own.rank[scored]) == list(range(scored.sum()))
        assert (np.diff(own.score[scored][np.argsort(own.rank[scored])]) <= 0).all()
        assert own.share.max() == 1


def test_vectors_of_items_clicked_together_are_close() -> None:
    rng = np.random.default_rng(0)
    # Users of two kinds: each clicks only items of its kind.
    user = np.repeat(np.arange(40), 8)
    item = np.concatenate([rng.permutation(20)[:8] + 20 * (u % 2) for u in range(40)])
    kept = {"user": user, "item": item, "time": rng.random(320)}
    phase = dataclasses.replace(make_phase(0), **kept, item_ids=np.arange(40), n_users=40)
    vectors = candidates.item_vectors(candidates.find_neighbours(phase))
    closeness = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(closeness), 1, rtol=1e-5)
    assert abs(closeness[:20, 20:]).max() < 0.01
    assert closeness[:20, :20].mean() > 0.05


def test_matches_are_all_clicks_on_neighbours_of_candidates() -> None:
    phase = make_phase(1)
    neighbours = candidates.find_neighbours(phase)
    found = candidates.find_candidates(phase, neighbours, candidates.item_vectors(neighbours))
    click, pair, row = candidates.match_clicks(phase, neighbours, found)
    expected = set()
    for place, user in enumerate((3, 5)):
        for one in np.flatnonzero(phase.user == user):
            source = phase.item[one]
            for other in range(neighbours.start[source], neighbours.start[source + 1]):
                same = (found.user == place) & (found.item == neighbours.item[other])
                expected |= {(one, other, candidate) for candidate in np.flatnonzero(same)}
    assert len(expected) > 100
    assert set(zip(click, pair, row, strict=True)) == expected
    assert len(click) == len(expected)


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), min_size=1))
def test_clicks_around_a_moment_agree_with_plain_ones(
    moment: int, asked: list[tuple[int, int]]
) -> None:
    phase = make_phase(moment, n_items=20)
    # Some of the clicks came before the phase.
    time = 2 * phase.time - 1
    phase = dataclasses.replace(phase, time=time)
    item = np.array([item for item, _ in asked])
    time = np.array([time / 20 for _, time in asked])
    before, after, (near,) = candidates.clicks_around(phase, item, time, [0.1])
    for k in range(len(asked)):
        times = phase.time[phase.item == item[k]]
        gaps = times - time[k]
        assert before[k] == pytest.approx(min([-gap for gap in gaps if gap < 0], default=2))
        assert after[k] == pytest.approx(min([gap for gap in gaps if gap >= 0], default=1))
        assert near[k] == (abs(gaps) <= 0.1).sum()


@pytest.mark.parametrize("n_users", [1, 40])
def test_boosting_needs_clicks_to_learn_from(
    write: Write, n_users: int, succeeds: Callable[..., str]
) -> None:
    # No two users share an item, and each has clicked two.
    pairs = ((11 * k + 1, 2 * k + place) for k in range(n_users) for place in (0, 1))
    train = "".join(f"{user},{item},0.{1 + item % 2}\n" for user, item in pairs)
    write("underexpose_train_click-0.csv", train)
    write("underexpose_test_click-0.csv", "0,100,0.1\n0,101,0.2\n")
    folder = write("underexpose_test_qtime-0.csv", "0,0.3\n").parent
    flags = ["--input_dir", folder, "--output_dir", folder]
    with pytest.raises(AssertionError, match="phase 0: 0 training users clicked a candidate last"):
        succeeds([f"{FOLDER}/sample_model_gradient_boosting.py", *flags])
    assert not (folder / "submission.csv").exists()


def test_best_items_are_unseen_and_in_order() -> None:
    phase = make_phase(0, n_items=70)
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((3, 70)) < 0.3, rng.random((3, 70)), 0)
    dense[2] = 0
    best = recommend.best_items(phase, recommend.csr_array(dense)) - 100
    n_clicks = np.bincount(phase.item, minlength=70)
    for user, items in zip((3, 5, -1), best, strict=True):
        seen = set(phase.item[phase.user == user])
        assert len(set(items)) == 50
        assert not seen & set(items)
    for scores, items in zip(dense[:2], best, strict=False):
        assert (np.diff(scores[items]) <= 0).all()
        assert scores[items].min() == 0
    # A user without a click gets what is popular.
    assert (np.diff(n_clicks[best[2]]) <= 0).all()


def test_too_few_items_are_refused() -> None:
    phase = make_phase(0, n_items=40)
    with pytest.raises(InputError, match="expected at least 50"):
        recommend.best_items(phase, recommend.csr_array(np.zeros((3, 40))))


def mean_scores(data: Path) -> npt.NDArray[np.float64]:
    answers = clicks.read_answers(data / "test_input/debias_track_answer.csv")
    path = data / "test_output/submission.csv"
    items = clicks.select_users(path, *clicks.read_recommendations(path), answers.user)
    rank = clicks.rank_of_answer(items, answers.item)
    phases = np.unique(answers.phase)
    scores = [
        clicks.score_phase(rank[answers.phase == p], answers.degree[answers.phase == p])
        for p in phases
    ]
    return np.mean([(score.ndcg_full, score.ndcg_half) for score in scores], axis=0) * len(phases)


def test_scripts(
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    run: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    kit = challenge_kit("debiasing")
    data = kit / FOLDER / "data"
    succeeds([f"{FOLDER}/local_data_split.py"], kit=kit)
    ndcg = {}
    for model in ("popularity", "item_cf", "item_cf_time"):
        succeeds([f"{FOLDER}/sample_model_{model}.py", "--local"], kit=kit)
        ndcg[model] = mean_scores(data)
    done = run([f"{FOLDER}/local_evaluation.py"], kit=kit)  # In a process of its own, as users do.
    assert f"score {ndcg['item_cf_time'][0]:.4f}" in done.stdout
    assert score_of(data / "test_output") == pytest.approx(ndcg["item_cf_time"][0])
    assert (ndcg["popularity"] < ndcg["item_cf"]).all()
    assert (ndcg["item_cf"] < ndcg["item_cf_time"]).all()
    # The sample has the phases of the final stage.
    final = succeeds([f"{FOLDER}/local_evaluation.py", "--final_stage"], kit=kit)
    assert "a sum over 3 phases, plus 7)" in final
    # Popularity finds something, if nothing rare.
    assert ndcg["popularity"][0] > 0

    # The published test users are those of the local split, whose answers they have clicked.
    succeeds([f"{FOLDER}/sample_model_popularity.py", "--output_file", "test.csv"], kit=kit)
    user, _ = clicks.read_recommendations(data / "test_output/test.csv")
    expected = clicks.read_query_users(data / "train_data/underexpose_test_qtime-2.csv")
    assert set(expected) <= set(user)
    done = run([f"{FOLDER}/local_evaluation.py", "--submit_data", "test.csv"], kit=kit)
    assert done.returncode == 2
    made_so = "sample_model_popularity.py --output_file test.csv`, which reads the answers"
    assert made_so in done.stderr and done.stderr.endswith("expected --local or --test_dir\n")
    assert not (data / "test_output/scores_debiasing.txt").exists()


def test_boosting_beats_its_candidates(
    challenge_kit: Callable[[str], Path], succeeds: Callable[..., str], tmp_path: Path
) -> None:
    kit = challenge_kit("debiasing")
    folder, masked = tmp_path / "clicks", tmp_path / "masked"
    folder.mkdir()
    for path in (kit / FOLDER / "data/train_data").glob("*-8.csv"):
        shutil.copyfile(path, folder / path.name)
    where = ["--input_dir", folder]
    succeeds([f"{FOLDER}/local_data_split.py", *where, "--output_dir", masked], kit=kit)
    sums = {}
    for model in ("item_cf_time", "gradient_boosting"):
        output = ["--test_dir", masked, "--output_dir", tmp_path]
        succeeds([f"{FOLDER}/sample_model_{model}.py", *where, *output], kit=kit)
        files = ["--input_dir", masked, "--submission_dir", tmp_path, "--output_dir", tmp_path]
        printed = succeeds([f"{FOLDER}/local_evaluation.py", *files], kit=kit)
        assert "a sum over 1 phase)" in printed
        sums[model] = scores_in(tmp_path)
    for name in ("ndcg_50_full", "ndcg_50_half"):
        assert 0 < sums["item_cf_time"][name] < sums["gradient_boosting"][name]


def test_real_clicks(real_data: Path, tmp_path: Path, succeeds: Callable[..., str]) -> None:
    for kind in ("train_click", "test_click"):
        name = f"underexpose_{kind}-1.csv"
        shutil.copyfile(real_data / "related/debiasing" / name, tmp_path / name)
    data = tmp_path / "data"
    flags = ["--input_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *flags, "--output_dir", data / "test_input"])
    output = ["--test_dir", data / "test_input", "--output_dir", data / "test_output"]
    succeeds([f"{FOLDER}/sample_model_item_cf_time.py", *flags, *output])
    full, half = mean_scores(data)
    assert full == pytest.approx(0.0580, abs=1e-3)
    assert half == pytest.approx(0.0423, abs=1e-3)
