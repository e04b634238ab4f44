"""`compare_strategies.py` run as a user runs it, on tiny simulated data."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import official_files

import pandas as pd
import pytest
import strategy_games
from conftest import fails, run, succeeds
from page_reading import Page, read_page

# The fixture `compare` is a function that runs the script and returns its output and its page.
Compare = Callable[..., tuple[str, Page]]
SCRIPT = "task_4/compare_strategies.py"
NAMES = list(strategy_games.find_strategies())
OWN = "most_right_predictions"


def run_compare(kit: Path, folder: Path, *flags: object) -> tuple[str, Page]:
    """Run the script and return its output and its page, which must show the same figures."""
    printed = succeeds([SCRIPT, *flags, "--output_dir", folder], kit=kit)
    # Only the last line, which names the file written, may be longer than 80 characters.
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    page = read_page((folder / "strategies_task_4.html").read_text(encoding="utf-8"))
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for table in page.tables:
        if table.columns[:1] == ["strategy"]:
            assert {" ".join(row) for row in table.rows} <= set(lines)
    return printed, page


@pytest.fixture
def compare(split_kit: Path, tmp_path: Path) -> Compare:
    """Return a function that runs the script and returns its output and its page."""

    def run(*flags: object, kit: Path = split_kit) -> tuple[str, Page]:
        return run_compare(kit, tmp_path, *flags)

    return run


def figures(page: Page, caption: str, rule: int = 0) -> pd.DataFrame:
    """Return a table of figures, a row for each strategy; the columns have the page's headings.

    The page has the table once for each rule: `rule` is 0 for games in which targets may not be
    asked, and 1 for games in which they may.
    """
    tables = [table for table in page.tables if table.caption.startswith(caption)]
    table = tables[rule]
    frame = pd.DataFrame(table.rows, columns=table.columns)
    return frame.set_index("strategy").astype(float)


@dataclass(frozen=True)
class Comparison:
    """A comparison of all strategies by two rules: targets may be asked, or may not.

    A target is an answer that a strategy must predict.
    """

    output: str
    page: Page

    def accuracies(self) -> list[pd.Series]:
        """Return the accuracy of each strategy after ten questions, by each of the two rules."""
        return [figures(self.page, "Accuracy", rule)["10"] for rule in (0, 1)]


@pytest.fixture(scope="module")
def comparison(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Compare all strategies on the public phase, in tests of ten questions.

    Only one mask is used. A mask decides which answers are hidden from the strategies.
    """
    flags = ["--phase", "public", "--questions", 10, "--masks", 1, "--targets_queryable"]
    return Comparison(*run_compare(split_kit, tmp_path_factory.mktemp("comparison"), *flags))


# Games are played by two rules, and the page has each table once for each rule, in this order.
each_rule = pytest.mark.parametrize(
    "rule", [pytest.param(0, id="no targets asked"), pytest.param(1, id="targets may be asked")]
)


@each_rule
def test_every_strategy_has_an_accuracy_auc_and_log_loss(comparison: Comparison, rule: int) -> None:
    page = comparison.page
    accuracy = figures(page, "Accuracy", rule)
    assert accuracy.index.tolist() == NAMES
    # The numbers of questions after which the accuracy is shown.
    assert accuracy.columns.tolist() == ["1", "3", "5", "10"]
    assert accuracy.stack().between(0.4, 0.9).all()
    assert figures(page, "AUC", rule)["10"].between(0.5, 0.95).all()
    assert figures(page, "Log loss", rule)["10"].between(0.4, 0.8).all()


@each_rule
def test_the_use_of_questions_is_shown_in_shares(comparison: Comparison, rule: int) -> None:
    """Exposure is the largest share of students who are asked the same question.

    Overlap is the mean share of questions that two students have in common. It is never larger than
    the exposure. Bank is the share of the questions that at least one student is asked. All three
    are shares after ten questions. A rule says whether targets may be asked.
    """
    # The caption of the table begins with "Largest". The page has one such table for each rule.
    use_of_questions = figures(comparison.page, "Largest", rule)
    exposure = use_of_questions["exposure 10"]
    overlap = use_of_questions["overlap 10"]
    bank = use_of_questions["bank 10"]
    assert (overlap > 0).all()
    assert (overlap <= exposure).all()
    assert (exposure <= 1).all()
    assert (bank > 0).all()
    assert (bank <= 1).all()


def test_more_predictions_are_right_if_targets_may_be_asked(comparison: Comparison) -> None:
    """A target is an answer to predict. If the target was asked, its prediction counts as right."""
    without_targets, with_targets = comparison.accuracies()
    assert with_targets[OWN] > without_targets[OWN]


