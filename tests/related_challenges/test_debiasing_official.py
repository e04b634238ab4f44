"""Debiasing: the kit and the organisers' script agree on 200 submissions, faulty ones included.

The script is written anew here, from its description.
"""

import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from conftest import Write, fails, run, succeeds
from question_files import evaluation, scores_in

clicks = import_module("clicks")

FOLDER = "related_challenges/debiasing"
FINAL_STAGE = 1_591_315_201
# Times of submission, as Unix times. Two of them lie in phase 0, one in each of the phases 1 to 5,
# two in phase 6, and the last one in phase 9, the final stage. The second time is the limit between
# the phases 0 and 1, and still belongs to phase 0; the third time, a second later, belongs to
# phase 1.
TIMES = (
    0,
    1_586_534_399,
    1_586_534_400,
    1_587_139_200,
    1_587_744_000,
    1_588_348_800,
    1_588_953_600,
    1_589_558_400,
    1_591_315_200,
    FINAL_STAGE,
)
N_ITEMS = 250
N_USERS_OF_PHASE = 8
# Number of submissions that are given both to the kit and to the organisers' script.
N_CASES = 200


@dataclass(frozen=True)
class Answer:
    """The click of a test user that the user's recommendations should hold."""

    phase: int
    user: int
    item: int
    degree: int
    """How many clicks the item has in the training data."""


@dataclass(frozen=True)
class Gains:
    """The gains of one user in NDCG and hit rate."""

    ndcg: float
    hit_rate: float


# ---- The organisers' script ----------------------------------------------------------------------


def official_phase(time: int) -> int:
    """Return the phase at a Unix time. A phase has begun if the time is greater than its start.

    The phases 1 to 6 begin a week apart. The phases 7, 8 and 9, which are the final stage, begin
    together.
    """
    week = 7 * 24 * 3600
    starts = [1_586_534_399 + number * week for number in range(6)]
    starts += [1_591_315_200] * 3
    return sum(time > start for start in starts)


def official_rows(content: bytes) -> dict[int, list[int]] | None:
    """Return the items of each user, or None if the organisers' script finds a fault in a row.

    The script splits each line that is not blank at its commas, and reads each cell with `int`. A
    valid row holds a user who is in no other row, and 50 different items.
    """
    rows: dict[int, list[int]] = {}
    try:
        for line in io.TextIOWrapper(io.BytesIO(content), "utf-8"):
            if not line.strip():
                continue
            user, *items = map(int, line.strip().split(","))
            if user in rows or len(items) != 50 or len(set(items)) != 50:
                return None
            rows[user] = items
    # Text that is not UTF-8 and a cell that is no whole number raise this error.
    except ValueError:
        return None
    return rows


def official_sums(content: bytes, answers: list[Answer], time: int) -> list[float] | None:
    """Return the four sums of a submission, or None if the organisers' script refuses it.

    Each sum is a metric added over phases, in single precision. Before phase 7, all phases that
    have begun count. From phase 7 on, in the final stage, only the phases from 7 on count, and the
    script begins the sums with 7, as if each of the phases 0 to 6 had the score 1.
    """
    rows = official_rows(content)
    if rows is None:
        return None
    now = official_phase(time)
    is_final_stage = now >= 7
    first_phase = 7 if is_final_stage else 0
    start_of_sums = 7 if is_final_stage else 0
    sums = np.full(4, start_of_sums, np.float32)
    for phase in range(first_phase, now + 1):
        answers_of_phase = [answer for answer in answers if answer.phase == phase]
        if any(answer.user not in rows for answer in answers_of_phase):
            return None
        sums += official_metrics(rows, answers_of_phase)
    return [float(value) for value in sums]


