"""The scoreboard: compares only what can be compared, in tables that fit a terminal and a page."""

import json
import re
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from drawn import draw
from page_reading import Page, read_page
from recorded import LENIENT, RANDOM, RESULT, STRICT, seeded

from common.scores import scoreboard, scoreboard_page
from common.scores.results import Result, read_results
from common.scores.scoreboard import Row, Table

DAYS = [f"2026-01-0{day}T10:00:00+00:00" for day in range(1, 5)]
FOLDS: dict[str, Any] = {"phase": "cross-validation", "rules": "3 folds, seed 0"}


def tables_of(*results: Result) -> list[Table]:
    return scoreboard.make_tables(results)


def text_of(*results: Result) -> str:
    return scoreboard.as_text(tables_of(*results))


def page_of(*results: Result) -> Page:
    return read_page(scoreboard_page.as_page(tables_of(*results)))


def rows_of(*results: Result) -> tuple[Row, ...]:
    (table,) = tables_of(*results)
    return table.rows


def test_models_are_ranked_by_their_mean_over_seeds() -> None:
    scores = ((1, 0.71, DAYS[1]), (2, 0.69, DAYS[3]), (5, 0.73, DAYS[2]))
    best, other = rows_of(RESULT, *(seeded("idea", *score) for score in scores))
    assert (best.name, best.n_seeds, best.day) == ("idea --n_dimensions 8", 3, "2026-01-04")
    assert best.score == pytest.approx(0.71)
    assert best.deviation == pytest.approx(0.02)
    # The median: the three took 2, 3 and 6 seconds.
    assert best.seconds == 3.0
    assert (other.name, other.score, other.deviation) == ("majority", 0.6, None)


def test_the_last_score_of_a_seed_counts() -> None:
    """No seed is seed 0."""
    unnamed = replace(
        seeded("idea", 0, 0.8, DAYS[2]), seed=None, made_by="python task_1/idea.py --n_dimensions 8"
    )
    early, late = seeded("idea", 0, 0.9, DAYS[0]), seeded("idea", 0, 0.7, DAYS[1])
    for results, expected in (((late, early), (0.7, 1)), ((unnamed, early, late), (0.8, 1))):
        assert [(row.score, row.n_seeds) for row in rows_of(*results)] == [expected]


def test_scores_of_different_code_are_never_averaged() -> None:
    """Three runs of an entry that was edited in between are three entries, not three seeds."""
    results = [
        replace(seeded("idea", seed, score, DAYS[seed]), code=code)
        for seed, score, code in ((0, 0.9, "aa"), (1, 0.7, "bb"), (2, 0.6, "bb"))
    ]
    (table,) = tables_of(*results)
    assert [(row.score, row.n_seeds) for row in table.rows] == [(pytest.approx(0.65), 2)]
    assert [(row.score, row.n_seeds) for row in table.former] == [(0.9, 1)]
    text = text_of(*results)
    assert "0.9000" not in text
    assert "1 scores of earlier code or on earlier answers: see the page." in text
    folded = page_of(*results).folded
    assert "Scores of earlier code of these models" in folded
    assert "0.9000" in folded and "0.6500" not in folded


def test_scores_on_earlier_answers_are_set_apart() -> None:
    later = replace(RESULT, data="b" * 12, score=0.5, time=DAYS[1])
    found = [(table.data, table.is_current) for table in tables_of(later, RESULT)]
    assert found == [("b" * 12, True), ("a" * 12, False)]
    text = text_of(later, RESULT)
    assert "0.5000" in text and "0.6000" not in text
    assert "1 scores of earlier code or on earlier answers" in text
    folded = page_of(later, RESULT).folded
    assert "Scores on earlier answers, not comparable" in folded
    assert "0.6000" in folded and "0.5000" not in folded


def test_the_deviation_of_a_cross_validation_is_that_of_its_folds() -> None:
    parts = {"fold 1": 0.6, "fold 2": 0.7, "fold 3": 0.8}
    first, second = tables_of(
        replace(RESULT, score=0.7, parts=parts, **FOLDS),
        replace(RESULT, model="cut", parts={"fold 1": 0.6, "fold 2": None}, **FOLDS),
        replace(RESULT, **{**FOLDS, "rules": "3 folds, seed 1"}),
    )
    found = [(row.score, row.deviation, row.n_seeds) for row in first.rows]
    assert found == [(0.7, pytest.approx(0.1), 1), (0.6, None, 1)]
    assert len(second.rows) == 1
    assert first.kind == "accuracy, cross-validation, 3 folds, seed 0"