def test_every_other_strategy_is_compared_with_the_kits_own(comparison: Comparison) -> None:
    """For each of the two rules, a table shows how far the kit's own strategy is ahead.

    The table has a row for each of the other strategies.
    """
    tables = comparison.page.tables
    tables_of_leads = [table for table in tables if table.caption.startswith(f"{OWN} ahead")]
    for accuracy, table in zip(comparison.accuracies(), tables_of_leads, strict=True):
        accuracy_of_others = accuracy.drop(OWN)
        assert table.column("strategy") == accuracy_of_others.index.tolist()
        # A cell holds the difference in accuracy after ten questions, the sign ±, the margin of
        # error of the difference, and perhaps a star. For example: "+0.0213 ± 0.0150*".
        cells = pd.Series(table.column("after 10"), accuracy_of_others.index)
        has_star = cells.str.endswith("*")
        difference_and_margin = cells.str.rstrip("*").str.split(" ± ", expand=True).astype(float)
        difference = difference_and_margin[0]
        margin = difference_and_margin[1]
        expected = accuracy[OWN] - accuracy_of_others
        # Differences and accuracies are shown with four decimals, so the shown figures can differ
        # by the rounding of three numbers.
        assert difference.to_numpy() == pytest.approx(expected.to_numpy(), abs=2e-4)
        # A star marks a difference that is larger than its margin.
        assert (has_star == (difference.abs() > margin)).all()
        # Some differences are large enough to notice a wrong sign.
        assert difference.abs().max() > 5e-3


def test_the_page_and_the_output_tell_what_was_compared(comparison: Comparison) -> None:
    page = comparison.page
    assert "From simulated answers" in page.text
    # The curve of the kit's own strategy is drawn last, so that it lies on top.
    assert [chart.titles[-1] for chart in page.charts] == [OWN, OWN]
    facts = dict(page.tables[-1].rows)
    assert facts["Length"] == "10 questions"
    assert re.fullmatch(r"[\d,]+ in 1 mask", facts["Targets"])
    assert f"Targets: {facts['Targets']}" in comparison.output
    assert [name for name, _ in page.tables[-2].rows] == NAMES


# Flags that compare two strategies of choosing questions with one mask. A mask decides which
# answers are hidden from the strategies. The caller appends the number of questions to ask.
TWO = ["--strategies", "most_popular", OWN, "--masks", 1, "--questions"]


def test_only_the_strategies_named_are_played_and_runs_repeat(compare: Compare) -> None:
    first, _ = compare(*TWO, 5)
    second, _ = compare(*TWO, 5)
    # The output ends with the times of both runs, which differ.
    assert second.split("Time")[0] == first.split("Time")[0]
    assert "eddi" not in first


def test_a_limit_of_exposure_holds_unless_the_output_says_otherwise(compare: Compare) -> None:
    _, unlimited = compare(*TWO, 5)
    exposure_without_limit = figures(unlimited, "Largest")["exposure 5"]
    assert exposure_without_limit["most_popular"] > 0.2

    printed, limited = compare(*TWO, 5, "--max_exposure", 0.2)
    exposure = figures(limited, "Largest")["exposure 5"]
    for name in ("most_popular", OWN):
        is_exceeded = exposure[name] > 0.2
        assert (f"{name} exceeds the limit of exposure" in printed) == is_exceeded
    facts = dict(limited.tables[-1].rows)
    assert facts["Limit of exposure"] == "0.2 of the students"


def test_a_test_ends_early_at_its_standard_error(compare: Compare) -> None:
    _, page = compare(*TWO, 12, "--stop_at_error", 0.8)
    assert 1 <= figures(page, "Largest")["length 12"][OWN] < 12
    assert "at a standard error of 0.8" in page.text


# Two strategies of a user. `first_column` has a docstring, which the page shows. `no_text` has no
# docstring.
OWN_STRATEGIES = '''

def first_column(posterior, askable, hidden):
    """The first question of all."""
    return askable.argmax(axis=1)


def no_text(known, askable, hidden):
    return askable.argmax(axis=1)
'''


def test_functions_added_to_strategies_py_are_compared(
    compare: Compare, split_kit: Path, tmp_path: Path
) -> None:
    """A user adds two functions to strategies.py, and the page compares these strategies too.

    The page describes a strategy by the docstring of its function.
    """
    own_kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    with (own_kit / "task_4/strategies.py").open("a", encoding="utf-8") as file:
        file.write(OWN_STRATEGIES)

    played = ["first_column", "random", "no_text"]
    _, page = compare("--questions", 3, "--masks", 1, "--strategies", *played, kit=own_kit)

    accuracy = figures(page, "Accuracy")
    assert set(accuracy.index) == set(played)
    # The table has a row for each of the three strategies. Its two columns are the accuracy after 1
    # question and after 3 questions.
    assert accuracy.shape == (3, 2)
    # The last table but one describes the strategies: a name and a description in each row.
    descriptions = page.tables[-2]
    _, description = descriptions.row("first_column")
    assert description == "The first question of all."


