"""Debiasing: replay a season of the challenge from the submissions of several teams.

Run:     python related_challenges/debiasing/replay.py SEASON
Reads:   SEASON/TEAM/UNIX.csv, the submissions of each team, named by the Unix time at which they
         came, such as 1591400000.csv; and data/test_input/debias_track_answer.csv with the answers
         of all phases that had begun by then

Submissions of the phases 0 to 6 are for development. The later ones are of the final stage, in
which 7 is added to each sum, as the organisers did.

- A team has three submissions a day in the phases 0 to 6, and one afterwards. Days are those of
  Beijing. A faulty submission counts too.
- A leaderboard shows each team's submission of highest NDCG@50 full.
- MAX(10, top 10 %) teams qualify, by NDCG@50 full in the final stage. Only teams with a score in
  the final stage count. The tenth part is rounded down, and ties with the last team qualify.
- The qualified team with the highest NDCG@50 half, that is of rare items, wins.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import cli
from common.errors import InputError, printable, quote
from common.stray_files import list_paths
from related_challenges import challenge

import clicks
import pandas as pd
from submission import read_recommendations, select_users
from tqdm import tqdm

# Before the final stage, a team may send at most this many submissions a day.
MOST_A_DAY = 3
# In the final stage, a team may send at most this many submissions a day.
MOST_A_DAY_IN_FINAL_STAGE = 1
# At least this many teams qualify, or all teams if there are fewer.
FEWEST_QUALIFIED = 10
# The schedule is in the time of Beijing, which is ahead of Unix time by this many seconds.
BEIJING_OFFSET = 8 * 3600
DAY = 24 * 3600


@dataclass(frozen=True)
class Submission:
    """A submission of a team."""

    team: str
    # Unix time.
    time: int
    path: Path

    @property
    def phase(self) -> int:
        """The phase of the challenge at the time of the submission."""
        return clicks.phase_at(self.time)

    @property
    def is_final(self) -> bool:
        """Whether the submission is of the final stage."""
        return self.phase in clicks.FINAL_PHASES


@dataclass(frozen=True)
class Scored:
    """A submission with its sums over the phases."""

    submission: Submission
    # Each is a sum of the scores NDCG@50 of the phases: `full` counts all users, and `half` only
    # the users whose item is rare. The challenge gave the scores these names.
    full: float
    half: float


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.parser(
        __doc__, __file__, input_dir=challenge.TEST_INPUT_FOLDER, ref_data=clicks.ANSWERS
    )
    help_text = "a folder that holds a folder of each team"
    parser.add_argument("season", type=Path, metavar="SEASON", help=help_text)
    return parser


def main() -> None:
    """Score all submissions, and print the leaderboards and the winner."""
    options = build_parser().parse_args()
    submissions = find_submissions(options.season)
    reference = options.input_dir / options.ref_data
    answers = clicks.read_answers(reference)
    # The number of submissions of each team on each day of each stage. `day_key` returns the keys.
    n_by_day: Counter[tuple[str, int, bool]] = Counter()
    scored = []
    refused = []
    for submission in tqdm(submissions, "submissions", disable=None):
        day = day_key(submission)
        n_by_day[day] += 1
        limit = MOST_A_DAY_IN_FINAL_STAGE if submission.is_final else MOST_A_DAY
        if n_by_day[day] > limit:
            refused.append(f"{submission.path}: comes after {limit} of the same day")
            continue
        # The scores of a submission are sums over some phases: those that count at its time. Take
        # the answers of these phases.
        counted_answers = clicks.answers_that_count(submission.phase, answers, reference)
        try:
            scored.append(score_submission(submission, counted_answers))
        except InputError as error:
            refused.append(str(error))
    print(f"{len(scored)} of {len(submissions)} submissions scored")
    for reason in refused:
        print(f"refused: {printable(reason)}")
    print_season(scored)


def find_submissions(season: Path) -> list[Submission]:
    """Return the submissions of all teams in order of time.

    Raises
    ------
    InputError
        If `season` holds no submission, or if the name of a submission is not a Unix time.
    """
    submissions = []
    for path in list_paths(season, "*/*.csv"):
        if not (path.stem.isascii() and path.stem.isdecimal()):
            raise InputError(
                f"{path}: is named {quote(path.stem)}, expected the Unix time of the submission, "
                f"such as {clicks.PHASE_STARTS[-1]}.csv"
            )
        submissions.append(Submission(path.parent.name, int(path.stem), path))
    if not submissions:
        raise InputError(f"{season}: holds no submissions, expected {season.name}/TEAM/UNIX.csv")
    return sorted(submissions, key=lambda submission: (submission.time, submission.team))


def day_key(submission: Submission) -> tuple[str, int, bool]:
    """Return the key by which submissions are counted: the team, the day in Beijing, the stage."""
    day = (submission.time + BEIJING_OFFSET) // DAY
    return submission.team, day, submission.is_final


def score_submission(submission: Submission, answers: pd.DataFrame) -> Scored:
    """Score a submission; raise `InputError` if it is faulty."""
    recommended = read_recommendations(submission.path)
    items = select_users(submission.path, recommended, answers["user_id"].to_numpy())
    # In the final stage, the organisers' script added 1 to each sum for each earlier phase.
    added = clicks.N_EARLIER_PHASES if submission.is_final else 0
    # The sums are in the order of `clicks.METRICS`: NDCG@50 over all users, NDCG@50 over the users
    # whose item is rare, and two hit rates, which do not count here.
    full, half, *_ = clicks.sum_over_phases(clicks.score(items, answers)) + added
    return Scored(submission, full, half)


def rank_teams(scored: Sequence[Scored]) -> list[Scored]:
    """Return the best submission of each team by full score, the best team first.

    If two submissions have the same score, the earlier one counts.
    """
    ordered = sorted(scored, key=lambda entry: (-entry.full, entry.submission.time))
    best_of_team: dict[str, Scored] = {}
    for entry in ordered:
        # `setdefault` keeps the team's first entry, which is its best.
        best_of_team.setdefault(entry.submission.team, entry)
    return list(best_of_team.values())


def qualify(leaderboard: Sequence[Scored]) -> list[Scored]:
    """Return the qualified teams of the final leaderboard, which has the best full score first.

    Teams with the same full score as the last qualified team qualify too.
    """
    n_qualified = max(FEWEST_QUALIFIED, len(leaderboard) // 10)
    if len(leaderboard) <= n_qualified:
        return list(leaderboard)
    lowest = leaderboard[n_qualified - 1].full
    return [entry for entry in leaderboard if entry.full >= lowest]


def print_season(scored: Sequence[Scored]) -> None:
    """Print both leaderboards, how many teams qualify, and who wins.

    A submission has two scores: `full` counts all users, `half` only users whose item is rare.
    Teams qualify by `full`, and the best `half` among them wins.
    """
    early = rank_teams([entry for entry in scored if not entry.submission.is_final])
    final = rank_teams([entry for entry in scored if entry.submission.is_final])
    print_leaderboard("phases 0 to 6", early)
    print_leaderboard("phases 7 to 9", final)
    if not final:
        print("\nno winner: no team has a score in the final stage")
        return
    # The winner is chosen among the qualified teams. Several teams win if their scores are equal.
    qualified = qualify(final)
    highest = max(entry.half for entry in qualified)
    best = [entry for entry in qualified if entry.half == highest]
    winners = [printable(entry.submission.team) for entry in best]
    print(f"\nqualified by NDCG@50 full: {len(qualified)} of {len(final)} teams")
    print(f"winner by NDCG@50 half: {', '.join(winners)} ({highest:.4f})")


def print_leaderboard(title: str, leaderboard: Sequence[Scored]) -> None:
    """Print the rank, the team, both scores and the time of each team's best submission."""
    print()
    rows = [[title, "rank", "full", "half", "time"]]
    for rank, entry in enumerate(leaderboard, start=1):
        team = printable(entry.submission.team)
        scores = [f"{entry.full:.4f}", f"{entry.half:.4f}"]
        rows.append([team, str(rank), *scores, str(entry.submission.time)])
    width = max(len(row[0]) for row in rows)
    print(*challenge.align_columns(rows, first_width=width, other_width=10), sep="\n")


if __name__ == "__main__":
    cli.run(main)