def test_a_blend_goes_by_the_names_of_its_files() -> None:
    made_by = "python -m common.blend data/test_output/one.parquet two.parquet --local"
    (row,) = rows_of(replace(RESULT, model="blend", made_by=made_by))
    assert row.name == "blend one two"


def test_what_differs_is_never_in_one_table() -> None:
    """Real answers come first, then tasks before related challenges, then local before phases."""
    exam: dict[str, Any] = {"task": "science_exam", "phase": "", "metric_name": "MAP@3"}
    results = [
        replace(RESULT, task="debiasing", phase="", metric_name="NDCG@50, sum", score=1.1175),
        *(replace(RESULT, **exam, **more) for more in ({"rules": "5 folds"}, {"simulated": False})),
        *(replace(RESULT, task=4, rules=rules) for rules in (STRICT, LENIENT)),
        *(replace(RESULT, phase=phase) for phase in ("private", "public")),
        *(replace(RESULT, **exam), replace(RESULT, task=2), replace(RESULT, **FOLDS)),
        *(RESULT, replace(RESULT, simulated=False)),
    ]
    tables = tables_of(*results)
    simulated = [f"{table.title}: {table.kind}" for table in tables if table.simulated]
    one, four = "Task 1: right or wrong: accuracy", "Task 4: ten questions for each student"
    assert [table.title for table in tables[:2]] == ["Task 1: right or wrong", "Science exam"]
    assert simulated == [
        f"{one}, local split",
        f"{one}, cross-validation, 3 folds, seed 0",
        f"{one}, public test",
        f"{one}, private test",
        "Task 2: the option chosen: accuracy, local split",
        f"{four}: accuracy after ten questions, local split, {LENIENT}",
        f"{four}: accuracy after ten questions, local split, {STRICT}",
        "Debiasing: NDCG@50, sum",
        "Science exam: MAP@3",
        "Science exam: MAP@3, 5 folds",
    ]
    assert len(tables) == 12 and all(table.is_current for table in tables)
    assert "majority  1.1175" in scoreboard.as_text(tables)
    page = page_of(*results)
    titles = [table.title for table in tables]
    assert page.headings == [
        *("Scoreboard", "Real answers", *titles[:2]),
        *("Simulated answers", *titles[2:], "Scores of 2020"),
    ]
    assert page.table("Debiasing").rows[0][:2] == ["majority", "1.1175"]


def test_figures_of_2020_stand_beside_real_answers_of_their_phase_alone() -> None:
    for task, phase, rules, expected in (
        (1, "private", "", ["winner of 2020"]),
        (1, "public", "", []),
        (4, "private", STRICT, ["most popular, 2020"]),
        (4, "private", LENIENT, ["winner of 2020", "most popular, 2020"]),
    ):
        result = replace(RESULT, task=task, phase=phase, rules=rules)
        for simulated in (False, True):
            rows = rows_of(replace(result, simulated=simulated))
            names = [row.name for row in rows if row.is_published]
            assert names == ([] if simulated else expected)


def test_the_tables_fit_a_terminal_with_every_name_whole() -> None:
    name = "a_model_with_a_very_long_name_indeed_that_goes_on_and_on"
    text = text_of(
        *(replace(seeded(name, n, 0.6 + n / 9), seconds=12345.6) for n in (1, 2)),
        replace(RESULT, task=3, phase="public", parts=RANDOM),
        replace(RESULT, task=4, rules=STRICT),
    )
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


def test_the_command(run: Run, tmp_path: Path) -> None:
    command = ["-m", "common.scoreboard", "--results", tmp_path / "results.jsonl"]
    missing = run(command)
    assert missing.returncode == 2
    assert "file not found; `python task_1/local_evaluation.py`" in missing.stderr
    (tmp_path / "results.jsonl").write_text(json.dumps(asdict(RESULT)) + "\n" + '{"task": 1, "sc')
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert "Task 1: right or wrong: accuracy, local split, simulated answers" in done.stdout
    assert "majority  0.6000" in done.stdout
    assert "ignored 1 invalid lines" in done.stderr
    page = read_page((tmp_path / "scoreboard.html").read_text())
    assert page.table("Task 1").row("majority")[1] == "0.6000"


