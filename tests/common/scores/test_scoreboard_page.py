"""The page of the scoreboard: self-contained, charts of two widths, every sign explained."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from page_reading import read_page as check_page
from recorded import LENIENT, RANDOM, RESULT, seeded

from common.scores import scoreboard, scoreboard_page
from common.scores.results import Result, read_results


def page_of(results: Sequence[Result]) -> str:
    return scoreboard_page.as_page(scoreboard.make_tables(results))


def test_the_page_is_self_contained_and_well_formed() -> None:
    results = [
        RESULT,
        replace(RESULT, task=2, model="<script>alert(1)</script>", made_by=""),
        replace(RESULT, task=3, phase="public", parts=RANDOM),
        replace(RESULT, task=4, phase="private", rules=LENIENT, simulated=False),
        *(seeded("a_model_with_a_very_long_name_indeed", seed, 0.6 + seed / 9) for seed in (1, 2)),
    ]
    results.append(replace(RESULT, simulated=False))
    text = page_of(results)
    # Each chart once for a phone and once as wide as the page.
    assert len(check_page(text).charts) == 2 * 5
    assert text == page_of(results[::-1])
    assert "random rankings reach 0.59" in text
    assert text.index("Real answers") < text.index("0.7474") < text.index("Simulated answers")


def test_the_chart_shows_models_and_published_scores() -> None:
    results = [replace(RESULT, phase="private", simulated=False)]
    results += [
        replace(seeded("idea", seed, 0.7 + seed / 50), phase="private", simulated=False)
        for seed in (0, 1)
    ]
    page = page_of(results)
    for chart in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        drawn = re.findall(r"<title>(.*?)</title>.*?<use [^>]*style=\"([^\"]*)\"", chart, re.DOTALL)
        assert [name for name, _ in drawn] == [
            "winner of 2020: 0.7729",
            "idea --n_dimensions 8: 0.7100",
            "majority: 0.6000",
        ]
        # A hollow diamond, the best model in colour, the others not.
        assert ["--accent" in style for _, style in drawn] == [False, True, False]
        assert ["fill-opacity: 0;" in style for _, style in drawn] == [True, False, False]
        assert ">accuracy</text>" in chart
    said = "Line: one standard deviation over the seeds to either side. Diamond: published in 2020."
    assert (
        page.count(f'<figcaption class="key">In colour: the best model. {said}</figcaption>') == 1
    )


def test_every_text_of_the_record_is_escaped(tmp_path: Path) -> None:
    """Whatever a name holds, it appears on the page as text, in tables and in charts."""
    hostile = "<i>\"'&x</i> $\\frac{$"
    changes = dict.fromkeys(("rules", "model", "command", "submission", "revision"), hostile)
    record = asdict(replace(RESULT, **changes, parts={hostile: 0.5}))  # type: ignore[arg-type]
    record["made_by"] = f"python a.py {shlex.quote(hostile)}"
    lines = [json.dumps(record)]
    for name in ("phase", "data", "time", "score", "task", "simulated"):
        lines.append(json.dumps({**record, name: hostile}))
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(lines) + "\n")
    results, n_unreadable = read_results(path)
    assert (len(results), n_unreadable) == (1, 6)
    page = page_of(results)
    assert "<i>" not in page
    assert page.count("&lt;i&gt;") >= 2


def test_the_chart_of_a_wide_screen_fills_the_page_and_the_phones_fits_it() -> None:
    page = page_of([RESULT])
    found = re.findall(r'<div class="(\S+)"><svg class="chart" viewBox="0 0 (\S+) ', page)
    assert [name for name, _ in found] == ["phone-wide", "page-wide"]
    narrow, wide = (float(width) for _, width in found)
    # The text of a page is 46rem wide: 736 pixels, 3 / 4 of a point each.
    assert "max-width: 46rem" in page
    assert (narrow, wide) == (340, 0.75 * 736)
    # Exactly one of them is shown.
    assert ".page-wide { display: none; }" in page
    (wider,) = re.findall(r"@media \(min-width: 48rem\) {(.*)}", page)
    assert ".phone-wide { display: none; }" in wider
    assert ".page-wide { display: block; }" in wider


def test_only_signs_that_are_there_are_explained() -> None:
    def key(results: Sequence[Result]) -> str:
        (text,) = re.findall(r'<figcaption class="key">(.*?)</figcaption>', page_of(results))
        return str(text)

    assert key([RESULT]) == ""
    assert key([RESULT, seeded("idea", 0, 0.7)]) == "In colour: the best model."
    folds = {"fold 1": 0.5, "fold 2": 0.7}
    assert key([replace(RESULT, phase="cross-validation", rules="2 folds", parts=folds)]) == (
        "Line: one standard deviation over the folds to either side."
    )
    assert key([replace(RESULT, task=3, phase="public", parts=RANDOM)]) == (
        "Grey: random rankings reach 0.59 on average with their best expert; at most 1 in 20 "
        "exceeds 0.72."
    )


def test_published_scores_have_the_digits_that_were_published() -> None:
    page = page_of([])
    assert all(f">{text}</td>" in page for text in ("0.7729", "0.6803", "0.80", "0.7474"))
