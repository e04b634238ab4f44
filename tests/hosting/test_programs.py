"""The programs run as on the platform: what each phase shows, and who gets no score."""

import copy
import json
import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import layout
from common.adaptive.entry_files import ENTRY_FILE

import pandas as pd
import pytest
import yaml
from bundle import Bundle, Task, read_bundle, score
from page_reading import Page, read_page
from platforms import on_unix
from run_scripts import PATIENCE, run_script
from toy_bundle import entry, make_bundles, submission_for, write_zip

# The file that the ingestion program of task 4 hands to the scoring program.
RECORD = "played_task_4.json"
# The first and the last day of a competition in the past. So both phases have begun. The private
# phase is the last seven days.
PAST_DAYS = ("--start", "2020-02-01", "--end", "2020-03-31")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a competition bundle for each task: bundle_task_1, bundle_task_2, ….

    The bundles do not hold the private answers. Tests share the folder and must not change it.
    """
    folder = tmp_path_factory.mktemp("bundles")
    return make_bundles(folder, "--size", "tiny", "--contact", "a@b.org", *PAST_DAYS).parent


def valid_files(bundle: Path, task: int) -> dict[str, str]:
    """Return the files of a valid submission to a task: their texts, by name."""
    if task == 4:
        # After scoring, the evaluation plays the games again to draw a chart. To save this time,
        # the entry fails as soon as it is played again: `update_model` is then called without
        # `select_questions`, so `self.asked` is missing.
        return entry(select="self.asked = True", update="self.asked")
    shutil.unpack_archive(bundle / "public_data.zip", bundle.parent / "public_data")
    return submission_for(bundle.parent / "public_data/submission_templates", task)


@dataclass(frozen=True)
class Scored:
    """Result of the scoring program."""

    # Text that the program prints on stdout.
    printed: str
    # Text that the program prints on stderr.
    error: str
    # The numbers in scores.json, by name: the score and, for example, its standard error. None if
    # the program has not written this file.
    scores: dict[str, float] | None
    page: Page


class PlatformRun:
    """The platform's two steps for a submission: ingestion and scoring.

    The programs of the bundle run in this process, with this kit's `common` instead of the copy in
    the bundle.
    """

    def __init__(self, bundle: Path, task: int, phase: str, files: dict[str, str]) -> None:
        """Lay out the folders of a submission; for task 4, run the ingestion program.

        `files` holds the texts of the submission's files, by name.
        """
        # Find a name that no earlier run has used. Every run adds a folder beside the bundle, so
        # count what lies there.
        n_beside_bundle = len(list(bundle.parent.iterdir()))
        self.base = bundle.parent / f"run_{n_beside_bundle}"
        self.bundle = bundle
        self.phase = phase
        # The platform passes two exit codes to the scoring program: that of the ingestion program,
        # and that of the submission's own program ("exitCode"). A submission may not have such a
        # program. None means that the program did not run.
        self.status: dict[str, Any] = {"exitCode": None, "ingestionExitCode": None}
        # The stderr of the ingestion program.
        self.ingestion_error = ""
        shutil.copytree(bundle / f"reference_data/task_{task}_{phase}", self.base / "input/ref")
        # As on the platform, the submitted files are copied to two folders below `self.base`. The
        # ingestion program reads the folder `submitted`, and writes its record of the games to the
        # folder `result`. The scoring program reads the folder `result`.
        for folder in (self.submitted, self.result):
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text)
        if task == 4:
            self.ingestion_error = self.ingest()

    @property
    def submitted(self) -> Path:
        """The folder of the submitted files."""
        return self.base / "submitted"

    @property
    def result(self) -> Path:
        """The folder that the scoring program reads.

        It holds the submitted files and what the ingestion program has written.
        """
        return self.base / "input/res"

    def copy(self, folder: Path) -> "PlatformRun":
        """Return a copy of this run in another folder, which a test may change."""
        other = copy.copy(self)
        other.base = Path(shutil.copytree(self.base, folder / self.base.name))
        other.status = dict(self.status)
        return other

    def ingest(self) -> str:
        """Run the ingestion program; return what it prints on stderr."""
        program = self.bundle / f"ingestion_program/{self.phase}/ingest.py"
        folders = (self.bundle / "input_data/task_4", self.submitted, self.result)
        done = run_script([program, *folders], kit=program.parent)
        self.status["ingestionExitCode"] = done.returncode
        return done.stderr.strip()

    def score(self) -> Scored:
        """Run the scoring program on the files in the folder `result`; return its outputs."""
        output = self.base / "output"
        shutil.rmtree(output, ignore_errors=True)
        # As on the platform, the file `metadata` tells the scoring program how the earlier programs
        # have ended.
        (self.result / "metadata").write_text(yaml.safe_dump(self.status))
        program = self.bundle / "scoring_program/score.py"
        done = run_script([program, self.base / "input", output], kit=program.parent)
        file = output / "scores.json"
        scores = json.loads(file.read_text()) if file.exists() else None
        # The program must write scores if it succeeds, and only then.
        has_succeeded = done.returncode == 0
        has_scores = scores is not None
        assert has_succeeded == has_scores, done.stderr
        page = read_page((output / "detailed_results.html").read_text())
        return Scored(done.stdout.strip(), done.stderr.strip(), scores, page)


def test_hosted_loops_with_a_progress_bar_visit_every_item() -> None:
    tqdm = runpy.run_path(str(layout.ROOT / "hosting/programs/tqdm.py"))["tqdm"]
    assert list(tqdm([1, 2], desc="Steps", disable=None)) == [1, 2]
    with tqdm(total=2, desc="Steps", leave=None) as bar:
        bar.set_postfix_str("loss 0.5", refresh=False)
        bar.update()
        bar.close()


# ---- Bundles of single tasks -------------------------------------------------------------------


def test_each_task_has_a_bundle_and_a_zip_of_private_answers(bundles: Path) -> None:
    names = sorted(path.name for path in bundles.glob("*.zip"))
    expected = []
    for task in (1, 2, 3, 4):
        expected += [f"bundle_task_{task}.zip", f"bundle_task_{task}_private.zip"]
    assert names == expected


def read_description(bundles: Path, task: int) -> dict[str, Any]:
    """Return what competition.yaml in the bundle of a task says."""
    text = (bundles / f"bundle_task_{task}/competition.yaml").read_text()
    description: dict[str, Any] = yaml.safe_load(text)
    return description


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_a_bundle_describes_its_task_alone(bundles: Path, task: int) -> None:
    description = read_description(bundles, task)
    names = [described["name"] for described in description["tasks"]]
    assert names == [f"Task {task}, {phase}" for phase in layout.PHASES]
    page = (bundles / f"bundle_task_{task}/pages/overview.md").read_text()
    assert f"**Task {task}" in page


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_a_bundle_names_the_address_for_questions(bundles: Path, task: int) -> None:
    assert read_description(bundles, task)["contact_email"] == "a@b.org"
    page = (bundles / f"bundle_task_{task}/pages/overview.md").read_text()
    assert "\nQuestions: a@b.org\n" in page


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_the_leaderboard_of_a_single_task_keeps_the_best_submission(
    bundles: Path, task: int
) -> None:
    """Codabench, the platform, keeps a team's best submission if the rule is "Force_Best".

    The leaderboard of task 4 also has a column for each of the ten masks.
    """
    (board,) = read_description(bundles, task)["leaderboards"]
    expected = ["score", "standard_error"]
    if task == 4:
        expected += [f"mask_{number}" for number in range(10)]
    assert [column["key"] for column in board["columns"]] == expected
    assert board["submission_rule"] == "Force_Best"


def test_the_organiser_is_told_to_keep_the_answers_and_warned_of_past_days(bundles: Path) -> None:
    printed = (bundles / "said.txt").read_text()
    assert "MB, holds the private answers: keep it, never upload it" in printed
    assert printed.count("warning: ") == 1
    assert printed.count("last day, 2020-03-31, is past: nobody can") == 1


@pytest.mark.parametrize("n_students", [9, 10])
def test_below_ten_students_a_score_of_task_4_has_no_standard_error(
    bundles: Path, tmp_path: Path, n_students: int
) -> None:
    """With fewer than ten students, a standard error would not be reliable.

    A valid entry of task 4 is scored in the public phase on nine students, and on ten students.
    """
    bundle = Path(shutil.copytree(bundles / "bundle_task_4", tmp_path / "bundle"))
    (answers_path,) = (bundle / "ingestion_program/public/test_data").glob("*.csv")
    answers = pd.read_csv(answers_path)
    examined = answers["UserId"].unique()[:n_students]
    answers[answers["UserId"].isin(examined)].to_csv(answers_path, index=False)

    scored = PlatformRun(bundle, 4, "public", valid_files(bundle, 4)).score()

    has_error = n_students == 10
    assert ("± " in scored.printed) == has_error
    assert ("standard error" in scored.page.text) == has_error


# ---- The private phase, without its answers on the server ----------------------------------------


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def received(request: pytest.FixtureRequest, bundles: Path) -> PlatformRun:
    """Return a run of a valid submission in the private phase of each task.

    Tests share the run. A test that changes or scores it takes a copy, `received.copy(tmp_path)`.
    """
    bundle = bundles / f"bundle_task_{request.param}"
    return PlatformRun(bundle, request.param, "private", valid_files(bundle, request.param))


def test_without_private_answers_a_submission_is_received_and_not_scored(
    received: PlatformRun, tmp_path: Path
) -> None:
    scored = received.copy(tmp_path).score()
    assert received.ingestion_error == ""
    assert scored.error == ""
    assert scored.scores == {"received": 1.0}
    assert "Received, and complete." in scored.page.text


def test_nothing_is_received_before_the_phase_begins(received: PlatformRun, tmp_path: Path) -> None:
    run = received.copy(tmp_path)
    settings = run.base / "input/ref/settings.json"
    settings.write_text(settings.read_text().replace("2020", "2999"))
    assert "error: this phase begins on 2999-03-25 00:00:00 UTC: not scored" in run.score().error


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_a_submission_that_cannot_be_scored_later_is_refused_at_once(
    bundles: Path, task: int
) -> None:
    """Without private answers, the server cannot score a submission to the private phase.

    It is scored only after the phase. But the server checks it when it comes in, so the team learns
    of a fault at once: from a message of one line, and from the page.
    """
    bundle = bundles / f"bundle_task_{task}"
    # A valid submission has one file.
    ((name, text),) = valid_files(bundle, task).items()
    if task == 4:
        # `predict` of the toy entry begins with "return right".
        assert "return right" in text
        invalid_text = text.replace("return right", "return 1 / 0, right")
        fault = "ZeroDivisionError"
    else:
        # Make the submission invalid: leave out its last two rows.
        invalid_text = "\n".join(text.splitlines()[:-2])
        fault = "are missing"

    run = PlatformRun(bundle, task, "private", {name: invalid_text})
    scored = run.score()

    assert fault in scored.error
    assert "\n" not in scored.error
    assert fault in scored.page.text
    # An entry of task 4 fails earlier, in the ingestion program, which plays its games. The scoring
    # program repeats the message.
    assert run.ingestion_error == (scored.error if task == 4 else "")


# ---- The private phase, with its answers on the server -------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of tasks 1 and 4 that holds the private answers. Tests must not change it."""
    flags = ("--size", "tiny", "--tasks", 1, 4, "--private_on_server", *PAST_DAYS)
    return make_bundles(tmp_path_factory.mktemp("served"), *flags)


