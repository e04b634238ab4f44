"""The local runner: what programs see, how they end, and the leaderboard of a class."""

import csv
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import bundle as worker
import pytest
import toy_bundle
from bundle import Bundle, read_bundle
from conftest import fails, run, succeeds
from page_reading import Page, read_page
from platforms import on_unix
from run_scripts import Done, ends_within

SCRIPT = "hosting/run_locally.py"
# The zip of a submission holds one of these files. The name of the file tells the task: 1, 2 or 4.
FIRST = "submission_task_1.csv"
SECOND = "submission_task_2.csv"
ENTRY = "submission_model_task_4.py"
# Tests give submissions times soon after this one: 2001-09-09 01:46:40 UTC, in seconds since 1970.
START = 1e9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the toy bundle as a folder. Tests share it and must not change it."""
    return toy_bundle.write_folder(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def bundle(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return read_bundle(folder, tmp_path_factory.mktemp("unpacked"))


def play(
    bundle: Bundle, path: Path, members: dict[str, str], task: int = 0, limit: int = 60
) -> worker.Result:
    """Write a zip with these files (texts by name) and score it with the toy bundle.

    The bundle's scoring program does not check predictions. It runs the submitted file as Python.
    """
    toy_bundle.write_zip(path, members)
    return worker.score(path, bundle.tasks[task], bundle, limit)


# ---- One submission ----------------------------------------------------------------------------

LOOKS_AROUND = """
import os
assert sys.argv[1].endswith("/app/input") and sys.argv[2].endswith("/app/output")
program = given.parent / "program"
assert pathlib.Path.cwd() == program and sys.path[0] == str(program)
assert not {"PYTHONPATH", "A_PASSWORD"} & set(os.environ)
assert (given / "ref/file.txt").read_text() == "submission_task_1.csv"
assert sorted(p.name for p in (given / "res").iterdir()) == ["a.txt", "metadata", file.name]
assert "ingestionExitCode: null" in (given / "res/metadata").read_text()
score(1)
"""


def test_programs_see_the_folders_of_the_platform_and_no_password(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("A_PASSWORD", "x")
    result = play(bundle, tmp_path / "a.zip", {FIRST: LOOKS_AROUND, "a.txt": ""})
    assert result.fault == ""


def test_scores_and_page_are_those_that_the_program_writes(bundle: Bundle, tmp_path: Path) -> None:
    source = 'print("only to stdout")\nscore(0.1 + 0.2, standard_error=1, extra=[1])'
    result = play(bundle, tmp_path / "a.zip", {FIRST: source})
    assert (result.fault, result.output) == ("", ())
    # Scores are not rounded. The program also writes a list, `extra`. It is not a number, so it
    # does not count as a score.
    assert result.scores == {"score": 0.1 + 0.2, "standard_error": 1.0}
    assert result.details == f"<p>{0.1 + 0.2}</p>"


def test_a_program_changes_only_copies_of_the_bundle(bundle: Bundle, tmp_path: Path) -> None:
    source = """
for path in (given / "ref/file.txt", pathlib.Path(sys.argv[0])):
    path.write_text("changed")
