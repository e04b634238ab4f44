"""Leaderboards: the platform's order, ties, the best of a team, and the files."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import toy_bundle
from bundle import Bundle, read_bundle
from leaderboard import as_frame, as_page, as_table, make_boards
from page_reading import read_page

START = datetime(2026, 10, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = toy_bundle.write_folder(tmp_path_factory.mktemp("bundle"))
    return read_bundle(folder, tmp_path_factory.mktemp("unpacked"))


def attempt(team: str, minute: int = 0, task: int = 0, fault: str = "", **scores: float) -> Any:
    submitted = START + timedelta(minutes=minute)
    details = "" if fault else f"details/{team}_{minute}.html"
    about = {"team": team, "file": f"{team}/{minute}.zip", "submitted": submitted, "task": task}
    return {**about, "fault": fault, "details": details, **scores}


def test_the_best_of_each_team_and_ties_by_the_other_columns_then_to_the_earlier(
    bundle: Bundle,
) -> None:
    attempts = [
        attempt("late", 9, score=0.7, standard_error=0.01),
        attempt("early", 2, score=0.7, standard_error=0.01),
        attempt("sure", 10, score=0.7, standard_error=0.005),
        attempt("none", 1, score=0.7),
        # The platform keeps ten decimal places.
        attempt("last", 11, score=0.7 + 1e-12),
        *(attempt("often", place, score=place / 10) for place in (3, 8, 5)),
        attempt("often", 4, fault="wrong"),
    ]
    board = make_boards(bundle, as_frame(bundle, attempts))
    places = [*zip(board["rank"], board["team"], strict=True)]
    assert places == [*enumerate(["often", "sure", "early", "late", "none", "last"], 1)]
    first = board.iloc[0]
    assert (first["score"], first["submissions"]) == (0.8, 3)


def test_the_page_shows_places_masks_and_what_failed(bundle: Bundle) -> None:
    team = "<b>ann</b> & co"
    attempts = as_frame(
        bundle,
        [
            attempt(team, 1, score=0.61234, standard_error=0.00987),
            attempt("bob", 2, score=0.7, standard_error=0.2),
            attempt("bob", 3, task=2, score=0.5, mask_0=0.4, mask_1=0.6),
            attempt("eve", 4, fault="row 3 is '<i>'"),
            attempt("eve", 4, task=1, fault="row 3 is '<i>'"),
            attempt("fay", task=-1, fault="is not a zip file"),
        ],
    )
    links = ["details/bob_2.html", f"details/{team}_1.html", "details/bob_3.html"]
    html = as_page(bundle, "Public", make_boards(bundle, attempts), attempts, "now")
    page = read_page(html, links)
    assert [link for link in page.references if link.startswith("details/")] == links
    assert "Public phase: 5 submissions of 4 teams; now" in page.text
    first, others, masks, failed = page.tables
    assert (first.heading, others.heading) == ("Task 1, public", "Task 4, public")
    assert first.rows == [
        ["1", "bob", "0.7000 ± 0.2000", "1", "2026-10-01 09:02", "page"],
        ["2", team, "0.6123 ± 0.0099", "1", "2026-10-01 09:01", "page"],
    ]
    assert first.columns[2:4] == ["Score", "submissions"]
    assert others.rows == [["1", "bob", "0.5000", "1", "2026-10-01 09:03", "page"]]
    assert masks.heading == "Mask 0 to Mask 1" and "0.400" in page.folded
    assert masks.columns == ["team", "Mask 0", "Mask 1"]
    assert masks.rows == [["bob", "0.400", "0.600"]]
    # Once, with both tasks.
    assert failed.rows == [
        ["eve/4.zip", "Task 1, public; Task 2, public", "2026-10-01 09:04", "row 3 is '<i>'"],
        ["fay/0.zip", "", "2026-10-01 09:00", "is not a zip file"],
    ]
    # One chart: a single team needs none.
    (chart,) = page.charts
    assert chart.titles == ["bob: 0.7000", f"{team}: 0.6123"]
    # Its axis has room for the 95 % intervals: of bob's, from 0.308.
    ticks = [float(text) for text in chart.texts if re.fullmatch(r"\d\.\d\d?", text)]
    assert 0.2 <= min(ticks) <= 0.4
    # No scores make empty files.
    names = "task phase rank team score standard_error mask_0 mask_1 submissions time file"
    none = as_frame(bundle, [])
    boards = make_boards(bundle, none)
    assert list(as_table(bundle, "Public", boards)) == names.split()
    html = as_page(bundle, "Public", boards, none, "now")
    assert "No submission was scored." in read_page(html).text