def test_the_organiser_is_warned_that_private_answers_are_uploaded(served: Path) -> None:
    printed = served.with_name("said.txt").read_text()
    assert "warning: the private answers are in what is uploaded: some servers hand" in printed


def find_task(bundle: Bundle, name: str) -> Task:
    """Return the task of a bundle with this name, such as "Task 1, private"."""
    (task,) = [task for task in bundle.tasks.values() if task.name == name]
    return task


@pytest.mark.parametrize("task", [1, 4])
def test_with_private_answers_only_the_stored_scores_tell_the_private_score(
    served: Path, tmp_path: Path, task: int
) -> None:
    """If the private answers are on the server, the private scores are computed, but not shown.

    The server stores them for the organiser, in scores.json. The test compares them with the scores
    of the local runner (`score`), which an organiser can run with the private answers.
    """
    files = valid_files(served, task)
    on_server = PlatformRun(served, task, "private", files).score()

    # Score the same submission with the local runner.
    private_part = served.with_name("bundle_private.zip")
    whole = read_bundle(served, tmp_path / "read", private_part)
    submission = write_zip(tmp_path / "a.zip", files)
    private_task = find_task(whole, f"Task {task}, private")
    expected = score(submission, private_task, whole, time_limit=600).scores
    assert expected["score"] > 0

    # In scores.json, the name of each score begins with "private_".
    assert on_server.scores is not None
    stored = {name: on_server.scores[f"private_{name}"] for name in expected}
    assert stored == expected
    # The leaderboard has no column with such a name, and the page does not show the score.
    shown_columns = {column.key for column in whole.columns}
    assert not shown_columns & on_server.scores.keys()
    assert f"{expected['score']:.2f}" not in on_server.page.text