score(1)
"""
    assert play(bundle, tmp_path / "a.zip", {FIRST: source}).fault == ""
    for name in ("reference_data/task_1_public/file.txt", "scoring_program/score.py"):
        assert (bundle.folder / name).read_text() != "changed"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("(written / 'scores.json').write_text('{}')", worker.NO_SCORES),
        ("sys.exit('error: row 3 is missing')", "row 3 is missing"),
        ("raise ValueError('at ' + str(given))", "ValueError: at /app/input"),
    ],
)
def test_without_valid_scores_a_submission_fails(
    bundle: Bundle, tmp_path: Path, source: str, expected: str
) -> None:
    result = play(bundle, tmp_path / "a.zip", {FIRST: source})
    assert result.scores == {}
    assert expected in result.fault


def test_the_fault_is_what_went_wrong_first(bundle: Bundle, tmp_path: Path) -> None:
    """The ingestion program runs before the scoring program. If both fail, its message counts.

    Here the scoring program fails only because the ingestion program has failed before.
    """
    result = play(bundle, tmp_path / "a.zip", {ENTRY: "fail"}, task=2)
    assert result.scores == {}
    assert result.fault == "the entry failed"
    assert result.output == ("error: the entry failed", "error: no file of the task in the zip")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("metadata.yaml", "holds metadata.yaml: the platform would run the submission"),
        ("metadata", "holds metadata: the platform would run the submission as a "),
    ],
)
def test_a_submission_that_the_platform_would_run_itself_fails(
    bundle: Bundle, tmp_path: Path, name: str, expected: str
) -> None:
    members = {FIRST: "score(1)", name: "command: python3 a.py"}
    result = play(bundle, tmp_path / "a.zip", members)
    assert result.scores == {}
    assert expected in result.fault


# ---- How programs end --------------------------------------------------------------------------

groups_of_processes = on_unix("signals for a group of processes")


@dataclass(frozen=True)
class Parent:
    """A submission whose program starts a child process, which sleeps for ten minutes."""

    # File to which the program writes the id of the child process.
    file: Path
    # The program, as Python.
    source: str

    @property
    def has_started_child(self) -> bool:
        """Whether the program has started the child process."""
        return self.file.exists() and self.file.read_text() != ""

    @property
    def child_id(self) -> int:
        """The id of the child process."""
        return int(self.file.read_text())


@pytest.fixture
def parent(tmp_path: Path) -> Parent:
    """Return a program that starts a child process, writes a score, and ends without waiting."""
    file = tmp_path / "child"
    source = f"""
