"""Debiasing: a season is replayed by the challenge's rules."""

from importlib import import_module
from pathlib import Path

import pytest
from conftest import Write, fails, succeeds

replay = import_module("replay")

SCRIPT = "related_challenges/debiasing/replay.py"
# 9 April 2020, 23:00 in Beijing. This is in phase 0, since phase 1 begins after 10 April, 23:59:59.
EARLY = 1_586_444_400
HOUR = 3600
# 6 June 2020, 08:00 in Beijing, in the final stage.
LATE = 1_591_401_600
PHASES = range(10)
# Each phase has three test users: users 0, 11 and 22 in phase 0, users 1, 12 and 23 in phase 1, and
# so on.
USERS = [phase + first for phase in PHASES for first in (0, 11, 22)]
OTHERS = list(range(100, 150))


def answer_lines(phase: int) -> str:
    """Return a line for each answer of a phase: phase, user, item and number of clicks on the item.

    Two of the three users clicked item 1, which is rare. The third user clicked item 2.
    """
    return f"{phase},{phase},1,3\n{phase},{phase + 11},1,3\n{phase},{phase + 22},2,9\n"


ANSWERS = "".join(answer_lines(phase) for phase in PHASES)


def recommend(rare: int | None, popular: int | None) -> str:
    """Return a submission that recommends the same fifty items to all users.

    `rare` is the place of item 1, the rare item, and `popular` the place of item 2. Places are
    counted from 0. If a place is None, the submission does not have the item.
    """
    items = list(OTHERS)
    if rare is not None:
        items[rare] = 1
    if popular is not None:
        items[popular] = 2
    return "".join(f"{user},{','.join(map(str, items))}\n" for user in USERS)


# A phase gives two scores, each the mean NDCG@50 of users: "full" over all test users, and "half"
# over the users who clicked the rare item. If the item that a user clicked has place k among the
# recommendations, from 0, the user gains 1 / log2(k + 2): 1 for place 0, 1/2 for place 2, 1/3 for
# place 6. Two thirds of the users clicked the rare item (item 1), the others the popular item (item
# 2). So "full" = 2/3 · gain of the rare item + 1/3 · gain of the popular item, and "half" = gain of
# the rare item. The comments below compute both scores.
#
# Rare item in place 0: "full" = 2/3 · 1 + 1/3 · 0 = 2/3, "half" = 1.
RARE_FIRST = recommend(rare=0, popular=None)
# Popular item in place 0: "full" = 2/3 · 0 + 1/3 · 1 = 1/3, "half" = 0.
POPULAR_FIRST = recommend(rare=None, popular=0)
# Rare item in place 0, popular item in place 2: "full" = 2/3 · 1 + 1/3 · 1/2 = 5/6, "half" = 1.
BOTH = recommend(rare=0, popular=2)
# Rare item in place 2, popular item in place 0: "full" = 2/3 · 1/2 + 1/3 · 1 = 2/3, "half" = 1/2.
POPULAR_BEFORE_RARE = recommend(rare=2, popular=0)
# Rare item in place 2, popular item in place 6: "full" = 2/3 · 1/2 + 1/3 · 1/3 = 4/9, "half" = 1/2.
BOTH_LOW = recommend(rare=2, popular=6)


@pytest.fixture
def season(write: Write) -> Path:
    """Return an empty folder for the submissions of all teams, and write the answers beside it."""
    folder = write("answers/debias_track_answer.csv", ANSWERS).parent.parent / "season"
    folder.mkdir()
    return folder


def run_replay(season: Path) -> list[str]:
    """Replay a season, and return the printed lines with single blanks between words."""
    printed = succeeds([SCRIPT, season, "--input_dir", season.parent / "answers"])
    return [" ".join(line.split()) for line in printed.splitlines()]