@on_unix("file names with backslashes")
def test_an_entry_finds_its_files_if_the_platform_keeps_backslashes(bundles: Path) -> None:
    """A zip that was made on Windows may have backslashes in place of slashes in file names.

    The platform, on Linux, takes a backslash for a part of the file's name. Yet the entry must find
    its file in the folder `weights`.
    """
    read_weights = "open(__file__.replace('submission_model_task_4.py', 'weights/model_task_4_a'))"
    files = entry(select=f"self.asked = {read_weights}.close() is None", update="self.asked")
    files["weights\\model_task_4_a"] = "weights"
    files["._submission_model_task_4.py"] = "AppleDouble"
    scored = PlatformRun(bundles / "bundle_task_4", 4, "public", files).score()
    assert scored.error == ""
    assert scored.scores is not None


# ---- The record of a game, which a submission's own program may change ---------------------------


@pytest.fixture(scope="module")
def honest(bundles: Path) -> PlatformRun:
    """Return a run of a valid submission of task 4: it has played its games, but has no score yet.

    Tests share the run, and change and score only a copy.
    """
    return PlatformRun(bundles / "bundle_task_4", 4, "public", entry())


@pytest.fixture(scope="module")
def other(bundles: Path) -> PlatformRun:
    """Return the run of a submission of task 4 that differs from `honest`, but has the same score.

    Tests share the run, and change and score only a copy.
    """
    bundle = bundles / "bundle_task_4"
    return PlatformRun(bundle, 4, "public", valid_files(bundle, 4))