import os, signal, subprocess, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(file)!r}).write_text(str(child.pid))
score(0.9)
"""
    return Parent(file, source)


@groups_of_processes
def test_a_program_that_takes_too_long_ends_with_what_it_started(
    bundle: Bundle, tmp_path: Path, parent: Parent
) -> None:
    """At the time limit, the runner ends the program of a submission and its child process."""
    # `parent.source` is code that starts the child process. The program of the submission runs this
    # code, and then sleeps for 10 minutes.
    members = {FIRST: f"{parent.source}time.sleep(600)"}
    # On a busy machine, a second may be too short to start the child process. Then the test tries a
    # longer limit.
    for limit in (1, 4, 16, 64):
        result = play(bundle, tmp_path / "a.zip", members, limit=limit)
        assert result.scores == {}
        assert result.fault == f"Execution Time Limit exceeded. Limit was {limit} seconds"
        if parent.has_started_child:
            break
    assert ends_within(parent.child_id)


@groups_of_processes
def test_what_a_program_leaves_running_ends_with_it(
    bundle: Bundle, tmp_path: Path, parent: Parent
) -> None:
    """A program that ends by itself leaves no child process behind."""
    assert play(bundle, tmp_path / "a.zip", {FIRST: parent.source}).scores == {"score": 0.9}
    assert ends_within(parent.child_id)


@groups_of_processes
def test_control_c_ends_what_runs_and_no_score_is_made(
    bundle: Bundle, tmp_path: Path, parent: Parent
) -> None:
    # The program sends SIGINT, the signal of Control-C, to its parent: the process of this test.
    interrupt = "os.kill(os.getppid(), signal.SIGINT)\ntime.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        play(bundle, tmp_path / "a.zip", {FIRST: parent.source + interrupt})
    assert ends_within(parent.child_id)


# ---- The command line --------------------------------------------------------------------------


@pytest.fixture
def two_tasks(tmp_path: Path) -> Path:
    """A submission to tasks 1 and 2."""
    members = {FIRST: "score(0.61239, standard_error=0.01)", SECOND: "score(0.5)"}
    return toy_bundle.write_zip(tmp_path / "a.zip", members)


def test_a_submission_is_scored_on_the_tasks_whose_files_it_holds(
    folder: Path, tmp_path: Path, two_tasks: Path
) -> None:
    output = tmp_path / "out"
    printed = succeeds([SCRIPT, folder, two_tasks, "--output_dir", output])
    assert "Task 1, public: scored\n  Score: 0.6124\n  Standard error: 0.0100\n" in printed
    assert "Task 2, public: scored\n  Score: 0.5000\n" in printed
    assert "Task 4" not in printed
    pages = sorted(page.name for page in output.iterdir())
    assert pages == ["detailed_results_task_1_public.html", "detailed_results_task_2_public.html"]


def test_a_phase_and_tasks_can_be_named(folder: Path, tmp_path: Path, two_tasks: Path) -> None:
    flags = ("--phase", "PRIVATE", "--tasks", 2, "--output_dir", tmp_path / "out")
    printed = succeeds([SCRIPT, folder, two_tasks, *flags])
    assert "Task 2, private: scored" in printed
    assert "Task 1" not in printed


def test_a_bundle_without_a_submission_is_described(folder: Path) -> None:
    _, public, _, columns = succeeds([SCRIPT, folder]).splitlines()
    tasks = "Task 1, public; Task 2, public; Task 4, public"
    assert public == f"Public: from 2026-10-01 00:00:00 to 2026-10-31 23:59:59, 600 s; {tasks}"
    assert columns == "Leaderboard: Score, Standard error, Mask 0, Mask 1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{bundle} {zip} --submissions {tmp}", "expected either a submission or"),
        ("{bundle} {zip} --phase final", "--phase final: the bundle has no such phase"),
        (
            "{bundle} {zip} --phase both",
            "--watch, --site and --phase both: are for --submissions DIR",
        ),
        ("{bundle} {zip} --tasks 3", "--tasks 3: the phase has no such task, expected Task 1"),
        ("{bundle} {zip} --private {tmp}/none.zip", "none.zip: file not found"),
        ("{bundle} --submissions {tmp}/none", "none: not found, expected a folder"),
        ("{bundle} --submissions {bundle}/pages", "pages: holds no submission, expected TEAM.zip"),
    ],
)
def test_wrong_arguments_are_told_in_one_line_and_nothing_is_written(
    folder: Path, tmp_path: Path, arguments: str, expected: str
) -> None:
    path = toy_bundle.write_zip(tmp_path / "a.zip", {FIRST: "score(1)"})
    words = arguments.format(bundle=folder, zip=path, tmp=tmp_path).split()
    assert expected in fails([SCRIPT, *words, "--output_dir", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


# ---- A class -----------------------------------------------------------------------------------


def read_leaderboard(output: Path) -> list[dict[str, str]]:
    """Return the rows of leaderboard.csv."""
    return list(csv.DictReader((output / "leaderboard.csv").read_text().splitlines()))


FAILING = "sys.exit('error: row 3 is <i>')"


@dataclass(frozen=True)
class SchoolClass:
    """Submissions of a school class, which are scored with the toy bundle."""

    base: Path
    bundle: Path

    @property
    def handed_in(self) -> Path:
        """The folder of submissions."""
        return self.base / "in"

    @property
    def output(self) -> Path:
        """The folder that the runner writes to, unless a test names another."""
        return self.base / "out"

    @property
    def log(self) -> Path:
        """A file to which each submission that is scored adds its name."""
        return self.base / "log"

    def submit(self, name: str, minute: int, values: object, member: str = FIRST) -> None:
        """Hand in the zip `name`, with a program that writes `name` to the log and gets a score.

        The zip holds one file, `member`, with the code of the program. The program calls the
        function `score` of the toy bundle. `values` are the arguments of this call, as Python code:
        the score, and perhaps values of other columns of the leaderboard, such as
        "0.7, standard_error=0.2". `minute` is the time of the submission, in minutes after START.
        """
        log_line = f"{name}\n"
        source = f"open({str(self.log)!r}, 'a').write({log_line!r})\nscore({values})"
        toy_bundle.write_zip(self.handed_in / name, {member: source}, START + 60 * minute)

    def score(self, *flags: object, bundle: Path | None = None, output: Path | None = None) -> Done:
        """Run hosting/run_locally.py on all submissions; return how it ended, and its output."""
        places = ("--submissions", self.handed_in, "--output_dir", output or self.output)
        return run([SCRIPT, bundle or self.bundle, *places, *flags])

    def copy(self, folder: Path) -> "SchoolClass":
        """Copy the folder of the class, so that a test may change it; return the copied class."""
        return SchoolClass(Path(shutil.copytree(self.base, folder / "class")), self.bundle)

    def read_page(self) -> Page:
        """Read the page of the leaderboard, which may link to the pages of scores."""
        details = [f"details/{path.name}" for path in (self.output / "details").iterdir()]
        return read_page((self.output / "leaderboard.html").read_text(), details)


@pytest.fixture(scope="module")
def zipped_bundle(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("zipped")
    return Path(shutil.make_archive(str(base / "bundle"), "zip", folder))


def test_a_class_without_a_score_has_an_empty_leaderboard(
    zipped_bundle: Path, tmp_path: Path
) -> None:
    school = SchoolClass(tmp_path, zipped_bundle)
    toy_bundle.write_zip(school.handed_in / "bob/first.zip", {FIRST: FAILING}, START + 60)
    assert school.score().returncode == 2
    assert read_leaderboard(school.output) == []
    page = read_page((school.output / "leaderboard.html").read_text())
    assert "No submission was scored." in page.text


@dataclass(frozen=True)
class ScoredClass:
    """A class whose submissions were scored twice. More of them came in between."""

    school: SchoolClass
    # Exit code and output of the second scoring.
    done: Done
    # The names of the submissions whose programs ran to a score, in the first or the second run.
    names_scored: list[str]


@pytest.fixture(scope="module")
def scored(zipped_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> ScoredClass:
    """Score the submissions of a class twice. Tests share the class and must not change it.

    Teams ann, bob, cid & co and ida are scored on task 1, and ann also on task 2. The submissions
    of gus and hal, which come in before the second run, fail, and so does the first submission of
    bob.

    The competition is the toy bundle of tests/toy_bundle.py. Its scoring program runs a submission
    as Python code, which calls a function `score`.
    """
    school = SchoolClass(tmp_path_factory.mktemp("class"), zipped_bundle)
    hand_in_before_first_run(school)
    school.score()
    hand_in_before_second_run(school)
    done = school.score()
    return ScoredClass(school, done, school.log.read_text().splitlines())


def hand_in_before_first_run(school: SchoolClass) -> None:
    """Hand in a submission that fails, five that are scored on task 1, and one on task 2."""
    # The last argument is the time of the submission, in seconds: one minute after START.
    toy_bundle.write_zip(school.handed_in / "bob/first.zip", {FIRST: FAILING}, START + 60)
    # On task 1, the best score of each team is 0.7. Only ann's is larger, by 1e-12. This difference
    # must not count, because the platform rounds scores to ten decimal places.
    school.submit("ann.zip", minute=1, values="0.7 + 1e-12")
    school.submit("bob/second.ZIP", minute=3, values="0.7, standard_error=0.2")
    school.submit("cid & co.zip", minute=0, values=0.7)
    school.submit("cid & co/worse.zip", minute=2, values=0.5)
    school.submit("ida.zip", minute=4, values="0.7, standard_error=0.1")
    # On task 2, ann gets the score 0.1 + 0.2, and numbers in two other columns of the leaderboard,
    # mask_0 and mask_1. All these numbers have many digits, and all digits must be written.
    values = "0.1 + 0.2, mask_0=1 / 3, mask_1=1 / 8"
    school.submit("ann/model.zip", minute=1, values=values, member=SECOND)


def hand_in_before_second_run(school: SchoolClass) -> None:
    """Hand in two submissions that fail, and two files that are no submissions."""
    # Among the submissions that fail, gus handed in the earliest one and hal the latest one.
    failing = {FIRST: FAILING, SECOND: FAILING}
    toy_bundle.write_zip(school.handed_in / "hal.zip", failing, START + 80)
    # A zip is longer than two bytes, so this file is no valid zip.
    (school.handed_in / "gus.zip").write_bytes(b"PK")
    os.utime(school.handed_in / "gus.zip", (START, START))
    for name in ("notes.txt", "._ann.zip"):
        (school.handed_in / name).touch()


def test_faults_of_a_class_are_told_in_the_order_of_their_times(scored: ScoredClass) -> None:
    assert scored.done.returncode == 2
    assert scored.done.stderr.splitlines() == [
        "error: gus.zip: is not a zip file, or is cut off",
        "error: bob/first.zip: Task 1, public: row 3 is <i>",
        "error: hal.zip: Task 1, public: row 3 is <i>",
        "error: hal.zip: Task 2, public: row 3 is <i>",
    ]
    assert "note: notes.txt is no zip, and is left out" in scored.done.stdout


def test_stray_files_are_no_submissions(zipped_bundle: Path, tmp_path: Path) -> None:
    school = SchoolClass(tmp_path, zipped_bundle)
    school.submit("ann.zip", minute=1, values=0.7)
    for name in ("._ann.zip", "ann.zip~", "Thumbs.db", "desktop.ini", "~$ann.zip"):
        school.submit(name, minute=2, values=0.7)
    printed = school.score().stdout
    for name in ("ann.zip~", "Thumbs", "ini"):
        assert name not in printed
    assert {row["team"] for row in read_leaderboard(school.output)} == {"ann"}


def test_teams_whose_names_hardly_differ_are_named(zipped_bundle: Path, tmp_path: Path) -> None:
    """A team that spells its name in two ways counts as two teams, with twice as many submissions.

    So the runner prints a note about names that hardly differ.
    """
    school = SchoolClass(tmp_path, zipped_bundle)
    for name in ("Team A.zip", "team_a.zip", "team b.zip"):
        school.submit(name, minute=1, values=0.7)
    printed = school.score().stdout
    assert "note: Team A and team_a count as different teams; if they are one" in printed
    assert "team b count" not in printed


def test_nothing_is_scored_twice(scored: ScoredClass) -> None:
    assert "10 results: 6 scored, 4 failed; 6 of them reused" in scored.done.stdout
    assert len(scored.names_scored) == len(set(scored.names_scored)) == 6


def test_the_leaderboard_is_printed_with_ranks(scored: ScoredClass) -> None:
    expected = "   2  bob       0.7000 ± 0.2000\n   3  cid & co  0.7000\n"
    assert expected in scored.done.stdout
    assert scored.done.stdout.count("      (±: standard error)\n") == 1


def test_the_file_of_the_leaderboard_holds_scores_to_the_last_digit(scored: ScoredClass) -> None:
    """Team ann has the score 0.1 + 0.2 on task 2, and the scores 1 / 3 and 1 / 8 for two masks."""
    rows = read_leaderboard(scored.school.output)
    # Rows 0 to 3 are the four teams of task 1. Row 4 is ann, the only team of task 2.
    assert rows[4] == {
        "task": "2",
        "phase": "Public",
        "rank": "1",
        "team": "ann",
        # The repr of a float has all digits: 0.30000000000000004.
        "score": repr(0.1 + 0.2),
        "standard_error": "",
        "mask_0": repr(1 / 3),
        "mask_1": "0.125",
        "submissions": "1",
        # One minute after START.
        "time": "2001-09-09T01:47:40+00:00",
        "file": "ann/model.zip",
    }


def test_the_best_submission_of_each_team_counts_and_ties_go_to_the_smaller_error(
    scored: ScoredClass,
) -> None:
    """Teams with equal scores are ordered by standard error, and then by time.

    Teams with a known standard error come first, the smallest standard error before larger ones. On
    task 1, the best scores of all four teams are 0.7; the score 0.7 + 1e-12 of ann counts as equal.
    The standard error of ida is 0.1, and the standard error of bob is 0.2. The scores of cid & co
    and of ann have no standard error, and cid & co came first.
    """
    page = scored.school.read_page()
    # Teams ann, bob and cid & co have handed in two zips each, and teams ida, gus and hal one each.
    assert "Public phase: 9 submissions of 6 teams; written " in page.text
    task_1 = page.tables[0]
    assert task_1.heading == "Task 1, public"
    assert task_1.columns[2:4] == ["Score", "submissions"]
    # A row holds the rank, the team, the score, the number of submissions that were scored, the
    # time of the best one (0 to 4 minutes after START, 01:46) and a link.
    assert task_1.rows == [
        ["1", "ida", "0.7000 ± 0.1000", "1", "2001-09-09 01:50", "page"],
        ["2", "bob", "0.7000 ± 0.2000", "1", "2001-09-09 01:49", "page"],
        ["3", "cid & co", "0.7000", "2", "2001-09-09 01:46", "page"],
        ["4", "ann", "0.7000", "1", "2001-09-09 01:47", "page"],
    ]


def test_the_page_has_a_table_of_masks(scored: ScoredClass) -> None:
    _, _, masks, _ = scored.school.read_page().tables
    assert masks.heading == "Mask 0 to Mask 1"
    assert masks.columns == ["team", "Mask 0", "Mask 1"]
    assert masks.rows == [["ann", "0.333", "0.125"]]


def test_the_page_shows_once_what_failed_alike_on_several_tasks(scored: ScoredClass) -> None:
    """The page lists failed submissions. One that fails alike on two tasks has one row, not two."""
    _, _, _, failed = scored.school.read_page().tables
    # The third column is the time of the submission.
    shown = [(file, tasks, fault) for file, tasks, _, fault in failed.rows[1:]]
    assert shown == [
        ("bob/first.zip", "Task 1, public", "row 3 is <i>"),
        ("hal.zip", "Task 1, public; Task 2, public", "row 3 is <i>"),
    ]


def test_only_a_task_with_several_teams_has_a_chart(scored: ScoredClass) -> None:
    (chart,) = scored.school.read_page().charts
    assert chart.titles == [f"{team}: 0.7000" for team in ("ida", "bob", "cid & co", "ann")]


def test_the_page_links_to_the_page_of_each_team_s_best_score(scored: ScoredClass) -> None:
    page = scored.school.read_page()
    links = [link for link in page.references if link.startswith("details/")]
    pages = [(scored.school.output / link).read_text() for link in links]
    # The pages are in the order of the leaderboard: the four teams on task 1, of which ann is the
    # last, and then ann on task 2.
    scores = [0.7, 0.7, 0.7, 0.7 + 1e-12, 0.1 + 0.2]
    assert pages == [f"<p>{score}</p>" for score in scores]


def test_a_submission_of_the_next_day_is_added_and_failed_ones_are_tried_again(
    scored: ScoredClass, tmp_path: Path
) -> None:
    """Every run scores new submissions, and also tries those again that have failed before.

    Perhaps they failed only because the machine was busy.
    """
    school = scored.school.copy(tmp_path)
    school.submit("fay.zip", 9, 0.9)
    assert "11 results: 7 scored, 4 failed; 6 of them reused" in school.score().stdout
    ranking = [(row["team"], row["score"]) for row in read_leaderboard(school.output)]
    assert ranking[:2] == [("fay", "0.9"), ("ida", "0.7")]
    assert len(ranking) == 6


def test_nothing_is_said_of_submissions_to_other_tasks_than_those_named(
    scored: ScoredClass, tmp_path: Path
) -> None:
    done = scored.school.score("--tasks", 2, output=tmp_path / "task_2")
    assert "bob" not in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert [row["team"] for row in read_leaderboard(tmp_path / "task_2")] == ["ann"]


def test_scores_are_not_reused_for_another_phase(scored: ScoredClass, tmp_path: Path) -> None:
    school = scored.school.copy(tmp_path)
    assert "0 of them reused" in school.score("--tasks", 2, "--phase", "private").stdout


def test_scores_are_not_reused_for_another_bundle(
    scored: ScoredClass, folder: Path, tmp_path: Path
) -> None:
    school = scored.school.copy(tmp_path)
    changed = Path(shutil.copytree(folder, tmp_path / "changed"))
    (changed / "public_data.zip").write_text("another")
    assert "0 of them reused" in school.score("--tasks", 2, bundle=changed).stdout


def scores_as_text(record: str) -> str:
    """Return a record of scores, a line of JSON, with each number as text."""
    content = json.loads(record)
    content["scores"] = {name: str(value) for name, value in content["scores"].items()}
    return json.dumps(content)


def test_only_damaged_records_of_scores_are_not_reused(scored: ScoredClass, tmp_path: Path) -> None:
    """The local runner records scores, and reuses them in its next run.

    A submission whose record is damaged is scored again. Three records are damaged here: the page
    that the first record names is deleted, the scores in the second record become text, and the
    last record is cut off.
    """
    school = scored.school.copy(tmp_path)
    records_file = school.output / "leaderboard_results.jsonl"
    # A record is a line of JSON about one submission to a task.
    records = records_file.read_text().splitlines()
    scored_records = [record for record in records if not json.loads(record)["fault"]]
    # The first, the second and the last record are to be damaged; the others stay whole.
    first, second, *whole, last = scored_records
    to_be_damaged = [json.loads(record) for record in (first, second, last)]
    # Delete the page about the first score. The record names it under "details".
    (school.output / json.loads(first)["details"]).unlink()
    # Also add a line that is valid JSON, but not a record.
    stray_line = "[]"
    cut_off = last[:30]
    lines = [stray_line, first, scores_as_text(second), *whole, cut_off]
    records_file.write_text("\n".join(lines))

    printed = school.score().stdout

    assert f"{len(whole)} of them reused" in printed
    # For each submission that it scores again, the run adds a record at the end of the file.
    added_lines = records_file.read_text().splitlines()[len(lines) :]
    added = [json.loads(line) for line in added_lines]
    scored_again = {record["submission"] for record in added if not record["fault"]}
    assert scored_again == {record["submission"] for record in to_be_damaged}


# ---- A whole event -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A competition of four days, in which submissions are scored every day."""

    base: Path
    # Exit code and output of the run that watches the folder until Control-C.
    done: Done
    # Number of teams on the public leaderboard when each day ends.
    n_teams_by_day: list[int]
    # Names of the files on the public site before the organiser publishes the private phase.
    published: list[str]

    @property
    def site(self) -> Path:
        return self.base / "site"

    def leaderboard(self, phase: str) -> list[tuple[str, str, str, str]]:
        """Return the team, file, score and phase in each row of a phase's leaderboard."""
        output = {"public": "out", "private": "out_private"}[phase]
        rows = read_leaderboard(self.base / output)
        return [(row["team"], row["file"], row["score"], row["phase"]) for row in rows]


