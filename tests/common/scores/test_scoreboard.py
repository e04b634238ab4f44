"""The scoreboard: compares only what can be compared, in tables that fit a terminal."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from recorded import LENIENT, RANDOM, RESULT, STRICT, seeded

from common.scores import scoreboard, scoreboard_page

Run = Callable[..., Any]


def test_models_are_ranked_by_their_mean_over_seeds() -> None:
    results = [seeded("idea", seed, score) for seed, score in enumerate((0.71, 0.69, 0.73))]
    (table,) = scoreboard.make_tables([RESULT, *results])
    best, other = table.rows
    assert (best.name, best.n_seeds) == ("idea --n_dimensions 8", 3)
    assert best.score == pytest.approx(0.71)
    assert best.deviation == pytest.approx(0.02)
    assert best.seconds == 2.0
    assert (other.name, other.score, other.deviation) == ("majority", 0.6, None)


def test_the_last_score_of_a_seed_counts() -> None:
    results = [
        seeded("idea", 0, 0.7, "2026-01-02T10:00:00+00:00"),
        seeded("idea", 0, 0.9, "2026-01-01T10:00:00+00:00"),
    ]
    (table,) = scoreboard.make_tables(results)
    assert [(row.score, row.n_seeds, row.day) for row in table.rows] == [(0.7, 1, "2026-01-02")]


def test_scores_of_different_code_are_never_averaged() -> None:
    """Three runs of an entry that was edited in between are three entries, not three seeds."""
    results = [
        replace(seeded("idea", seed, score, f"2026-01-0{seed + 1}T10:00:00+00:00"), code=code)
        for seed, score, code in ((0, 0.9, "aa"), (1, 0.7, "bb"), (2, 0.6, "bb"))
    ]
    (table,) = scoreboard.make_tables(results)
    assert [(row.score, row.n_seeds) for row in table.rows] == [(pytest.approx(0.65), 2)]
    assert [(row.score, row.n_seeds) for row in table.former] == [(0.9, 1)]
    text = scoreboard.as_text([table])
    assert "0.9000" not in text
    assert "1 scores of earlier code or on earlier answers: see the page." in text
    page = scoreboard_page.as_page([table])
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "Scores of earlier code of these models" in folded
    assert "0.9000" in folded and "0.6500" not in folded


def test_the_deviation_of_a_cross_validation_is_that_of_its_folds() -> None:
    parts = {"fold 1": 0.6, "fold 2": 0.7, "fold 3": 0.8}
    changes: dict[str, Any] = {"phase": "cross-validation", "rules": "3 folds, seed 0"}
    lines = [
        replace(RESULT, score=0.7, parts=parts, **changes),
        replace(RESULT, model="cut", parts={"fold 1": 0.6, "fold 2": None}, **changes),
        replace(RESULT, **{**changes, "rules": "3 folds, seed 1"}),
    ]
    first, second = scoreboard.make_tables([RESULT, *lines])[1:]
    assert [(row.score, row.deviation, row.n_seeds) for row in first.rows] == [
        (0.7, pytest.approx(0.1), 1),
        (0.6, None, 1),
    ]
    assert len(second.rows) == 1
    assert first.kind == "accuracy, cross-validation, 3 folds, seed 0"


def test_a_blend_goes_by_the_names_of_its_files() -> None:
    made_by = "python -m common.blend data/test_output/one.parquet two.parquet --local"
    (table,) = scoreboard.make_tables([replace(RESULT, model="blend", made_by=made_by)])
    assert [row.name for row in table.rows] == ["blend one two"]


def test_no_seed_is_seed_0() -> None:
    unnamed = replace(
        seeded("idea", 0, 0.8), seed=None, made_by="python task_1/idea.py --n_dimensions 8"
    )
    (table,) = scoreboard.make_tables([seeded("idea", 0, 0.7), unnamed])
    assert [(row.score, row.n_seeds) for row in table.rows] == [(0.8, 1)]


def test_what_differs_is_never_in_one_table() -> None:
    others = [
        replace(RESULT, task=2),
        replace(RESULT, phase="private"),
        replace(RESULT, simulated=False),
        replace(RESULT, task=4, rules=STRICT),
        replace(RESULT, task=4, rules=LENIENT),
    ]
    tables = scoreboard.make_tables([RESULT, *others])
    assert len(tables) == 6
    assert all(table.is_current for table in tables)
    assert [table.simulated for table in tables] == [False] + [True] * 5


def test_each_related_challenge_has_tables_of_its_own() -> None:
    changes: dict[str, Any] = {"task": "science_exam", "phase": "", "metric_name": "MAP@3"}
    exam = replace(RESULT, **changes)
    lines = [
        exam,
        replace(exam, simulated=False),
        replace(exam, task="debiasing", metric_name="NDCG@50, sum", score=1.1175),
        replace(exam, rules="5 folds"),
        RESULT,
    ]
    tables = scoreboard.make_tables(lines)
    assert [f"{table.title}: {table.kind}, {table.answers}" for table in tables] == [
        "Science exam: MAP@3, real answers",
        "Task 1: right or wrong: accuracy, local split, simulated answers",
        "Debiasing: NDCG@50, sum, simulated answers",
        "Science exam: MAP@3, simulated answers",
        "Science exam: MAP@3, 5 folds, simulated answers",
    ]
    assert "majority  1.1175" in scoreboard.as_text(tables)
    page = scoreboard_page.as_page(tables)
    real, simulated = page.split("<h2>Simulated answers</h2>")
    assert real.count("<section>") == 1 and simulated.count("<section>") == 4
    assert "NDCG@50, sum" in simulated and "1.1175" in simulated


def test_scores_on_earlier_answers_are_set_apart() -> None:
    later = replace(RESULT, data="b" * 12, score=0.5, time="2026-01-02T10:00:00+00:00")
    current, earlier = scoreboard.make_tables([later, RESULT])
    assert (current.data, current.is_current) == ("b" * 12, True)
    assert (earlier.data, earlier.is_current) == ("a" * 12, False)
    text = scoreboard.as_text([current, earlier])
    assert "0.5000" in text
    assert "0.6000" not in text
    assert "1 scores of earlier code or on earlier answers" in text
    page = scoreboard_page.as_page([current, earlier])
    assert page.index("<details>") < page.index("0.6000") < page.index("</details>")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"task": 1, "phase": "private"}, ["winner of 2020"]),
        ({"task": 1, "phase": "public"}, []),
        ({"task": 1, "phase": "local"}, []),
        ({"task": 4, "phase": "private", "rules": STRICT}, ["most popular, 2020"]),
        (
            {"task": 4, "phase": "private", "rules": LENIENT},
            ["winner of 2020", "most popular, 2020"],
        ),
    ],
)
def test_figures_of_2020_stand_beside_real_answers_of_their_phase_alone(
    changes: dict[str, Any], expected: list[str]
) -> None:
    for simulated in (False, True):
        (table,) = scoreboard.make_tables([replace(RESULT, simulated=simulated, **changes)])
        names = [row.name for row in table.rows if row.is_published]
        assert names == ([] if simulated else expected)
    assert "winner of 2020 (published)" not in scoreboard.as_text([table])


def test_the_tables_fit_a_terminal_with_every_name_whole() -> None:
    name = "a_model_with_a_very_long_name_indeed_that_goes_on_and_on"
    results = [
        *(
            replace(seeded(name, seed, 0.6), seconds=12345.6, score=0.6 + seed / 9)
            for seed in (1, 2)
        ),
        replace(RESULT, task=3, phase="public", parts=RANDOM),
        replace(RESULT, task=4, rules=STRICT),
    ]
    text = scoreboard.as_text(scoreboard.make_tables(results))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    first = next(number for number, line in enumerate(lines) if "a_model" in line)
    shown = "".join(lines[first : first + 3]).replace(" ", "")
    row = f"{name} --n_dimensions 8".replace(" ", "")
    assert all(part in shown for part in (name[:25], name[40:], "--n_dimensions8", "0.7667±0.0786"))
    assert len(shown) == len(row) + len("0.7667±0.0786212345.62026-01-01")
    assert "unobserved = -1, simulated answers" in text
    # Columns of all tables are aligned with each other.
    assert len({line.index("score") for line in lines if line.startswith("  model")}) == 1


def test_no_scores_at_all(tmp_path: Path) -> None:
    assert "No scores yet" in scoreboard_page.as_page(scoreboard.make_tables([]))
    assert scoreboard.as_text([]) == ""


def test_the_command(run: Run, fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert "file not found; `python task_1/local_evaluation.py`" in fails(
        ["-m", "common.scoreboard", "--results", path]
    )
    path.write_text(json.dumps(asdict(RESULT)) + "\n" + '{"task": 1, "sc')
    done = run(["-m", "common.scoreboard", "--results", path])
    assert done.returncode == 0, done.stderr
    assert "Task 1: right or wrong: accuracy, local split, simulated answers" in done.stdout
    assert "majority  0.6000" in done.stdout
    assert "ignored 1 invalid lines" in done.stderr
    assert (tmp_path / "scoreboard.html").read_text().startswith("<!doctype html>")