def assert_refused(run: PlatformRun, fault: str) -> None:
    """Score a run; check that it gets no score, and that the message contains `fault`."""
    scored = run.score()
    assert scored.scores is None
    assert fault in scored.error


def test_the_record_of_a_game_holds_no_prediction(honest: PlatformRun) -> None:
    """A game's record lists no prediction for a single answer, only summaries such as "confusion".

    The code of a submission could read the record.
    """
    signed = json.loads((honest.result / RECORD).read_text())
    assert set(json.loads(signed["record"])) == {
        "masks", "confusion", "curves", "standard_error", "n_students", "facts", "seconds",
        "submission",
    }  # fmt: skip


def test_a_submission_with_a_program_of_its_own_is_refused(
    honest: PlatformRun, tmp_path: Path
) -> None:
    """The platform runs a submission as a program of its own if it holds a file metadata.yaml.

    This program could delete metadata.yaml to hide that it ran. But the platform has then written
    an exit code for it, and the scoring program refuses the submission because of this code.
    """
    run = honest.copy(tmp_path)
    run.status["exitCode"] = 0
    assert_refused(run, "brought a program of its own")


def test_a_record_does_not_count_if_the_ingestion_program_failed(
    honest: PlatformRun, tmp_path: Path
) -> None:
    run = honest.copy(tmp_path)
    # 137 is the exit code of a program that was killed (by SIGKILL).
    run.status["ingestionExitCode"] = 137
    assert_refused(run, "was not played to its end")


