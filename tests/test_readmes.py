"""Every command in a README runs, in order, in a kit with tiny data; every link leads somewhere."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import PAGES, ROOT, commands, run_page_command, shorten
from recorded import recorded_doubts

# WRITE_YOUR_OWN_ENTRY.md has its test in test_write_your_own_entry.py.
WITH_COMMANDS = [page for page in PAGES if "WRITE" not in page.name and commands(ROOT / page)]
RELATED = Path("related_challenges")
CHALLENGES = ["cloze", "debiasing", "science_exam", "student_response"]
# The READMEs of the related challenges have commands that name folders of real files (keys). In the
# tests, copies of folders of simulated files (values) replace them.
REAL_FOLDERS = {
    "CLICKS": "debiasing/data/train_data",
    "EXAM": "science_exam/data/train_data",
    "5way/beetle": "student_response/data/test_data",
    "5way/beetle/train/Core": "student_response/data/train_data",
}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
def test_commands_run_in_order(page: Path, tiny_kit: Path) -> None:
    """All commands in the blocks of code of a page run without error, in a kit with tiny data.

    If a command scores a submission, the record of scores must hold no doubts about this score.
    """
    has_scored = False
    for program, *arguments in commands(ROOT / page):
        assert program in ("python", "python3")
        if arguments[0] == "quickstart.py":
            # tests/test_quickstart.py tests the quickstart. The command `quickstart.py --test`
            # would run this test again.
            continue
        done = run_page_command(page, arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        has_scored |= arguments[0].endswith("local_evaluation.py")
    if has_scored:
        assert recorded_doubts(tiny_kit) == []


def indented_commands(page: Path) -> list[list[str]]:
    """Return the commands in the indented blocks of a page, as words after `python`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [shlex.split(line) for line in re.findall(r"^    python (.+)$", text, re.MULTILINE)]


@pytest.mark.slow
@pytest.mark.parametrize("challenge", CHALLENGES)
def test_commands_of_a_related_challenge_run_in_order(challenge: str, tiny_kit: Path) -> None:
    """The README of a related challenge shows its commands in indented blocks.

    In some commands, a word such as CLICKS stands for a folder of real files. The test puts a
    folder of simulated files in its place; `REAL_FOLDERS` says which folder. In the end, the record
    of scores must hold no doubts about a score.
    """
    folder = RELATED / challenge
    if challenge == "debiasing":
        save_time(tiny_kit, folder.as_posix())
    for arguments in indented_commands(folder / "README.md"):
        if arguments[0].endswith("unpack.py"):
            # This command needs zips with passwords. test_debiasing_unpack.py makes such zips and
            # tests the script.
            continue
        copy_named_folders(tiny_kit, arguments)
        if "SEASON" in arguments:
            # The command scores all submissions of a competition, whose folder is called SEASON.
            submission = tiny_kit / folder / "data/test_output/submission.csv"
            make_season(tiny_kit / "SEASON", submission)
        done = run_page_command(folder / "README.md", arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
    assert recorded_doubts(tiny_kit) == []


def copy_named_folders(kit: Path, arguments: list[str]) -> None:
    """If a command names a folder of real files, put a folder of simulated files in its place."""
    for name, source in REAL_FOLDERS.items():
        if name in arguments and not (kit / name).exists():
            shutil.copytree(kit / RELATED / source, kit / name)


def make_season(season: Path, submission: Path) -> None:
    """Make the folder of a competition (a season), in which one team has made one submission.

    The folder of a season holds a folder for each team. The name of a submission is its time in
    seconds since 1970, here a time in the last phase of the challenge debiasing.
    """
    team = season / "team"
    team.mkdir(parents=True)
    shutil.copyfile(submission, team / "1591400000.csv")


def save_time(kit: Path, debiasing: str) -> None:
    """Simulate few users for debiasing, and let its model have few trees.

    The model's score does not matter, because no test reads the score.
    """
    shorten(kit, f"{debiasing}/generate_sample.py", r"N_USERS = \d+", "N_USERS = 300")
    boosting = f"{debiasing}/sample_model_gradient_boosting.py"
    shorten(kit, boosting, r'"max_iter": \d+', '"max_iter": 5')


def test_commands_of_the_page_of_related_challenges_run_in_order(tiny_kit: Path) -> None:
    """The page begins with the quickstart, which simulates the data.

    The test does not run the quickstart, and instead simulates the data of cloze by its script.
    """
    run_page_command(RELATED, ["related_challenges/cloze/generate_sample.py"], tiny_kit)
    for arguments in indented_commands(RELATED / "README.md"):
        done = run_page_command(RELATED, arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"


@pytest.mark.files
@pytest.mark.parametrize("page", [*PAGES, Path("walkthrough.ipynb")], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (ROOT / page.parent / target).exists(), target


@pytest.mark.files
def test_scores_in_readmes_are_also_in_the_pages_of_measurements() -> None:
    """Every score in the last cell of a row in a README is also in tests/benchmarks/*.md."""
    pages = (ROOT / "tests/benchmarks").glob("*.md")
    measurements = "".join(path.read_text(encoding="utf-8") for path in pages)
    readmes = [page for page in PAGES if page.name == "README.md" and page.parts[0] != "tests"]
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in readmes)
    # A score is, for example, "0.7412" or "0.7412 ± 0.0011".
    scores = re.findall(r"\| (0\.\d+(?: ± 0\.\d+)?) \|$", text, re.MULTILINE)
    # The READMEs show more than 30 scores. If fewer are found, the pattern no longer fits.
    assert len(scores) > 30

    def is_measured(score: str) -> bool:
        # The pages of measurements may show a score in bold, i.e. after "**".
        return f" {score} " in measurements or f"**{score}" in measurements

    assert [score for score in scores if not is_measured(score)] == []
