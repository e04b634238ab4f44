"""`compare_strategies.py` run as a user runs it, on tiny simulated data."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import strategy_games
from conftest import fails, run, succeeds
from page_reading import Page, read_page

# The type of the fixture `compare`.
Compare = Callable[..., tuple[str, Page]]
SCRIPT = "task_4/compare_strategies.py"
NAMES = list(strategy_games.find_strategies())
OWN = "most_right_predictions"


@pytest.fixture
def compare(split_kit: Path, tmp_path: Path) -> Compare:
    """Return a function that runs the script and returns its output and its page."""

    def run(*flags: object, kit: Path = split_kit) -> tuple[str, Page]:
        printed = succeeds([SCRIPT, *flags, "--output_dir", tmp_path], kit=kit)
        assert max(map(len, printed.splitlines()[:-1])) <= 80
        page = read_page((tmp_path / "strategies_task_4.html").read_text(encoding="utf-8"))
        # The output and the page show the same figures.
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        for table in page.tables:
            if table.columns[:1] == ["strategy"]:
                assert {" ".join(row) for row in table.rows} <= set(lines)
        return printed, page

    return run


def figures(page: Page, caption: str, rule: int = 0) -> pd.DataFrame:
    """Return the figures of a table by strategy, with columns numbered from 1.

    The page has the table once for each rule; `rule` is 0 or 1.
    """
    table = [table for table in page.tables if table.caption.startswith(caption)][rule]
    return pd.DataFrame(table.rows).set_index(0).astype(float)


def test_every_strategy_is_played_by_both_rules(compare: Compare) -> None:
    flags = ["--phase", "public", "--questions", 10, "--masks", 1, "--targets_queryable"]
    printed, page = compare(*flags)
    last = []
    for rule in (0, 1):
        # The columns 1 to 4 are the accuracies after 1, 3, 5 and 10 questions.
        accuracy = figures(page, "Accuracy", rule)
        assert accuracy.index.tolist() == NAMES and accuracy.columns.tolist() == [1, 2, 3, 4]
        assert accuracy.stack().between(0.4, 0.9).all()
        assert figures(page, "AUC", rule)[4].between(0.5, 0.95).all()
        assert figures(page, "Log loss", rule)[4].between(0.4, 0.8).all()
        exposure, overlap, bank = figures(page, "Largest", rule).to_numpy().T
        assert ((overlap > 0) & (overlap <= exposure) & (exposure <= 1)).all()
        assert ((bank > 0) & (bank <= 1)).all()
        last.append(accuracy[4])
    # By the second rule targets may be asked. A target that is asked counts as predicted right.
    assert last[1][OWN] > last[0][OWN]
    ahead = [table for table in page.tables if table.caption.startswith(f"{OWN} ahead")]
    for accuracy, table in zip(last, ahead, strict=True):
        others = accuracy.drop(OWN)
        assert table.column("strategy") == others.index.tolist()
        shown = pd.Series(table.column("after 10"), others.index)
        values = shown.str.rstrip("*").str.split(" ± ", expand=True).astype(float)
        assert values[0].to_numpy() == pytest.approx((accuracy[OWN] - others).to_numpy(), abs=2e-4)
        # A star marks a difference that is larger than its margin.
        assert (shown.str.endswith("*") == (values[0].abs() > values[1])).all()
        assert values[0].abs().max() > 5e-3
    assert "From simulated answers" in page.text
    # The kit's own strategy comes first.
    assert [chart.titles[-1] for chart in page.charts] == [OWN, OWN]
    facts = dict(page.tables[-1].rows)
    assert facts["Length"] == "10 questions"
    assert re.fullmatch(r"[\d,]+ in 1 mask", facts["Targets"])
    assert f"Targets: {facts['Targets']}" in printed
    assert [name for name, _ in page.tables[-2].rows] == NAMES


def test_runs_repeat_and_flags_have_an_effect(compare: Compare) -> None:
    two = ["--strategies", "most_popular", OWN, "--masks", 1, "--questions"]
    first, unlimited = compare(*two, 5)
    assert compare(*two, 5)[0].split("Time")[0] == first.split("Time")[0]
    assert "eddi" not in first
    assert figures(unlimited, "Largest")[1]["most_popular"] > 0.2

    limited, page = compare(*two, 5, "--max_exposure", 0.2)
    for name in ("most_popular", OWN):
        exceeds = figures(page, "Largest")[1][name] > 0.2
        assert (f"{name} exceeds the limit of exposure" in limited) == exceeds
    assert dict(page.tables[-1].rows)["Limit of exposure"] == "0.2 of the students"

    _, page = compare(*two, 12, "--stop_at_error", 0.8)
    assert 1 <= figures(page, "Largest")[4][OWN] < 12
    assert "at a standard error of 0.8" in page.text


def test_a_function_added_to_strategies_py_is_compared(
    compare: Compare, split_kit: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    new = 'def first_column(posterior, askable, hidden):\n    """The first question of all."""\n'
    with (own / "task_4/strategies.py").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{new}    return askable.argmax(axis=1)\n")
        file.write("\n\ndef untold(known, askable, hidden):\n    return askable.argmax(axis=1)\n")
    flags = ["--questions", 3, "--masks", 1, "--strategies", "first_column", "random", "untold"]
    printed, page = compare(*flags, kit=own)
    assert figures(page, "Accuracy").shape == (3, 2)
    assert page.tables[-2].row("first_column")[1] == "The first question of all."
    # The kit's own strategy is not among them, so that nothing is compared with it.
    assert "ahead" not in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--questions 500", r"valid_task_4.csv: UserId \d+ has \d+ answers that may be asked"),
        (
            "--input_dir data/train_data --train_data train_task_3_4.csv",
            r"train_task_3_4.csv: holds UserId \d+ of .*valid_task_4.csv \(40 such students\)",
        ),
        # No game is played if the page cannot be written.
        ("--questions 500 --output_dir data/README.md", r"README.md: is no folder"),
    ],
)
def test_faults_are_refused_in_one_line(
    split_kit: Path, tmp_path: Path, flags: str, message: str
) -> None:
    error = fails([SCRIPT, "--output_dir", tmp_path, *flags.split()], kit=split_kit, cwd=split_kit)
    assert re.search(message, error), error
    assert not list(tmp_path.iterdir())


def test_a_protocol_cannot_be_played_with_targets_that_may_be_asked(
    split_kit: Path, tmp_path: Path
) -> None:
    flags = ["--protocol", "bobcat", "--targets_queryable", "--output_dir", tmp_path]
    done = run([SCRIPT, *flags], kit=split_kit)
    reason = "argument --targets_queryable: not allowed with argument --protocol"
    assert (done.returncode, f"error: {reason}" in done.stderr) == (2, True)
    assert not list(tmp_path.iterdir())


def test_real_and_simulated_answers_are_not_mixed(
    split_kit: Path, compare: Compare, tmp_path: Path
) -> None:
    """Copied files count as real: published figures of protocols are shown beside them."""
    for name in ("train_data/train_task_3_4.csv", "test_data/test_public_task_4_more_splits.csv"):
        (tmp_path / name).parent.mkdir()
        shutil.copyfile(split_kit / "data" / name, tmp_path / name)
    train, test = ["--input_dir", tmp_path / "train_data"], ["--ref_dir", tmp_path / "test_data"]
    for flags in (train, test):
        command = [SCRIPT, "--phase", "public", *flags, "--output_dir", tmp_path]
        assert "is simulated, and " in fails(command, kit=split_kit)
    short = ["--phase", "public", "--questions", 3, "--strategies", "random"]
    for protocol, authors, n in (("bobcat", "Ghosh", 3), ("ncat", "Zhuang", 8)):
        printed, page = compare(*short, "--protocol", protocol)
        assert "in 5 splits" in printed
        assert f"{protocol.upper()}'s protocol" in page.text and "Published" not in page.text
        _, page = compare(*short, *train, *test, "--masks", 1, "--protocol", protocol)
        assert "simulated answers" not in page.text
        published = page.table(f"Published ({authors}")
        assert (published.columns, len(published.rows)) == (["method", "accuracy", "AUC"], n)
        assert all(0.5 < float(accuracy) < 0.9 for _, accuracy, _ in published.rows)