def test_a_record_does_not_count_for_a_submission_without_its_files(
    honest: PlatformRun, tmp_path: Path
) -> None:
    """The record holds a digest of the submitted files, so another submission cannot use it."""
    run = honest.copy(tmp_path)
    (run.result / ENTRY_FILE).rename(run.result / "other.py")
    assert_refused(run, "of another submission than this one")


@pytest.mark.parametrize(
    ("replacement", "fault"),
    [
        ("the record of another submission", "of another submission than this one"),
        ("a record with better scores", "is not signed by the ingestion program"),
        ("no record", "the entry was not played to its end"),
    ],
)
def test_a_replaced_record_is_refused(
    honest: PlatformRun, other: PlatformRun, tmp_path: Path, replacement: str, fault: str
) -> None:
    """The code of a submission can replace the record of its games, but cannot sign a record.

    `honest` and `other` are runs of two submissions. The record of `other` is replaced by the
    record of `honest`, by a forged record or by an empty list. Then `other` is scored.
    """
    honest_record = (honest.result / RECORD).read_text()
    new_record = {
        "the record of another submission": honest_record,
        # Every score 0.… becomes 1.…, so that the signature does not match.
        "a record with better scores": honest_record.replace("0.", "1."),
        "no record": "[]",
    }[replacement]
    run = other.copy(tmp_path)

    (run.result / RECORD).write_text(new_record)

    assert_refused(run, fault)


def test_the_ingestion_program_replaces_a_record_that_a_zip_brings(
    honest: PlatformRun, other: PlatformRun, tmp_path: Path
) -> None:
    run = other.copy(tmp_path)
    (run.result / RECORD).write_text("[]")
    assert run.ingest() == ""
    assert run.score().scores == honest.copy(tmp_path).score().scores


def test_a_zip_that_brings_metadata_of_a_program_is_refused(
    other: PlatformRun, tmp_path: Path
) -> None:
    run = other.copy(tmp_path)
    (run.submitted / "metadata.yaml").write_text("command: python3 a.py")
    assert "the zip holds metadata.yaml" in run.ingest()
    assert run.score().scores is None


# ---- The platform's image ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python_with_pandas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make an environment that has only NumPy and pandas; return the path of its Python."""
    environment = tmp_path_factory.mktemp("pandas") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # With --no-compile, Python compiles only the modules that are imported. Compiling all would
    # take longer than the test.
    wanted = ["--only-binary=:all:", "--no-compile", "numpy==1.26.4", "pandas==2.2.3"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", *wanted]
    try:
        # PATIENCE is the longest time for a child process of a test, in seconds.
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.SubprocessError as fault:
        pytest.skip(f"no environment from the package index: {fault}")
    return python


@pytest.mark.slow
@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_the_programs_need_numpy_and_pandas_alone(
    python_with_pandas: str,
    bundles: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: int,
) -> None:
    """The programs of a bundle, which the platform runs, give the same scores without SciPy.

    The programs run in an environment that has only NumPy and pandas. For comparison, they also run
    in this process, which has all requirements of the kit. The page of task 3 needs SciPy, and says
    that SciPy is missing.
    """
    folder = bundles / f"bundle_task_{task}"
    bundle = read_bundle(folder, tmp_path / folder.name)
    files = valid_files(folder, task)
    submission = write_zip(tmp_path / "a.zip", files)
    with monkeypatch.context() as patch:
        # `score` starts the programs with the Python at sys.executable. This one lacks SciPy.
        patch.setattr(sys, "executable", python_with_pandas)
        without_scipy = score(submission, bundle.tasks[0], bundle, time_limit=600)
    # `PlatformRun` runs the programs in this process, which has SciPy.
    with_scipy = PlatformRun(folder, task, "public", files).score()

    assert without_scipy.scores
    assert without_scipy.scores == with_scipy.scores
    # An empty output means that the programs have written nothing to stderr.
    assert without_scipy.output == ()
    page = read_page(without_scipy.details)
    notice = "No charts and tables here: No module named 'scipy'"
    if task == 3:
        assert notice in page.text
        assert not page.tables
    else:
        assert notice not in page.text
        assert page.tables
