"""Simulated answers are recognised in files that are saved anew, sorted, cut or mixed."""

from collections.abc import Callable
from pathlib import Path

from common import row_sketches

import numpy as np
import pandas as pd
import pytest

N_STUDENTS = 1000
N_QUESTIONS = 120
# A third of all pairs are answered, as in tasks 3 and 4.
N_ANSWERS = N_STUDENTS * N_QUESTIONS // 3
Save = Callable[[pd.DataFrame, Path], None]
# The kit keeps a sketch of each simulated file, to recognise rows of this file in other files. The
# key is a column of outcomes, such as IsCorrect. The value holds hashes of rows, as text.
Sketch = dict[str, str]


def draw_answers(seed: int) -> pd.DataFrame:
    """Return random answers; the seed decides which student answers which question, and how.

    The numbers of students, questions and answers do not depend on the seed.
    """
    rng = np.random.default_rng(seed)
    # Number the pairs of a student and a question: the first student has the pairs 0 to 119, the
    # second student the pairs 120 to 239, and so on.
    pair = rng.permutation(N_STUDENTS * N_QUESTIONS)[:N_ANSWERS]
    student, question = np.divmod(pair, N_QUESTIONS)
    correct_option = rng.integers(1, 5, N_ANSWERS)
    knows_answer = rng.random(N_ANSWERS) < 0.5
    guess = rng.integers(1, 5, N_ANSWERS)
    chosen = np.where(knows_answer, correct_option, guess)
    return pd.DataFrame(
        {
            "QuestionId": question,
            "UserId": student,
            "AnswerId": np.arange(N_ANSWERS),
            "IsCorrect": (chosen == correct_option).astype(int),
            "CorrectAnswer": correct_option,
            "AnswerValue": chosen,
        }
    )


ANSWERS = draw_answers(0)