def submit(season: Path, team: str, time: int, content: str) -> Path:
    """Write a file that a team submits at this time (in Unix seconds); return its path."""
    path = season / team / f"{time}.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def test_a_season_by_hand(season: Path) -> None:
    """Two teams submit in phase 0 and three in the final stage; both leaderboards are printed.

    The time EARLY lies in phase 0, and the time LATE in the final stage.

    A submission has two scores. The score over all test users, "full", ranks the teams. The score
    over the users who clicked a rare item, "half", decides who wins. A submission recommends the
    same items in all phases, and so has the same two scores in each phase. They are computed beside
    the definitions of RARE_FIRST and the other submissions.

    In the final stage, each of the two scores is 7 plus its values in the phases 7, 8 and 9:

    - red: full 7 + 3 · 2/3 = 9, half 7 + 3 · 1 = 10
    - green: full 7 + 3 · 2/3 = 9, half 7 + 3 · 1/2 = 8.5
    - blue: full 7 + 3 · 4/9 = 8 1/3, half 7 + 3 · 1/2 = 8.5

    If two full scores are equal, the earlier submission has the better rank.
    """
    submit(season, "red", EARLY, RARE_FIRST)
    submit(season, "green", EARLY + 1, BOTH)
    submit(season, "green", EARLY + 2, POPULAR_FIRST)
    submit(season, "red", LATE, RARE_FIRST)
    submit(season, "green", LATE - 1, POPULAR_BEFORE_RARE)
    submit(season, "blue", LATE, BOTH_LOW)
    assert run_replay(season) == [
        "6 of 6 submissions scored",
        "",
        "phases 0 to 6 rank full half time",
        f"green 1 0.8333 1.0000 {EARLY + 1}",
        f"red 2 0.6667 1.0000 {EARLY}",
        "",
        "phases 7 to 9 rank full half time",
        f"green 1 9.0000 8.5000 {LATE - 1}",
        f"red 2 9.0000 10.0000 {LATE}",
        f"blue 3 8.3333 8.5000 {LATE}",
        "",
        "qualified by NDCG@50 full: 3 of 3 teams",
        "winner by NDCG@50 half: red (10.0000)",
    ]


def test_the_leaderboard_shows_the_submission_of_highest_full_score(season: Path) -> None:
    """A later submission replaces an earlier one only if its full score is higher.

    The full score is over all test users, and the half score over the users who clicked a rare
    item. In the final stage, each is 7 plus the sum of its values in three phases. These three are
    equal here, so each score is 7 + 3 · its value in a phase.

    - Team red submits RARE_FIRST, whose full score in a phase is 2/3. Then it submits BOTH, whose
      full score is 5/6 and whose half score is 1. BOTH counts. Its scores in the final stage are
      7 + 3 · 5/6 = 9.5 and 7 + 3 · 1 = 10.
    - Team green submits POPULAR_BEFORE_RARE, whose full score in a phase is 2/3 and whose half
      score is 1/2. Then it submits a list with only the rare item, in place 1. The half score rises
      to 1 / log2(1 + 2) = 0.63. But the full score falls to 2/3 · 0.63 = 0.42, since a third of the
      users did not click this item. So POPULAR_BEFORE_RARE counts. Its scores in the final stage
      are 7 + 3 · 2/3 = 9 and 7 + 3 · 1/2 = 8.5.
    """
    tomorrow = LATE + 24 * HOUR
    submit(season, "red", LATE, RARE_FIRST)
    submit(season, "red", tomorrow, BOTH)
    submit(season, "green", LATE, POPULAR_BEFORE_RARE)
    submit(season, "green", tomorrow, recommend(rare=1, popular=None))
    lines = run_replay(season)
    assert f"red 1 9.5000 10.0000 {tomorrow}" in lines
    assert f"green 2 9.0000 8.5000 {LATE}" in lines


@pytest.mark.parametrize(("time", "n_allowed"), [(EARLY, 3), (LATE, 1)])
def test_a_team_has_some_submissions_a_day(season: Path, time: int, n_allowed: int) -> None:
    """A team may submit three times a day in the phases 0 to 6, and once in the final stage.

    A day begins at midnight in Beijing, eight hours before midnight UTC. Each team and each day is
    counted by itself. Team red submits four times in the last seconds of the day that holds
    `time`, and once in the first second of the next day. Team green submits once.
    """
    last_second = last_second_of_day(time)
    times = [last_second - 3, last_second - 2, last_second - 1, last_second]
    paths = [submit(season, "red", each, RARE_FIRST) for each in times]
    submit(season, "red", last_second + 1, BOTH)
    submit(season, "green", last_second, BOTH)

    lines = run_replay(season)

    # The allowed submissions of team red on the first day are scored, and two more: the submission
    # of team red on the next day, and the submission of team green.
    assert lines[0] == f"{n_allowed + 2} of 6 submissions scored"
    refused_paths = paths[n_allowed:]
    assert [line for line in lines if line.startswith("refused")] == [
        f"refused: {path}: comes after {n_allowed} of the same day" for path in refused_paths
    ]


def last_second_of_day(time: int) -> int:
    """Return the Unix time of the last second of the day in Beijing that holds a Unix time."""
    day = 24 * HOUR
    # Unix days begin at midnight UTC. So shift the time by eight hours, round it down to the
    # beginning of a day, and shift it back.
    time_in_beijing = time + 8 * HOUR
    day_start_in_beijing = time_in_beijing - time_in_beijing % day
    day_start = day_start_in_beijing - 8 * HOUR
    return day_start + day - 1