@dataclass(frozen=True)
class Submission:
    """A zip that a team hands in during the competition."""

    # The name of the zip: TEAM.zip, or TEAM/ANY.zip.
    name: str
    # The score that it gets on task 1.
    score: float
    # When it is handed in, in minutes after START.
    minute: int


# The submissions that come in after the first and after the third day. A phase counts a team's last
# two submissions, so the first one of bob does not count.
SUBMISSIONS_AFTER_DAY = {
    1: [
        Submission("=ann.zip", score=0.6, minute=1),
        Submission("bob/0.zip", score=0.9, minute=0),
        Submission("bob/1.zip", score=0.5, minute=1),
        Submission("bob/2.zip", score=0.4, minute=2),
    ],
    3: [Submission("cid.zip", score=0.3, minute=1)],
}
LAST_DAY = 4
# The value of --watch: after this number of seconds, the runner looks for new submissions again.
WATCH_SECONDS = 60


class EventDays:
    """The four days of a competition, which pass without waiting.

    With --watch, the runner scores the folder of submissions, sleeps, and begins again. In the
    test, each of these sleeps ends a day: `end_day` replaces `time.sleep`.
    """

    def __init__(self, handed_in: Path, output: Path) -> None:
        self.handed_in = handed_in
        self.output = output
        # Number of teams on the public leaderboard when each day ends.
        self.n_teams_by_day: list[int] = []
        self._real_sleep = time.sleep

    def end_day(self, seconds: float) -> None:
        """End a day of the competition without sleeping; the runner calls this as `time.sleep`.

        At the end of a day, count the teams on the leaderboard, and hand in the submissions for the
        next day. At the end of the last day, raise KeyboardInterrupt, as Control-C does.
        """
        if seconds < WATCH_SECONDS:
            # The runner also sleeps for a short time to wait for a program. That ends no day.
            self._real_sleep(seconds)
            return
        is_scored = self.output.exists()
        n_teams = len(read_leaderboard(self.output)) if is_scored else 0
        self.n_teams_by_day.append(n_teams)
        # The number of the day that ends, counted from 1.
        day = len(self.n_teams_by_day)
        if day == LAST_DAY:
            raise KeyboardInterrupt
        for submission in SUBMISSIONS_AFTER_DAY.get(day, []):
            toy_bundle.write_zip(
                self.handed_in / submission.name,
                {FIRST: f"score({submission.score})"},
                START + 60 * submission.minute,
            )


