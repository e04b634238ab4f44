"""`compare_strategies.py` run as a user runs it, on tiny simulated data."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run_python
from page_reading import read_page as check_page

Fails = Callable[..., str]
SCRIPT = "task_4/compare_strategies.py"
NAMES = (
    "random",
    "most_popular",
    "maximum_information",
    "kullback_leibler",
    "model_change",
    "uncertainty",
    "eddi",
    "most_right_predictions",
)
SHORT = ["--questions", 5, "--masks", 2]


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with a local split, which tests only read from."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("strategies") / "kit"))
    assert run_python(["task_4/local_data_split.py"], kit=kit).returncode == 0
    return kit


def compare(kit: Path, output: Path, *flags: object) -> tuple[str, str]:
    """Run the script; return what it printed and its page."""
    done = run_python([SCRIPT, *flags, "--output_dir", output], kit=kit)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    page = (output / "strategies_task_4.html").read_text(encoding="utf-8")
    check_page(page)
    return done.stdout, page


def read_row(printed: str, table: str, name: str) -> list[float]:
    block = printed.split(f"\n{table}")[1].split("\n\n")[0]
    (line,) = (line for line in block.splitlines() if line.startswith(f"{name} "))
    return [float(cell) for cell in line.split()[1:]]


def test_every_strategy_is_played_by_both_rules(kit: Path, tmp_path: Path) -> None:
    flags = ["--phase", "public", *SHORT, "--targets_queryable"]
    printed, page = compare(kit, tmp_path, *flags)
    strict, asked = printed.split("Targets may be asked\n")
    for name in NAMES:
        for part in (strict, asked):
            accuracy = read_row(part, "Accuracy", name)
            # After 1, 3 and 5 questions, and a deviation.
            assert len(accuracy) == 4
            assert all(0.4 < value < 0.9 for value in accuracy[:-1])
            assert 0.5 < read_row(part, "AUC", name)[2] < 0.95
            exposure, overlap, bank = read_row(part, "Largest", name)
            assert 0 < overlap <= exposure <= 1
            assert 0 < bank <= 1
        assert f'<th scope="row">{name}' in page.replace("<wbr>", "")
    # What is asked is known, not predicted.
    assert read_row(asked, "Accuracy", NAMES[-1])[2] > read_row(strict, "Accuracy", NAMES[-1])[2]
    assert len(re.findall(r"[+-]0\.\d{4} ± 0\.\d{4}", printed)) == 2 * (len(NAMES) - 1)
    assert "From simulated answers" in page
    assert page.count("<svg") == 2
    for sentence in ("A question at random", "the largest information reward", "Time"):
        assert sentence in page


def test_it_repeats_and_flags_have_an_effect(kit: Path, tmp_path: Path) -> None:
    base = [*SHORT, "--strategies", "most_popular", "most_right_predictions"]
    first, _ = compare(kit, tmp_path, *base)
    again, _ = compare(kit, tmp_path, *base)
    assert first.split("Time")[0] == again.split("Time")[0]
    assert "eddi" not in first

    limited, page = compare(kit, tmp_path, *base, "--max_exposure", 0.2)
    assert read_row(first, "Largest", "most_popular")[0] > 0.2
    for name in ("most_popular", "most_right_predictions"):
        if f"{name} exceeds" not in limited:
            assert read_row(limited, "Largest", name)[0] <= 0.2
    assert "0.2 of the students" in page

    longer = ["--questions", 12, *base[2:]]
    stopped, page = compare(kit, tmp_path, *longer, "--stop_at_error", 0.8)
    *_, length = read_row(stopped, "Largest", "most_right_predictions")
    assert 1 <= length < 12
    assert "at a standard error of 0.8" in page


def test_a_new_function_shows_up(kit: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(kit, tmp_path / "kit"))
    with (own / "task_4/strategies.py").open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef first_column(posterior, askable, hidden):\n"
            '    """The first question of all."""\n    return askable.argmax(axis=1)\n'
            "\n\ndef untold(posterior, askable, hidden):\n    return askable.argmax(axis=1)\n"
        )
    flags = ["--questions", 3, "--masks", 1, "--strategies", "first_column", "random", "untold"]
    printed, page = compare(own, tmp_path, *flags)
    assert len(read_row(printed, "Accuracy", "first_column")) == 2
    assert "The first question of all." in page
    assert "None" not in page
    # There is nothing to compare with the kit's own strategy.
    assert "ahead" not in printed


@pytest.mark.parametrize("protocol", ["bobcat", "ncat"])
def test_protocols(kit: Path, tmp_path: Path, protocol: str) -> None:
    flags = ["--phase", "public", "--protocol", protocol, "--questions", 5]
    printed, page = compare(kit, tmp_path, *flags, "--strategies", "random", "uncertainty")
    assert "in 5 splits" in printed
    assert f"{protocol.upper()}&#x27;s protocol" in page
    # Published figures of real students never stand beside simulated ones.
    assert "Published" not in page
    assert "0.6804" not in page
    assert "0.703" not in page


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--strategies", "best"], r"--strategies is best, expected some of random, most_popular"),
        (["--questions", 500], r"valid_task_4.csv: UserId \d+ has \d+ answers that may be asked"),
        (["--protocol", "bobcat", "--targets_queryable"], r"--targets_queryable: no protocol"),
        (["--phase", "private", "--ref_dir", "nowhere"], r"nowhere.*not found"),
        (["--train_data", "other.csv"], r"other.csv.*not found"),
        (
            ["--input_dir", "data/train_data", "--train_data", "train_task_3_4.csv"],
            r"valid_task_4.csv: UserId \d+ is in the training files too \(40 such students\)",
        ),
    ],
)
def test_errors_in_one_line(
    kit: Path, fails: Fails, tmp_path: Path, flags: list[object], message: str
) -> None:
    found = fails([SCRIPT, *flags, "--output_dir", tmp_path], kit=kit, cwd=kit)
    assert re.search(message, found), found
    assert not list(tmp_path.iterdir())


def test_where_no_page_can_be_written_no_game_is_played(
    kit: Path, fails: Fails, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    found = fails([SCRIPT, "--questions", 500, "--output_dir", file], kit=kit, cwd=kit)
    assert f"{file}: is no folder" in found


def test_real_and_simulated_answers_are_not_mixed(kit: Path, fails: Fails, tmp_path: Path) -> None:
    # What a user has changed counts as real.
    for name in ("train_data/train_task_3_4.csv", "test_data/test_public_task_4_more_splits.csv"):
        (tmp_path / name).parent.mkdir()
        text = (kit / "data" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [SCRIPT, "--phase", "public", "--output_dir", tmp_path]
    for flags in (["--input_dir", tmp_path / "train_data"], ["--ref_dir", tmp_path / "test_data"]):
        assert "is simulated, and " in fails([*command, *flags], kit=kit)


def test_catsim_is_asked_for_in_one_line(fails: Fails, tmp_path: Path) -> None:
    message = fails(["tests/benchmarks/task_4_catsim.py", tmp_path])
    assert "`pip install --target " in message