def test_the_two_stages_are_counted_apart(season: Path) -> None:
    """Submissions in the final stage do not count toward the daily limit of the first stage.

    The first stage consists of the phases 0 to 6. Its last second is 08:00:00 on 5 June in Beijing.
    One submission comes in this second, and one a second later, in the final stage.
    """
    submit(season, "red", 1_591_315_200, RARE_FIRST)
    submit(season, "red", 1_591_315_201, RARE_FIRST)
    assert run_replay(season)[0] == "2 of 2 submissions scored"


def test_a_faulty_submission_is_named_and_counts(season: Path) -> None:
    """A faulty submission counts toward the limit of one submission a day.

    So the second submission of the day is refused, although it has no fault.
    """
    faulty = submit(season, "red", LATE, f"7.0{RARE_FIRST}")
    submit(season, "red", LATE + 1, RARE_FIRST)
    lines = run_replay(season)
    assert lines[0] == "0 of 2 submissions scored"
    assert f"refused: {faulty}: column 'user_id': row 1 is '7.00', expected a whole" in lines[1]
    assert lines[-1] == "no winner: no team has a score in the final stage"


@pytest.mark.parametrize(
    ("n_teams", "expected"),
    [(1, 1), (9, 9), (10, 10), (11, 10), (109, 10), (110, 11), (119, 11), (650, 65)],
)
def test_ten_teams_or_the_top_tenth_qualify(n_teams: int, expected: int) -> None:
    """The first ten teams qualify. With 110 teams or more, the first tenth of the teams qualifies.

    A tenth is rounded down. Each team has a lower score than the team before it.
    """
    leaderboard = [scored(f"team {n}", full=-n, half=0) for n in range(n_teams)]
    assert replay.qualify(leaderboard) == leaderboard[:expected]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([-min(n, 8) for n in range(20)], 20, id="all from the ninth on are equal"),
        pytest.param([-(n // 4) for n in range(20)], 12, id="four and four are equal"),
    ],
)
def test_teams_with_the_score_of_the_last_qualified_team_qualify(
    scores: list[int], expected: int
) -> None:
    leaderboard = [scored(f"team {n}", full=score, half=0) for n, score in enumerate(scores)]
    assert len(replay.qualify(leaderboard)) == expected


def scored(team: str, full: float, half: float) -> object:
    """Return a submission of a team with these two scores in the final stage."""
    return replay.Scored(replay.Submission(team, LATE, Path(f"{team}.csv")), full, half)


def test_the_best_by_half_does_not_win_if_it_is_not_qualified(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Among the ten teams with the best full scores, the team with the best half score wins.

    Only these ten teams qualify. The eleventh team, "rare", has the worst full score and the best
    half score. Two qualified teams share the victory.
    """
    # The full scores of team_0 to team_7 are 9.0, 8.9, …, 8.3.
    submissions = [scored(f"team_{number}", full=9 - number / 10, half=8) for number in range(8)]
    submissions += [scored("red", full=9, half=8.5), scored("green", full=8.9, half=8.5)]
    submissions.append(scored("rare", full=7, half=9.5))
    # A second submission of team_0. It does not count, because its full score is lower.
    submissions.append(scored("team_0", full=7.5, half=9.9))
    replay.print_season(submissions)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "qualified by NDCG@50 full: 10 of 11 teams"
    assert lines[-1] == "winner by NDCG@50 half: red, green (8.5000)"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("red/first.csv", "is named 'first', expected the Unix time of the submission, such as"),
        ("1591401600.csv", "holds no submissions, expected season/TEAM/UNIX.csv"),
    ],
)
def test_a_submission_without_a_time_or_a_team_is_refused(
    path: str, message: str, season: Path, write: Write
) -> None:
    write(f"season/{path}", RARE_FIRST)
    line = fails([SCRIPT, season, "--input_dir", season.parent / "answers"])
    assert message in line


def test_the_answers_of_all_phases_that_had_begun_are_needed(season: Path, write: Write) -> None:
    write("answers/debias_track_answer.csv", ANSWERS[: ANSWERS.index("9,9,")])
    submit(season, "red", LATE, RARE_FIRST)
    line = fails([SCRIPT, season, "--input_dir", season.parent / "answers"])
    assert line.endswith("holds the phases 0, 1, 2, 3, 4, 5, 6, 7, 8; phase 9 needs 7, 8, 9")