@pytest.fixture(scope="module")
def event(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Event:
    """Run a competition until its last day, and then publish the private leaderboard.

    Tests share the result and must not change it.
    """
    base = tmp_path_factory.mktemp("event")
    handed_in = base / "in"
    handed_in.mkdir()
    days = EventDays(handed_in, base / "out")
    command = [SCRIPT, folder, "--submissions", handed_in, "--site", base / "site"]
    with pytest.MonkeyPatch.context() as patch:
        # With --watch, the script sleeps between two looks at the folder. Here it does not sleep:
        # `end_day` is called instead, so that the next look happens on the next day.
        patch.setattr(time, "sleep", days.end_day)
        watch_flags = ("--phase", "both", "--output_dir", base / "out", "--watch", WATCH_SECONDS)
        done = run([*command, *watch_flags])
    published = [path.name for path in (base / "site").rglob("*")]
    # Now the organiser publishes the private leaderboard.
    succeeds([*command, "--phase", "private", "--output_dir", base / "final"])
    return Event(base, done, days.n_teams_by_day, published)


def test_an_event_ends_with_control_c(event: Event) -> None:
    assert event.done.returncode == 130
    assert event.done.stderr == "stopped\n"


def test_an_event_is_scored_only_when_something_comes_in(event: Event) -> None:
    assert event.n_teams_by_day == [0, 2, 2, 3]
    # The runner prints "results: " each time it scores a phase. On days 2 and 4, there are new
    # submissions, and it scores two phases: 4 times in all. On days 1 and 3, there are none.
    assert event.done.stdout.count("results: ") == 4
    assert "4 results: 4 scored, 0 failed; 3 of them reused" in event.done.stdout


@pytest.mark.parametrize("phase", ["public", "private"])
def test_the_last_submissions_of_a_team_count_in_each_phase(event: Event, phase: str) -> None:
    note = "note: 1 earlier submissions are left out: only the last 2 of each"
    assert note in event.done.stdout
    name = phase.capitalize()
    assert event.leaderboard(phase) == [
        # The team is called =ann. The apostrophe keeps spreadsheets from reading a formula.
        ("'=ann", "'=ann.zip", "0.6", name),
        ("bob", "bob/1.zip", "0.5", name),
        ("cid", "cid.zip", "0.3", name),
    ]


def test_the_private_phase_is_published_only_when_it_is_asked_for_by_itself(event: Event) -> None:
    assert "leaderboard_public.html" in event.published
    assert not any("private" in name for name in event.published)
    assert (event.site / "leaderboard_private.html").exists()


@pytest.mark.parametrize(
    "name", ["index.html", "terms.html", "leaderboard_public.html", "leaderboard_private.html"]
)
def test_every_link_of_the_site_leads_to_one_of_its_files(event: Event, name: str) -> None:
    page = Page((event.site / name).read_text())
    links = [link for link in page.references if not link.startswith(("#", "data:"))]
    assert links
    assert all((event.site / link).is_file() for link in links)


def test_the_site_shows_the_pages_of_the_bundle(event: Event) -> None:
    page = Page((event.site / "index.html").read_text())
    assert "Text with code & strong words. one two" in page.text
    assert page.tables[0].columns == ["file", "holds"]
    assert page.tables[0].rows == [["a", "b"]]