def test_the_page_shows_every_score_once_in_a_table_and_for_each_width_in_a_chart() -> None:
    private: dict[str, Any] = {"phase": "private", "simulated": False}
    results = [replace(seeded("idea", seed, 0.7 + seed / 50), **private) for seed in (0, 1)]
    results += [replace(RESULT, **private), replace(RESULT, task=2, model="<script>", made_by="")]
    html = scoreboard_page.as_page(tables_of(*results))
    assert html == scoreboard_page.as_page(tables_of(*results[::-1]))
    assert [row[:4] for row in read_page(html).table("Task 1").rows] == [
        ["winner of 2020 (published)", "0.7729", "", ""],
        ["idea --n_dimensions 8", "0.7100 ± 0.0141", "2", "1.5"],
        ["majority", "0.6000", "1", "2.0"],
    ]
    charts = [draw(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert len(charts) == 4
    for chart in charts[:2]:
        drawn = ["winner of 2020: 0.7729", "idea --n_dimensions 8: 0.7100", "majority: 0.6000"]
        assert list(chart.styles) == drawn
        # A hollow diamond, the best model in colour, the others not.
        styles = chart.styles.values()
        assert ["--accent" in style for style in styles] == [False, True, False]
        assert ["fill-opacity: 0;" in style for style in styles] == [True, False, False]
        chart.check_texts("accuracy")


def test_every_text_of_the_record_is_escaped(tmp_path: Path) -> None:
    """Whatever a name holds, it appears on the page as text, in tables and in charts."""
    hostile = "<i>\"'&x</i> $\\frac{$"
    texts = dict.fromkeys(("rules", "model", "command", "submission", "revision"), hostile)
    record = {**asdict(RESULT), **texts, "parts": {hostile: 0.5}}
    record["made_by"] = f"python a.py {shlex.quote(hostile)}"
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(record))
    page = page_of(*read_results(path)[0])
    assert page.table("Task 1").rows[0][0] == f"{hostile} {hostile}"
    assert [chart.titles for chart in page.charts] == [[f"{hostile} {hostile}: 0.6000"]] * 2


def test_the_chart_of_a_wide_screen_fills_the_page_and_the_phones_fits_it() -> None:
    html = scoreboard_page.as_page(tables_of(RESULT))
    found = re.findall(r'<div class="(\S+)"><svg class="chart" viewBox="0 0 (\S+) ', html)
    # The text of a page is 46rem wide: 736 pixels, 3 / 4 of a point each.
    assert "max-width: 46rem" in html
    assert found == [("phone-wide", "340"), ("page-wide", "552")]
    # Exactly one of them is shown.
    (wider,) = re.findall(r"@media \(min-width: 48rem\) {(.*)}", html)
    assert ".page-wide { display: none; }" in html.replace(wider, "")
    assert ".phone-wide { display: none; }" in wider
    assert ".page-wide { display: block; }" in wider


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([RESULT], ""),
        ([RESULT, seeded("idea", 0, 0.7)], "In colour: the best model."),
        (
            [replace(seeded("a", n, 0.7), phase="private", simulated=False) for n in (0, 1)],
            "In colour: the best model. Line: one standard deviation over the seeds to either "
            "side. Diamond: published in 2020.",
        ),
        (
            [replace(RESULT, parts={"fold 1": 0.5, "fold 2": 0.7}, **FOLDS)],
            "Line: one standard deviation over the folds to either side.",
        ),
        (
            [replace(RESULT, task=3, phase="public", parts=RANDOM)],
            "Grey: random rankings reach 0.59 on average with their best expert; at most 1 in 20 "
            "exceeds 0.72.",
        ),
    ],
)
def test_only_signs_that_are_there_are_explained(results: list[Result], expected: str) -> None:
    assert page_of(*results).charts[-1].key == expected


def test_published_scores_have_the_digits_that_were_published() -> None:
    page = page_of()
    assert "No scores yet" in page.text
    assert text_of() == ""
    shown = page.table("Scores of 2020").column("score")
    assert shown == ["0.7729", "0.6803", "0.80", "0.7474", "0.6473", "0.6365"]