def official_metrics(rows: dict[int, list[int]], answers: list[Answer]) -> np.ndarray:
    """Return NDCG full, NDCG half, hit rate full and hit rate half of one phase.

    `rows` holds the recommended items of each user. Each user has a gain in NDCG and a gain in hit
    rate (see `official_gains`). A metric named "full" is the mean of a gain over all users in
    `answers`. A metric named "half" is the mean over the users whose clicked item is rare. The
    degree of an item is its number of clicks. An item is rare if its degree is at most the median
    degree.
    """
    degrees = sorted(answer.degree for answer in answers)
    # If the number of degrees is even, the script takes the larger of the two middle degrees.
    median = degrees[len(degrees) // 2]
    rare_answers = [answer for answer in answers if answer.degree <= median]
    gains_full = [official_gains(rows[answer.user], answer.item) for answer in answers]
    gains_half = [official_gains(rows[answer.user], answer.item) for answer in rare_answers]
    metrics = [
        np.mean([gains.ndcg for gains in gains_full]),
        np.mean([gains.ndcg for gains in gains_half]),
        np.mean([gains.hit_rate for gains in gains_full]),
        np.mean([gains.hit_rate for gains in gains_half]),
    ]
    return np.array(metrics, np.float32)


def official_gains(items: list[int], answer: int) -> Gains:
    """Return the gains of a user who gets the recommendations `items` and clicks `answer`."""
    if answer not in items:
        return Gains(0.0, 0.0)
    return Gains(ndcg=1 / np.log2(items.index(answer) + 2), hit_rate=1.0)


# ---- Submissions ---------------------------------------------------------------------------------

# Each text is a new content of a cell that holds an id. In the text, {} stands for this id.
CELLS = (
    *("{}", " {}", "{}\t", "+{}", "000{}", "-{}", "{}00000000", "{}" + "0" * 30, "1_{}", "\xa0{}"),
    *("{}.0", '"{}"', "{}e0", "1e2", "\ufeff{}", "", " ", "x", "nan", "True", "0x1f", "{} 1"),
    *("_{}", "1__{}", "--{}", "{}\0", "9" * 5000, "١{}", "１{}", "²", "#{}", "{};1", "{}\udcff"),
    *("{}\n", "{}\r", "{}\x0c", "\x1c{}", "{}\u2028"),
)
Rows = list[list[str]]
# A function that changes the rows of a submission.
ChangeRows = Callable[[Rows, random.Random], object]
# A function that changes the text of a submission.
ChangeText = Callable[[str], str]


def change_cell(cell: str) -> ChangeRows:
    """Return a function that replaces a random cell."""

    def change(rows: Rows, rng: random.Random) -> None:
        row = rng.choice(rows)
        position = rng.randrange(len(row))
        row[position] = cell.format(row[position])

    return change


def repeat_item(rows: Rows, rng: random.Random) -> None:
    """Let an item occur twice in a row, the second time perhaps in another spelling."""
    row = rng.choice(rows)
    row[7] = rng.choice(("{}", "+{}", "0{}", " {}")).format(row[3])


CHANGES_OF_ROWS: tuple[ChangeRows, ...] = (
    lambda rows, rng: rows,
    repeat_item,
    lambda rows, rng: rng.choice(rows).pop(),
    lambda rows, rng: rng.choice(rows).append("999"),
    lambda rows, rng: rng.choice(rows).append(""),
    lambda rows, rng: rows.append(list(rng.choice(rows))),
    lambda rows, rng: rows.append([f"+{rows[0][0]}", *rows[1][1:]]),
    lambda rows, rng: rows.remove(rng.choice(rows)),
    lambda rows, rng: rows.remove(rng.choice(rows)),
    lambda rows, rng: rows.append(["-3", *rows[0][1:]]),
    lambda rows, rng: rows.append(["12345678", *rows[0][1:]]),
    lambda rows, rng: rng.shuffle(rows),
    lambda rows, rng: rows.insert(rng.randrange(len(rows)), [""]),
    lambda rows, rng: rows.insert(rng.randrange(len(rows)), [" \t"]),
    lambda rows, rng: rows.insert(0, ["# recommendations"]),
    lambda rows, rng: rows.insert(0, ["user_id", *(f"item_{n}" for n in range(1, 51))]),
)
CHANGES_OF_TEXT: tuple[ChangeText, ...] = (
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r"),
    lambda text: text.removesuffix("\n"),
    lambda text: text + "\n\n \n",
    lambda text: "\ufeff" + text,
    lambda text: "",
    lambda text: "\n \n",
    lambda text: text.replace(",", ";"),
    lambda text: text.replace(",", ", "),
    lambda text: text.replace("\n", ",\n"),
    lambda text: text.replace("\n", " \n"),
    lambda text: text.replace("\n", "\x0c"),
    lambda text: '"' + text.replace(",", '","').replace("\n", '"\n"'),
    lambda text: text + "\udcff\n",
    lambda text: text[:-90],
)


@dataclass(frozen=True)
class Case:
    """A submission, and the Unix time at which it is submitted."""

    content: bytes
    time: int


def make_answers() -> list[Answer]:
    """Return the answers of some test users of each phase."""
    rng = random.Random(0)
    answers = []
    for phase in range(10):
        for number in range(N_USERS_OF_PHASE):
            user = phase + 11 * number
            answers.append(Answer(phase, user, rng.randint(1, N_ITEMS), rng.randint(1, 9)))
    return answers


ANSWERS = make_answers()


def make_case(number: int) -> Case:
    """Make a valid submission, change it in one way, and return it with a time of submission.

    `number` decides the change and the time. A change replaces a cell (CELLS), changes the rows
    (CHANGES_OF_ROWS) or the text (CHANGES_OF_TEXT). Some changes make the submission invalid. The
    time is one of TIMES, and decides which phases of the challenge count.
    """
    rng = random.Random(number)
    rows = make_rows(rng)
    changes_of_rows = [*map(change_cell, CELLS), *CHANGES_OF_ROWS]
    # Successive numbers take successive changes; after the last change, the first one follows.
    position = number % (len(changes_of_rows) + len(CHANGES_OF_TEXT))
    if position < len(changes_of_rows):
        change_rows = changes_of_rows[position]
        change_rows(rows, rng)
        text = to_text(rows)
    else:
        change_text = CHANGES_OF_TEXT[position - len(changes_of_rows)]
        text = change_text(to_text(rows))
    # The character \udcff in a change becomes the byte 0xff, which is not valid UTF-8.
    content = text.encode("utf-8", "surrogateescape")
    return Case(content, rng.choice(TIMES))


def make_rows(rng: random.Random) -> Rows:
    """Return the rows of a valid submission: fifty random items for each test user."""
    rows = []
    for answer in ANSWERS:
        items = rng.sample(range(1, N_ITEMS + 1), 50)
        rows.append([str(answer.user), *map(str, items)])
    return rows


def to_text(rows: Rows) -> str:
    """Return the text of a submission: a line for each row, its cells separated by commas."""
    return "".join(",".join(row) + "\n" for row in rows)


def expected_sums(case: Case) -> list[float] | None:
    """Return the sums that the official script writes; None if it refuses the submission."""
    return official_sums(case.content, ANSWERS, case.time)


# ---- Tests ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(write: Write) -> Path:
    """Return a folder with the files of a challenge of ten phases.

    For each phase, a file names the test users, for whom items must be recommended. The file of
    answers holds the click that each of them makes.
    """
    for phase in range(10):
        write(f"underexpose_train_click-{phase}.csv", "10,1,0.5\n")
        users = [answer.user for answer in ANSWERS if answer.phase == phase]
        queries = "".join(f"{user},0.5\n" for user in users)
        write(f"underexpose_test_qtime-{phase}.csv", queries)
    lines = [f"{each.phase},{each.user},{each.item},{each.degree}\n" for each in ANSWERS]
    return write("debias_track_answer.csv", "".join(lines)).parent


def test_many_of_the_submissions_are_accepted_and_many_refused() -> None:
    expected = [expected_sums(make_case(number)) for number in range(N_CASES)]
    n_accepted = sum(sums is not None for sums in expected)
    assert 60 <= n_accepted <= 140
    assert len({tuple(sums) for sums in expected if sums is not None}) > 50


# The kit's sums may differ from the sums of the organisers' script by this number, because the
# script adds in single precision. In the final stage, it adds three phases to 7. All sums here stay
# below 8, so each addition errs by at most 2.4e-7, and all three by 7e-7. Before the final stage,
# up to seven phases are added, but all sums stay below 2. So each addition errs by at most 6e-8,
# and all seven by 4e-7.
TOLERANCE_OF_SUMS = 1e-6


@pytest.mark.parametrize("first_number", range(0, N_CASES, 20))
def test_the_kit_accepts_and_scores_as_the_official_script(first_number: int, folder: Path) -> None:
    """The check and the evaluation must agree with the organisers' script on twenty submissions.

    `expected_sums` computes what the script would return: four sums, or None if the script refuses
    the submission.
    """
    for number in range(first_number, first_number + 20):
        case = make_case(number)
        expected = expected_sums(case)
        path = folder / "submission.csv"
        path.write_bytes(case.content)
        flags = ["--time", case.time]

        done = run([f"{FOLDER}/check_submission.py", path, "--input_dir", folder, *flags])

        is_accepted = done.returncode == 0
        assert is_accepted == (expected is not None), (number, done.stdout + done.stderr)
        if expected is None:
            continue
        if case.time == FINAL_STAGE:
            # In the final stage, the organisers' script adds 7 to each of the four sums, as if each
            # of the seven earlier phases had the score 1. With this flag, the kit adds 7, too.
            flags.append("--official_sum")
        succeeds(evaluation("debiasing", folder, *flags))
        score, *sums = scores_in(folder).values()
        assert sums == pytest.approx(expected, abs=TOLERANCE_OF_SUMS, rel=0), number
        assert score == sums[0]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("55.0", "'55.0'"),
        ('"55"', "'\"55\"'"),
        ("1e2", "'1e2'"),
        ("\ufeff55", r"'\ufeff55'"),
        ("", "empty"),
        ("5\udcff", r"'5\udcff'"),
    ],
)
def test_a_cell_that_is_no_whole_number_is_named(
    cell: str, shown: str, folder: Path, write: Write
) -> None:
    items = ",".join(map(str, range(1, 50)))
    row = f"0,{items},{cell}\n".encode("utf-8", "surrogateescape")
    path = write("submission.csv", b"\n" + row)
    line = fails(evaluation("debiasing", folder, "--phase", "0"))
    expected = "expected a whole number such as 55, without .0, quotation marks or byte order mark"
    assert line == f"{path}: column 'item_50': row 2 is {shown}, {expected}"


@pytest.mark.parametrize("time", TIMES)
def test_the_schedule_is_the_official_one(time: int) -> None:
    assert clicks.phase_at(time) == official_phase(time)


@pytest.mark.parametrize(("time", "phase"), [(1_586_534_400, 1), (FINAL_STAGE, 9)])
def test_a_time_stands_for_its_phase(time: int, phase: int, folder: Path, write: Write) -> None:
    items = ",".join(map(str, range(1, 51)))
    write("submission.csv", "".join(f"{answer.user},{items}\n" for answer in ANSWERS))
    succeeds(evaluation("debiasing", folder, "--time", time))
    by_time = scores_in(folder)
    succeeds(evaluation("debiasing", folder, "--phase", phase))
    assert scores_in(folder) == by_time


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--time soon", "argument --time: soon is no Unix time, expected whole seconds such as"),
        ("--time 5 --phase 1", "argument --phase: not allowed with argument --time"),
        ("--phase 1 --final_stage", "argument --final_stage: not allowed with argument --phase"),
    ],
)
def test_a_wrong_time_or_two_phases_are_refused(flags: str, message: str, folder: Path) -> None:
    done = run(evaluation("debiasing", folder, *flags.split()))
    assert done.returncode == 2
    assert message in done.stderr