def edit(answers: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return a copy of the answers in which the first rows, a share of all, have other outcomes."""
    edited = answers.copy()
    rows = edited.index[: int(share * len(edited))]
    edited.loc[rows, "IsCorrect"] ^= 1
    edited.loc[rows, "AnswerValue"] = 5 - edited.loc[rows, "AnswerValue"]
    return edited


@pytest.fixture(scope="module")
def sketches(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Sketch]]:
    """Write the three files of one simulation, and return their sketches as `is_known` takes them.

    A sketch holds hashes of the rows of a file. By the sketches, `is_known` recognises rows of
    these files in another file. The list has a dict for each simulation, here only one. The dict
    holds the sketch of each file, by file name.
    """
    folder = tmp_path_factory.mktemp("simulated")
    answers_by_file = {
        "train.csv": ANSWERS[:30_000],
        "public.csv": ANSWERS[30_000:35_000],
        "private.csv": ANSWERS[35_000:],
    }
    sketch_by_file = {}
    for name, answers in answers_by_file.items():
        answers.to_csv(folder / name, index=False)
        sketch_by_file[name] = row_sketches.sketch(folder / name)
    return [sketch_by_file]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(ANSWERS[:30_000], True, id="the training answers"),
        pytest.param(ANSWERS[:500], True, id="the first of them"),
        pytest.param(ANSWERS[:30_000].sample(500, random_state=0), True, id="some of them"),
        pytest.param(ANSWERS[:30_000].sort_values("UserId"), True, id="in another order"),
        pytest.param(ANSWERS[:9000][["UserId", "IsCorrect", "QuestionId"]], True, id="task 1"),
        pytest.param(ANSWERS[:9000][["QuestionId", "UserId", "AnswerValue"]], True, id="task 2"),
        pytest.param(ANSWERS[30_000:], True, id="two files joined"),
        pytest.param(ANSWERS.sample(2000, random_state=0), True, id="rows of all files"),
        pytest.param(edit(ANSWERS[:9000], 0.05), True, id="a twentieth edited"),
        pytest.param(edit(ANSWERS[:9000], 0.5), False, id="half of them edited"),
        pytest.param(draw_answers(1), False, id="another simulation"),
        pytest.param(draw_answers(2)[:500], False, id="some of another simulation"),
        pytest.param(ANSWERS[:9000].assign(UserId=ANSWERS["UserId"] + 7), False, id="renumbered"),
        pytest.param(ANSWERS[["QuestionId", "UserId", "AnswerId"]], False, id="without outcomes"),
        pytest.param(ANSWERS[["AnswerId", "IsCorrect"]], False, id="without pairs"),
    ],
)
def test_answers_are_recognised_by_their_rows(
    sketches: list[dict[str, Sketch]],
    tmp_path: Path,
    answers: pd.DataFrame,
    expected: bool,
) -> None:
    path = tmp_path / "mine.csv"
    answers.to_csv(path, index=False)
    assert row_sketches.is_known(path, sketches) == expected


@pytest.mark.parametrize("rows", [500, 30_000], ids=["small", "large"])
@pytest.mark.parametrize(
    "save",
    [
        pytest.param(lambda table, path: table.to_csv(path), id="with an index"),
        pytest.param(
            lambda table, path: table.to_csv(path, lineterminator="\r\n"), id="line ends of Windows"
        ),
        pytest.param(lambda table, path: table.to_csv(path, lineterminator="\r"), id="of old Macs"),
        pytest.param(
            lambda table, path: table.to_csv(path, encoding="utf-8-sig"), id="a byte order mark"
        ),
        pytest.param(lambda table, path: table.to_csv(path, quoting=1), id="in quotation marks"),
        pytest.param(lambda table, path: table.astype(float).to_csv(path), id="with decimals"),
    ],
)
def test_the_way_of_saving_does_not_matter(
    sketches: list[dict[str, Sketch]], tmp_path: Path, rows: int, save: Save
) -> None:
    save(ANSWERS[:rows], tmp_path / "mine.csv")
    assert row_sketches.is_known(tmp_path / "mine.csv", sketches)


def test_seven_rows_are_too_few_and_eight_suffice(
    sketches: list[dict[str, Sketch]], tmp_path: Path
) -> None:
    """A file with eight rows of a simulated file is recognised; a file with seven rows is not.

    The rows are taken from public.csv. A sketch of a large file keeps the hashes of only some rows,
    but the sketch of public.csv keeps the hashes of all.
    """
    path = tmp_path / "mine.csv"
    ANSWERS[30_000:30_007].to_csv(path, index=False)
    assert not row_sketches.is_known(path, sketches)
    ANSWERS[30_000:30_008].to_csv(path, index=False)
    assert row_sketches.is_known(path, sketches)


PANEL = pd.DataFrame(
    {
        "": range(6),
        "left": [5, 9, 2, 14, 8, 3],
        "right": [7, 1, 6, 4, 12, 11],
        "Ann": [1, 2, 2, 1, 1, 2],
        "Ben": [1, 2, 1, None, 1, 2],
        "Cleo": [2, 2, 1, 1, 1, 1],
    }
)


@pytest.mark.parametrize(
    ("panel", "expected"),
    [
        pytest.param(PANEL, True, id="all of it"),
        pytest.param(PANEL[1:], True, id="without a pair"),
        pytest.param(PANEL[["left", "right", "Ben", "Ann"]], True, id="without an expert"),
        pytest.param(PANEL.sort_values("left"), True, id="sorted"),
        pytest.param(PANEL.assign(left=PANEL["left"] + 20), False, id="other pairs"),
        pytest.param(
            PANEL.assign(Ann=3 - PANEL["Ann"], Ben=3 - PANEL["Ben"]), False, id="other judgements"
        ),
        pytest.param(
            PANEL.rename(columns={"Ann": "Dan", "Ben": "Eve", "Cleo": "Fay"}),
            False,
            id="other experts",
        ),
    ],
)
def test_a_panel_is_recognised_by_its_judgements(
    tmp_path: Path, panel: pd.DataFrame, expected: bool
) -> None:
    PANEL.to_csv(tmp_path / "simulated.csv", index=False)
    sketch = row_sketches.sketch(tmp_path / "simulated.csv")
    panel.to_csv(tmp_path / "mine.csv", index=False)
    assert row_sketches.is_known(tmp_path / "mine.csv", [{"panel.csv": sketch}]) == expected


@pytest.mark.parametrize(
    "damaged",
    [
        {"a.csv": {"IsCorrect": "no base64"}},
        {"a.csv": {"IsCorrect": "AAAA"}},
        {"a.csv": {"IsCorrect": 7}},
        {"a.csv": "IsCorrect"},
        ["a.csv"],
        7,
    ],
)
def test_a_damaged_sketch_recognises_nothing(tmp_path: Path, damaged: object) -> None:
    ANSWERS[:100].to_csv(tmp_path / "mine.csv", index=False)
    assert not row_sketches.is_known(tmp_path / "mine.csv", [damaged])


def test_a_faulty_file_is_passed_over(sketches: list[dict[str, Sketch]], tmp_path: Path) -> None:
    """`is_known` reports no faults in a file: the script that needs the answers reports them."""
    for content in (b"", b"\0\xff", b"UserId,QuestionId,IsCorrect\n", b"UserId,QuestionId\n1"):
        (tmp_path / "mine.csv").write_bytes(content)
        assert not row_sketches.is_known(tmp_path / "mine.csv", sketches)
