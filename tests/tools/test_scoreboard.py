"""The scoreboard puts only comparable scores into one table, on a terminal and on a page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from common.evaluation.doubt import EARLIER_CODE, INTERRUPTED
from common.evaluation.record import Result
from common.origin import Origin
from tools import scoreboard
from tools.scoreboard import Row

import pytest
from conftest import fails, run
from page_reading import Page, read_page
from recorded import LENIENT, RANDOM, RESULT, STRICT, seeded, write_record

DAYS = [f"2026-01-0{day}T10:00:00+00:00" for day in range(1, 5)]
FOLDS: dict[str, Any] = {"phase": "cross-validation", "rules": "3 folds, seed 0"}
OFFICIAL: dict[str, Any] = {"origin": Origin.OFFICIAL}
UNKNOWN: dict[str, Any] = {"origin": Origin.UNKNOWN}
SCOREBOARD = ["-m", "tools.scoreboard", "--results"]
IDEA = "idea --n_dimensions 8"


def text_of(*results: Result) -> str:
    """Return the scoreboard as it is printed."""
    return scoreboard.as_text(scoreboard.make_tables(results))


def page_of(*results: Result) -> Page:
    """Return the page of the scoreboard."""
    return read_page(scoreboard.as_page(scoreboard.make_tables(results)))


def rows_of(*results: Result) -> list[Row]:
    """Return the rows of the only table."""
    (table,) = scoreboard.make_tables(results)
    return table.rows


EARLY, LATE = seeded("idea", 0, 0.9, DAYS[0]), seeded("idea", 0, 0.7, DAYS[1])
BLEND = {"files": ["data/test_output/one.parquet", "two.parquet"], "local": True}
PARTS = {"fold 1": 0.6, "fold 2": 0.7, "fold 3": 0.8}
# The folds of a cross-validation that was interrupted after the first one.
CUT: dict[str, Any] = {"fold 1": 0.6, "fold 2": None}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        # The latest score of a seed counts.
        ([LATE, EARLY], (IDEA, 0.7, None)),
        # A result without a seed counts as one with seed 0.
        ([seeded("idea", None, 0.8, DAYS[2]), EARLY, LATE], (IDEA, 0.8, None)),
        ([replace(RESULT, model="blend", options=BLEND)], ("blend one two", 0.6, None)),
        # The deviation of a cross-validation is that of its folds.
        ([replace(RESULT, score=0.7, parts=PARTS, **FOLDS)], ("majority", 0.7, 0.1)),
        ([replace(RESULT, parts=CUT, **FOLDS)], ("majority", 0.6, None)),
    ],
)
def test_a_row_holds_name_score_and_deviation(
    results: list[Result], expected: tuple[str, float, float | None]
) -> None:
    (row,) = rows_of(*results)
    assert (row.name, row.score, row.n_seeds) == (*expected[:2], 1)
    assert row.deviation == pytest.approx(expected[2])


LOCAL_PART = {"test_input/train_task_1_2.csv": "1" * 12}
ALL_ANSWERS = {"train_data/train_task_1_2.csv": "2" * 12}
METADATA = {"metadata/student_metadata_task_1_2.csv": "3" * 12}
UNSEEN = "may have seen these answers"


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        (
            [{"script": "task_1/sample_model_majority.py"}, {"script": "task_1/majority.py"}],
            ["majority (task_1/majority.py)", "majority (task_1/sample_model_majority.py)"],
        ),
        (
            [{"learned_from": LOCAL_PART}, {"learned_from": ALL_ANSWERS}],
            [
                "majority (from test_input/train_task_1_2.csv)",
                "majority (from train_data/train_task_1_2.csv)",
            ],
        ),
        (
            [{"learned_from": LOCAL_PART}, {"learned_from": LOCAL_PART | METADATA}],
            [
                "majority (from fewer files)",
                "majority (from metadata/student_metadata_task_1_2.csv)",
            ],
        ),
        (
            [{"learned_from": ALL_ANSWERS}, {"learned_from": dict.fromkeys(ALL_ANSWERS, "4" * 12)}],
            [
                "majority (from train_data/train_task_1_2.csv 222222)",
                "majority (from train_data/train_task_1_2.csv 444444)",
            ],
        ),
        (
            [{"learned_from": None}, {"learned_from": LOCAL_PART | METADATA}],
            ["majority", "majority (sources not recorded)"],
        ),
        ([{"doubts": []}, {"doubts": [UNSEEN]}], ["majority", f"majority ({UNSEEN})"]),
        (
            [
                {"script": "notebook", "model": "notebook", "time": DAYS[0]},
                {"script": "notebook", "model": "notebook", "time": DAYS[1]},
            ],
            ["notebook (2026-01-01 10:00 UTC)", "notebook (2026-01-02 10:00 UTC)"],
        ),
    ],
    ids=["script", "training answers", "metadata", "content", "not recorded", "doubt", "notebook"],
)
def test_different_models_of_one_name_have_rows_of_their_own(
    changes: list[dict[str, Any]], labels: list[str]
) -> None:
    rows = rows_of(*(replace(RESULT, seed=0, **change) for change in changes))
    assert sorted(row.name for row in rows) == labels
    assert [row.n_seeds for row in rows] == [1, 1]


def test_an_interrupted_fit_is_never_averaged_with_complete_ones() -> None:
    complete = [replace(RESULT, seed=seed, score=0.7) for seed in (0, 1)]
    interrupted = replace(RESULT, seed=2, score=0.1, doubts=["fit interrupted"])
    rows = {row.name: row for row in rows_of(*complete, interrupted)}
    assert (rows["majority"].score, rows["majority"].n_seeds) == (0.7, 2)
    assert rows["majority (fit interrupted)"].score == 0.1


def test_interrupted_fits_are_never_averaged_with_each_other() -> None:
    """Not even fits with the same seed replace each other. A later version of the code does."""
    results = [
        replace(RESULT, seed=seed, score=score, time=DAYS[day], code=code, doubts=[INTERRUPTED])
        for day, (seed, score, code) in enumerate(
            [(0, 0.5, "aa"), (1, 0.1, "bb"), (2, 0.2, "bb"), (2, 0.3, "bb")]
        )
    ]
    (table,) = scoreboard.make_tables(results)
    shown = [(row.name, row.score, row.n_seeds) for row in table.rows]
    assert shown == [
        ("majority (fit interrupted; 2026-01-04 10:00 UTC)", 0.3, 1),
        ("majority (fit interrupted; 2026-01-03 10:00 UTC)", 0.2, 1),
        ("majority (fit interrupted; 2026-01-02 10:00 UTC)", 0.1, 1),
    ]
    assert [row.score for row in table.former] == [0.5]
    assert table.n_replaced == 0


def test_a_score_of_edited_code_is_current_until_the_entry_runs_again() -> None:
    """The code is edited between the evaluations of the first submission."""
    before = replace(RESULT, time=DAYS[0], code="aa")
    edited = replace(before, time=DAYS[1], doubts=[EARLIER_CODE])
    again = replace(before, time=DAYS[2], code="bb", score=0.7)

    (row,) = rows_of(before, edited)
    assert (row.name, row.score) == ("majority (made by earlier code)", 0.6)

    (table,) = scoreboard.make_tables([before, edited, again])
    assert [(row.name, row.score) for row in table.rows] == [("majority", 0.7)]
    assert [(row.name, row.score) for row in table.former] == [("majority", 0.6)]


def test_only_the_row_whose_code_was_edited_is_marked() -> None:
    """The second version of the code is edited after its run."""
    first = replace(RESULT, time=DAYS[0], code="aa", score=0.5)
    second = replace(RESULT, time=DAYS[1], code="bb", score=0.6, doubts=[EARLIER_CODE])
    (table,) = scoreboard.make_tables([first, second])
    assert [row.name for row in table.rows] == ["majority (made by earlier code)"]
    assert [row.name for row in table.former] == ["majority"]


def test_only_the_interrupted_fit_whose_code_was_edited_is_marked() -> None:
    first = replace(RESULT, time=DAYS[0], score=0.5, doubts=[INTERRUPTED])
    second = replace(RESULT, time=DAYS[1], score=0.6, doubts=[EARLIER_CODE, INTERRUPTED])
    assert [row.name for row in rows_of(first, second)] == [
        "majority (made by earlier code; fit interrupted; 2026-01-02 10:00 UTC)",
        "majority (fit interrupted; 2026-01-01 10:00 UTC)",
    ]


def test_a_replaced_score_is_counted() -> None:
    assert "1 replaced: the same model was scored again" in text_of(EARLY, LATE)
    assert "replaced" not in text_of(LATE)


@pytest.mark.parametrize(
    ("changed", "summary"),
    [
        ({"code": "bb"}, "Scores of earlier code of these models"),
        ({"data": "b" * 12}, "Scores on earlier answers, not comparable"),
    ],
)
def test_earlier_scores_are_set_apart(changed: dict[str, Any], summary: str) -> None:
    """The score from before the change of code or data is set apart.

    The two scores from after the change, of different seeds, are averaged.
    """
    later = [replace(seeded("idea", n, 0.8 - n / 10, DAYS[n]), **changed) for n in (1, 2)]
    results = [*later, EARLY]
    text, folded = text_of(*results), page_of(*results).folded
    assert "0.6500 ± 0.0707" in text and "0.9000" not in text
    assert "1 scores of earlier code or on earlier answers: see the page." in text
    assert folded.startswith(summary)
    assert "0.9000" in folded and "0.6500" not in folded


def test_scores_of_different_tests_are_in_different_tables() -> None:
    """Official answers come first and simulated ones last, tasks before related challenges.

    Within a task, the local split comes before the phases.
    """
    one, four = "Task 1: right or wrong", "Task 4: ten questions for each student"
    four_split = f"{four}: accuracy after ten questions, local split"
    exam = replace(RESULT, task="science_exam", phase="", metric_name="MAP@3")
    # Each result, and the title and kind of its table, in the order of the tables.
    official = [(replace(RESULT, data="b" * 12, **OFFICIAL), f"{one}: accuracy, local split")]
    unknown = [
        (replace(RESULT, data="c" * 12, **UNKNOWN), f"{one}: accuracy, local split"),
        (replace(exam, data="c" * 12, **UNKNOWN), "Science exam: MAP@3"),
    ]
    simulated = [
        (RESULT, f"{one}: accuracy, local split"),
        (replace(RESULT, **FOLDS), f"{one}: accuracy, cross-validation, 3 folds, seed 0"),
        (replace(RESULT, phase="public"), f"{one}: accuracy, public test"),
        (replace(RESULT, phase="private"), f"{one}: accuracy, private test"),
        (replace(RESULT, phase="own"), f"{one}: accuracy, test of your own"),
        (replace(RESULT, task=2), "Task 2: the option chosen: accuracy, local split"),
        (replace(RESULT, task=4, rules=LENIENT), f"{four_split}, {LENIENT}"),
        (replace(RESULT, task=4, rules=STRICT), f"{four_split}, {STRICT}"),
        (exam, "Science exam: MAP@3"),
        (replace(exam, rules="5 folds"), "Science exam: MAP@3, 5 folds"),
    ]
    expected = [*official, *unknown, *simulated]
    results_out_of_order = [result for result, _ in reversed(expected)]

    tables = scoreboard.make_tables(results_out_of_order)

    assert [f"{table.title}: {table.kind}" for table in tables] == [text for _, text in expected]
    origins = ["official"] + ["unknown"] * 2 + ["simulated"] * 10
    assert [table.origin for table in tables] == origins
    assert not any(table.earlier for table in tables)
    titles = [table.title for table in tables]
    assert page_of(*results_out_of_order).headings == [
        *("Scoreboard", "Official answers", *titles[:1]),
        *("Answers of unknown origin", *titles[1:3]),
        *("Simulated answers", *titles[3:], "Scores of 2020"),
    ]


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([Origin.UNKNOWN, Origin.OFFICIAL], Origin.OFFICIAL),
        ([Origin.SIMULATED, Origin.UNKNOWN], Origin.SIMULATED),
        ([Origin.SIMULATED, Origin.OFFICIAL], Origin.OFFICIAL),
    ],
)
def test_scores_on_the_same_answers_are_in_one_table_with_the_best_known_origin(
    origins: list[Origin], expected: Origin
) -> None:
    """Earlier versions of the kit have recorded official answers as of unknown origin."""
    results = [
        replace(RESULT, model=f"model {number}", origin=origin)
        for number, origin in enumerate(origins)
    ]
    (table,) = scoreboard.make_tables(results)
    assert (table.origin, len(table.rows), table.earlier) == (expected, 2, [])


def test_scores_on_answers_without_a_fingerprint_keep_their_origin() -> None:
    results = [replace(RESULT, data="", **origin) for origin in (OFFICIAL, UNKNOWN)]
    tables = scoreboard.make_tables(results)
    assert [table.origin for table in tables] == [Origin.OFFICIAL, Origin.UNKNOWN]


WINNER = "winner of 2020"
MOST_POPULAR = "most popular, 2020"


@pytest.mark.parametrize(
    ("task", "phase", "rules", "expected"),
    [
        (1, "private", "", [WINNER]),
        (1, "public", "", []),
        (4, "private", STRICT, [MOST_POPULAR]),
        (4, "private", LENIENT, [WINNER, MOST_POPULAR]),
    ],
)
def test_scores_of_2020_are_shown_beside_scores_on_the_same_official_answers_only(
    task: int, phase: str, rules: str, expected: list[str]
) -> None:
    """Only published scores have no day."""
    result = replace(RESULT, task=task, phase=phase, rules=rules)
    rows = rows_of(replace(result, **OFFICIAL))
    assert [row.name for row in rows if not row.day] == expected
    for other in (result, replace(result, **UNKNOWN), replace(result, phase="own", **OFFICIAL)):
        assert all(row.day for row in rows_of(other))


def test_the_table_of_scores_of_2020_has_the_digits_that_were_published() -> None:
    page = page_of()
    assert "No scores yet" in page.text and text_of() == ""
    shown = page.table("Scores of 2020").column("score")
    assert shown == ["0.7729", "0.6803", "0.80", "0.7474", "0.6473", "0.6365"]


def test_the_command_shows_every_text_of_the_record_as_text(tmp_path: Path) -> None:
    """Texts that look like HTML or TeX are shown as they are, on the terminal and on the page."""
    looks_like_code = "<i>\"'&x</i> $\\frac{$"
    fields: dict[str, Any] = dict.fromkeys(
        ("model", "rules", "command", "submission"), looks_like_code
    )
    result = replace(
        RESULT, options={"files": looks_like_code}, parts={looks_like_code: 0.5}, **fields
    )
    record = write_record(tmp_path / "results.jsonl", result)

    done = run([*SCOREBOARD, record])

    assert (done.returncode, done.stderr) == (0, "")
    # The name of the row is the model's name and its options.
    name = f"{looks_like_code} {looks_like_code}"
    assert f"{name} 0.6000" in " ".join(done.stdout.split())
    page = read_page((tmp_path / "scoreboard.html").read_text())
    assert page.table("Task 1").row(name)[1] == "0.6000"
    assert [chart.titles for chart in page.charts] == [[f"{name}: 0.6000"]]


def test_a_record_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    error = fails([*SCOREBOARD, tmp_path / "results.jsonl"])
    assert "file not found; `python task_1/local_evaluation.py`" in error


def test_lines_of_the_record_that_are_no_results_are_counted(tmp_path: Path) -> None:
    record = write_record(tmp_path / "results.jsonl", RESULT)
    record.write_text(record.read_text() + '{"task": 1, "sc')
    done = run([*SCOREBOARD, record])
    assert (done.returncode, "ignored 1 invalid line\n" in done.stderr) == (0, True), done.stderr


def test_the_page_shows_every_score_once_in_a_table_and_a_chart() -> None:
    """A model with three seeds, one with a single score, and a ranking of task 3."""
    private: dict[str, Any] = {"phase": "private", **OFFICIAL}
    # The runs with the seeds 1, 2 and 5 took 2, 3 and 6 seconds.
    results = [
        replace(seeded("idea", seed=1, score=0.71, time=DAYS[1]), **private),
        replace(seeded("idea", seed=2, score=0.69, time=DAYS[3]), **private),
        replace(seeded("idea", seed=5, score=0.73, time=DAYS[2]), **private),
        replace(RESULT, **private),
        replace(RESULT, task=3, phase="public", parts=RANDOM),
    ]

    html = scoreboard.as_page(scoreboard.make_tables(results))

    assert html == scoreboard.as_page(scoreboard.make_tables(results[::-1]))
    page = read_page(html)
    # A row shows the mean score of the seeds, their number, the median time, and the last day.
    assert page.table("Task 1").rows == [
        ["winner of 2020 (published)", "0.7729", "", "", ""],
        [IDEA, "0.7100 ± 0.0200", "3", "3.0", "2026-01-04"],
        ["majority", "0.6000", "1", "2.0", "2026-01-01"],
    ]
    chart, chart_of_task_3 = page.charts
    assert chart.titles == ["winner of 2020: 0.7729", f"{IDEA}: 0.7100", "majority: 0.6000"]
    # Only the best model is in the accent colour.
    assert ["--accent" in style for style in chart.styles] == [False, True, False]
    # The captions explain the marks in the charts.
    best, published = "In colour: the best model.", "Diamond: published in 2020."
    line = "Line: one standard deviation over the seeds to either side."
    assert chart.caption == f"{best} {line} {published}"
    grey = "Grey: random rankings reach 0.59 on average with their best expert; at most 1 in 20"
    assert chart_of_task_3.caption == f"{grey} exceeds 0.72."


def test_a_long_name_is_wrapped_at_80_characters() -> None:
    text = text_of(replace(RESULT, model="word " * 40))
    assert text.count("word") == 40 and max(map(len, text.splitlines())) <= 80
