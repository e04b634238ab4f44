"""The scoreboard puts only comparable scores into one table, on a terminal and on a page."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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
    """Return the rows of the scoreboard, which must be a single table."""
    (table,) = scoreboard.make_tables(results)
    return table.rows


# Two scores of the same model with the same seed.
EARLY = seeded("idea", 0, 0.9, DAYS[0])
LATE = seeded("idea", 0, 0.7, DAYS[1])
# The options with which tools.blend blends two files.
BLEND = {"files": ["data/test_output/one.parquet", "two.parquet"], "local": True}
# The scores of the folds of a cross-validation.
PARTS = {"fold 1": 0.6, "fold 2": 0.7, "fold 3": 0.8}
# The same scores if the cross-validation was interrupted after the first fold.
INTERRUPTED_PARTS: dict[str, Any] = {"fold 1": 0.6, "fold 2": None}


@pytest.mark.parametrize(
    ("results", "name", "score", "deviation"),
    [
        pytest.param([LATE, EARLY], IDEA, 0.7, None, id="the latest score of a seed counts"),
        pytest.param(
            [seeded("idea", None, 0.8, DAYS[2]), EARLY, LATE],
            IDEA,
            0.8,
            None,
            id="no seed counts as seed 0",
        ),
        pytest.param(
            [replace(RESULT, model="blend", options=BLEND)],
            "blend one two",
            0.6,
            None,
            id="a blend is named by its files",
        ),
        pytest.param(
            [replace(RESULT, score=0.7, parts=PARTS, **FOLDS)],
            "majority",
            0.7,
            0.1,
            id="a cross-validation has the deviation of its folds",
        ),
        pytest.param(
            [replace(RESULT, parts=INTERRUPTED_PARTS, **FOLDS)],
            "majority",
            0.6,
            None,
            id="a single fold",
        ),
    ],
)
def test_a_row_holds_name_score_and_deviation(
    results: list[Result], name: str, score: float, deviation: float | None
) -> None:
    (row,) = rows_of(*results)
    assert row.name == name
    assert row.score == score
    assert row.n_seeds == 1
    assert row.deviation == pytest.approx(deviation)


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
    """Each interrupted fit of the present code has a row of its own, the best score first.

    The scores of finished fits are averaged over seeds. If two finished fits have the same seed,
    the later score replaces the earlier one, and `n_replaced` counts the replaced score.
    Interrupted fits are neither averaged nor replaced, even if two of them have the same seed.

    A fit of earlier code is not in the rows of the table, but in the table's list `former`.
    """
    interrupted = replace(RESULT, doubts=[INTERRUPTED])
    # The fingerprint of this fit's code, "aa", differs from that of the present code, "bb".
    of_earlier_code = replace(interrupted, seed=0, score=0.5, time=DAYS[0], code="aa")
    of_present_code = [
        replace(interrupted, seed=1, score=0.1, time=DAYS[1], code="bb"),
        # The next two fits have the same seed.
        replace(interrupted, seed=2, score=0.2, time=DAYS[2], code="bb"),
        replace(interrupted, seed=2, score=0.3, time=DAYS[3], code="bb"),
    ]
    (table,) = scoreboard.make_tables([of_earlier_code, *of_present_code])
    assert [(row.name, row.score, row.n_seeds) for row in table.rows] == [
        ("majority (fit interrupted; 2026-01-04 10:00 UTC)", 0.3, 1),
        ("majority (fit interrupted; 2026-01-03 10:00 UTC)", 0.2, 1),
        ("majority (fit interrupted; 2026-01-02 10:00 UTC)", 0.1, 1),
    ]
    assert [row.score for row in table.former] == [0.5]
    assert table.n_replaced == 0


def test_a_score_of_edited_code_is_current_until_the_entry_runs_again() -> None:
    """A score by code that was edited since keeps its row until the edited code makes a new score.

    A submission is scored, the code is edited, and the same submission is scored again. The row of
    the score then says "made by earlier code". When the edited code makes a new submission, the row
    shows its score, and the earlier scores move to the list `former`.
    """
    before_edit = replace(RESULT, time=DAYS[0], code="aa", score=0.6)
    after_edit = replace(before_edit, time=DAYS[1], doubts=[EARLIER_CODE])
    (row,) = rows_of(before_edit, after_edit)
    assert row.name == "majority (made by earlier code)"
    assert row.score == 0.6

    by_edited_code = replace(before_edit, time=DAYS[2], code="bb", score=0.7)
    (table,) = scoreboard.make_tables([before_edit, after_edit, by_edited_code])
    assert [(row.name, row.score) for row in table.rows] == [("majority", 0.7)]
    assert [(row.name, row.score) for row in table.former] == [("majority", 0.6)]


def test_only_the_row_whose_code_was_edited_is_marked() -> None:
    """Only the row of a score whose code was edited is marked "made by earlier code".

    There are two scores of a model, by two versions of its code. The code was edited again after
    the second score, so the row of this score is marked. The first score is in the list of former
    scores, without a mark.
    """
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
    ("change", "title"),
    [
        ({"code": "bb"}, "Scores of earlier code of these models"),
        ({"data": "b" * 12}, "Scores on earlier answers, not comparable"),
    ],
)
def test_earlier_scores_are_set_apart(change: dict[str, Any], title: str) -> None:
    """A score from before a change of code or data is shown only in a folded part of the page.

    `EARLY` is the score before the change, 0.9. `change` is the field that differs in the scores
    after the change: the fingerprint of the code or the fingerprint of the answers. `title` is the
    title of the folded part.
    """
    after_change = [
        replace(seeded("idea", seed=1, score=0.7, time=DAYS[1]), **change),
        replace(seeded("idea", seed=2, score=0.6, time=DAYS[2]), **change),
    ]
    results = [*after_change, EARLY]

    # The two scores after the change have different seeds, and are averaged: their mean is 0.65,
    # and their standard deviation is √(2 · 0.05²) = 0.0707.
    text = text_of(*results)
    assert "0.6500 ± 0.0707" in text
    assert "0.9000" not in text
    assert "1 scores of earlier code or on earlier answers: see the page." in text

    folded = page_of(*results).folded
    assert folded.startswith(title)
    assert "0.9000" in folded
    assert "0.6500" not in folded


TASK_1 = "Task 1: right or wrong"
TASK_2 = "Task 2: the option chosen"
TASK_4 = "Task 4: ten questions for each student"
SCIENCE_EXAM = "Science exam"


class Expected(NamedTuple):
    """A result, and the table that shows this result alone."""

    result: Result
    title: str
    kind: str


EXAM = replace(RESULT, task="science_exam", phase="", metric_name="MAP@3")
TASK_4_KIND = "accuracy after ten questions, local split"
# Results and the tables that they must get, in the order in which the scoreboard shows the tables.
# There is a list for each origin of the answers. In a list, tasks come before related challenges.
# Within a task, the local split comes before the phases.
ON_OFFICIAL_ANSWERS = [
    Expected(replace(RESULT, data="b" * 12, **OFFICIAL), TASK_1, "accuracy, local split"),
]
ON_UNKNOWN_ANSWERS = [
    Expected(replace(RESULT, data="c" * 12, **UNKNOWN), TASK_1, "accuracy, local split"),
    Expected(replace(EXAM, data="c" * 12, **UNKNOWN), SCIENCE_EXAM, "MAP@3"),
]
ON_SIMULATED_ANSWERS = [
    Expected(RESULT, TASK_1, "accuracy, local split"),
    Expected(replace(RESULT, **FOLDS), TASK_1, "accuracy, cross-validation, 3 folds, seed 0"),
    Expected(replace(RESULT, phase="public"), TASK_1, "accuracy, public test"),
    Expected(replace(RESULT, phase="private"), TASK_1, "accuracy, private test"),
    Expected(replace(RESULT, phase="own"), TASK_1, "accuracy, test of your own"),
    Expected(replace(RESULT, task=2), TASK_2, "accuracy, local split"),
    Expected(replace(RESULT, task=4, rules=LENIENT), TASK_4, f"{TASK_4_KIND}, {LENIENT}"),
    Expected(replace(RESULT, task=4, rules=STRICT), TASK_4, f"{TASK_4_KIND}, {STRICT}"),
    Expected(EXAM, SCIENCE_EXAM, "MAP@3"),
    Expected(replace(EXAM, rules="5 folds"), SCIENCE_EXAM, "MAP@3, 5 folds"),
]
ON_ALL_ANSWERS = [*ON_OFFICIAL_ANSWERS, *ON_UNKNOWN_ANSWERS, *ON_SIMULATED_ANSWERS]
OUT_OF_ORDER = [expected.result for expected in reversed(ON_ALL_ANSWERS)]


def test_scores_of_different_tests_are_in_different_tables() -> None:
    tables = scoreboard.make_tables(OUT_OF_ORDER)
    shown = [(table.title, table.kind, table.origin) for table in tables]
    assert shown == [
        (expected.title, expected.kind, expected.result.origin) for expected in ON_ALL_ANSWERS
    ]
    assert not any(table.earlier for table in tables)


def test_tables_are_grouped_by_the_origin_of_the_answers() -> None:
    """Official answers come first and simulated ones last.

    Below the heading of each origin, the page has a heading for each table. The scoreboard gets the
    results in the opposite order, `OUT_OF_ORDER`. The last section of the page explains the
    published scores of 2020, which are also shown beside scores on official answers.
    """
    assert page_of(*OUT_OF_ORDER).headings == [
        "Scoreboard",
        "Official answers",
        *[expected.title for expected in ON_OFFICIAL_ANSWERS],
        "Answers of unknown origin",
        *[expected.title for expected in ON_UNKNOWN_ANSWERS],
        "Simulated answers",
        *[expected.title for expected in ON_SIMULATED_ANSWERS],
        "Scores of 2020",
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
    """Two scores may be on the same answers although the record names different origins.

    One reason is that earlier versions of the kit recorded "unknown" as the origin of official
    answers. In this test, the answers are the same, because both scores have the fingerprint of
    `RESULT`.
    """
    results = [
        replace(RESULT, model=f"model {number}", origin=origin)
        for number, origin in enumerate(origins)
    ]
    (table,) = scoreboard.make_tables(results)
    assert table.origin == expected
    assert len(table.rows) == 2
    # No score is moved to the list of scores on earlier answers.
    assert table.earlier == []


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
    """The scores published in 2020 are shown beside scores on the same official answers only.

    The names of their rows must be `expected`. Only these rows have no day, so the test finds them
    by the missing day.
    """
    result = replace(RESULT, task=task, phase=phase, rules=rules)
    rows = rows_of(replace(result, **OFFICIAL))
    assert [row.name for row in rows if not row.day] == expected
    for other in (result, replace(result, **UNKNOWN), replace(result, phase="own", **OFFICIAL)):
        assert all(row.day for row in rows_of(other))


def test_the_table_of_scores_of_2020_has_the_digits_that_were_published() -> None:
    shown = page_of().table("Scores of 2020").column("score")
    assert shown == ["0.7729", "0.6803", "0.80", "0.7474", "0.6473", "0.6365"]


def test_without_scores_the_page_says_so_and_nothing_is_printed() -> None:
    assert "No scores yet" in page_of().text
    assert text_of() == ""


def test_the_command_shows_every_text_of_the_record_as_text(tmp_path: Path) -> None:
    """Texts that look like HTML or TeX are shown as they are, on the terminal and on the page."""
    looks_like_code = "<i>\"'&x</i> $\\frac{$"
    result = replace(
        RESULT,
        model=looks_like_code,
        rules=looks_like_code,
        command=looks_like_code,
        submission=looks_like_code,
        options={"files": looks_like_code},
        parts={looks_like_code: 0.5},
    )
    record = write_record(tmp_path / "results.jsonl", result)

    done = run([*SCOREBOARD, record])

    assert (done.returncode, done.stderr) == (0, "")
    # The name of the row consists of the model's name and its options.
    name = f"{looks_like_code} {looks_like_code}"
    assert f"{name} 0.6000" in " ".join(done.stdout.split())
    page = read_page((tmp_path / "scoreboard.html").read_text())
    _name, score, *_ = page.table("Task 1").row(name)
    assert score == "0.6000"
    assert [chart.titles for chart in page.charts] == [[f"{name}: 0.6000"]]


def test_a_record_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    error = fails([*SCOREBOARD, tmp_path / "results.jsonl"])
    assert "file not found; `python task_1/local_evaluation.py`" in error


def test_lines_of_the_record_that_are_no_results_are_counted(tmp_path: Path) -> None:
    record = write_record(tmp_path / "results.jsonl", RESULT)
    record.write_text(record.read_text() + '{"task": 1, "sc')
    done = run([*SCOREBOARD, record])
    assert done.returncode == 0, done.stderr
    assert "ignored 1 invalid line\n" in done.stderr


# ---- A page with tables and charts ---------------------------------------------------------------

PRIVATE: dict[str, Any] = {"phase": "private", **OFFICIAL}
# Scores of a model with three seeds, a score of another model, and a score of a ranking of task 3.
# The runs with the seeds 1, 2 and 5 took 2, 3 and 6 seconds.
SOME_RESULTS = [
    replace(seeded("idea", seed=1, score=0.71, time=DAYS[1]), **PRIVATE),
    replace(seeded("idea", seed=2, score=0.69, time=DAYS[3]), **PRIVATE),
    replace(seeded("idea", seed=5, score=0.73, time=DAYS[2]), **PRIVATE),
    replace(RESULT, **PRIVATE),
    replace(RESULT, task=3, phase="public", parts=RANDOM),
]


def test_the_page_does_not_depend_on_the_order_of_the_record() -> None:
    page = scoreboard.as_page(scoreboard.make_tables(SOME_RESULTS))
    assert page == scoreboard.as_page(scoreboard.make_tables(SOME_RESULTS[::-1]))


def test_a_row_of_a_table_sums_up_the_seeds_of_a_model() -> None:
    """A row shows the mean score over the seeds, and its standard deviation.

    It also shows the number of seeds, the median time in seconds, and the day of the last score.
    """
    assert page_of(*SOME_RESULTS).table("Task 1").rows == [
        ["winner of 2020 (published)", "0.7729", "", "", ""],
        [IDEA, "0.7100 ± 0.0200", "3", "3.0", "2026-01-04"],
        ["majority", "0.6000", "1", "2.0", "2026-01-01"],
    ]


def test_a_chart_shows_the_rows_of_a_table_and_highlights_the_best_model() -> None:
    chart, _ = page_of(*SOME_RESULTS).charts
    assert chart.titles == ["winner of 2020: 0.7729", f"{IDEA}: 0.7100", "majority: 0.6000"]
    has_accent_colour = ["--accent" in style for style in chart.styles]
    assert has_accent_colour == [False, True, False]


def test_the_caption_of_a_chart_explains_its_marks() -> None:
    chart, chart_of_task_3 = page_of(*SOME_RESULTS).charts
    assert chart.caption == (
        "In colour: the best model. Line: one standard deviation over the seeds to either side. "
        "Diamond: published in 2020."
    )
    assert chart_of_task_3.caption == (
        "Grey: random rankings reach 0.59 on average with their best expert; at most 1 in 20 "
        "exceeds 0.72."
    )


def test_a_long_name_is_wrapped_at_80_characters() -> None:
    text = text_of(replace(RESULT, model="word " * 40))
    assert text.count("word") == 40
    assert max(len(line) for line in text.splitlines()) <= 80