def test_a_comparison_without_the_kits_own_strategy_has_no_table_of_its_lead(
    compare: Compare,
) -> None:
    """The output says how far the kit's own strategy is ahead only if this strategy is played."""
    printed, _ = compare("--questions", 3, "--masks", 1, "--strategies", "random")
    assert "ahead" not in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--questions 500", r"valid_task_4.csv: UserId \d+ has \d+ answers that may be asked"),
        (
            "--input_dir data/train_data --train_data train_task_3_4.csv",
            r"train_task_3_4.csv: holds UserId \d+ of .*valid_task_4.csv \(40 such students\)",
        ),
        # The script refuses an output folder that is a file, before it plays any game.
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
    assert done.returncode == 2
    assert f"error: {reason}" in done.stderr
    assert not list(tmp_path.iterdir())


# Flags that save time: they play one strategy with the students of the public phase, in tests of
# three questions.
SHORT = ["--phase", "public", "--questions", 3, "--strategies", "random"]


@dataclass(frozen=True)
class UnknownData:
    """Answers of unknown origin in two folders, and the record that would make them official."""

    train_data: Path
    test_data: Path
    # The path of the record that data/download.py writes. The file does not exist yet.
    record: Path
    record_text: str


@pytest.fixture
def unknown_data(split_kit: Path, tmp_path: Path) -> UnknownData:
    """Copy simulated answers with other UserIds, so that the kit cannot tell their origin."""
    paths = []
    for name in ("train_data/train_task_3_4.csv", "test_data/test_public_task_4_more_splits.csv"):
        path = tmp_path / name
        path.parent.mkdir()
        answers = pd.read_csv(split_kit / "data" / name)
        answers.assign(UserId=answers["UserId"] + 1_000_000).to_csv(path, index=False)
        paths.append(path)
    [(record, text)] = official_files.record_of(tmp_path, paths).items()
    return UnknownData(tmp_path / "train_data", tmp_path / "test_data", record, text)


def test_simulated_and_other_answers_are_not_mixed(
    split_kit: Path, unknown_data: UnknownData, tmp_path: Path
) -> None:
    for flags in (["--input_dir", unknown_data.train_data], ["--ref_dir", unknown_data.test_data]):
        command = [SCRIPT, "--phase", "public", *flags, "--output_dir", tmp_path]
        assert "is simulated, and " in fails(command, kit=split_kit)


@pytest.mark.parametrize("protocol", ["bobcat", "ncat"])
def test_published_scores_are_not_shown_beside_simulated_answers(
    compare: Compare, protocol: str
) -> None:
    printed, page = compare(*SHORT, "--protocol", protocol)
    assert "in 5 splits" in printed
    assert f"{protocol.upper()}'s protocol" in page.text
    assert "Published" not in page.text


@pytest.mark.parametrize(
    ("protocol", "authors", "n_methods"), [("bobcat", "Ghosh", 3), ("ncat", "Zhuang", 8)]
)
def test_published_scores_are_shown_beside_official_answers_alone(
    unknown_data: UnknownData, compare: Compare, protocol: str, authors: str, n_methods: int
) -> None:
    """The page shows the scores that a paper has published only if it compares official answers.

    `unknown_data` holds answers of unknown origin. The test makes them official by adding them to
    the record of official files.
    """
    folders = ["--input_dir", unknown_data.train_data, "--ref_dir", unknown_data.test_data]
    # SHORT has the flags of a short comparison.
    flags = [*SHORT, *folders, "--masks", 1, "--protocol", protocol]

    _, page = compare(*flags)
    assert "From answers of unknown origin" in page.text
    assert "Published" not in page.text

    # A record of official files that lists the two files makes them official.
    unknown_data.record.write_text(unknown_data.record_text)
    _, page = compare(*flags)
    # The page would say so if the answers were simulated or of unknown origin.
    assert "simulated" not in page.text
    assert "unknown origin" not in page.text
    published = page.table(f"Published ({authors}")
    assert published.columns == ["method", "accuracy", "AUC"]
    assert len(published.rows) == n_methods
    # The accuracies are shares, not percentages.
    assert all(0.5 < float(accuracy) < 0.9 for _, accuracy, _ in published.rows)
