"""The programs as the platform runs them: what each phase tells, who gets no score, and where."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import layout
from common.adaptive.entry_files import ENTRY_FILE

import pytest
import yaml
from bundle import read_bundle, score
from page_reading import read_page
from run_scripts import PATIENCE, run_script
from toy_bundle import entry, make_bundles, submission_for, write_zip

RECORD = "played_task_4.json"
# So that both phases have begun, the private one with the last seven days.
PAST = ("--start", "2020-02-01", "--end", "2020-03-31")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bundle for each task, as bundle_task_1 and so on."""
    folder = tmp_path_factory.mktemp("bundles")
    return make_bundles(folder, "--size", "tiny", "--contact", "a@b.org", *PAST).parent


def valid(bundle: Path, task: int) -> dict[str, str]:
    """Return what is in a valid zip."""
    if task == 4:
        # Given other questions than it has asked for it fails: its curve takes no time.
        return entry("self.asked = True", "self.asked")
    shutil.unpack_archive(bundle / "public_data.zip", bundle.parent / "public_data")
    return submission_for(bundle.parent / "public_data/submission_templates", task)


class Platform:
    """A run on the platform: its two steps, in this process with this kit's `common`."""

    def __init__(self, bundle: Path, task: int, phase: str, files: dict[str, str]) -> None:
        self.base = bundle.parent / f"run_{len(list(bundle.parent.iterdir()))}"
        self.result, self.output = self.base / "input/res", self.base / "output"
        shutil.copytree(bundle / f"reference_data/task_{task}_{phase}", self.base / "input/ref")
        for folder in (self.base / "submitted", self.result):
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text)
        self.bundle, self.ingestion = bundle, bundle / f"ingestion_program/{phase}/ingest.py"
        self.status: dict[str, Any] = {"exitCode": None, "ingestionExitCode": None}
        self.said = self.ingest() if task == 4 else ""

    def ingest(self) -> str:
        """Run the ingestion program; return what it says on stderr."""
        words = self.ingestion, self.bundle / "input_data/task_4", self.base / "submitted"
        done = run_script([*words, self.result], kit=self.ingestion.parent)
        self.status["ingestionExitCode"] = done.returncode
        return done.stderr.strip()

    def score(self) -> Any:
        """Run the scoring program; return what it says, the scores (None without) and the page."""
        (self.result / "metadata").write_text(yaml.safe_dump(self.status))
        shutil.rmtree(self.output, ignore_errors=True)
        program = self.bundle / "scoring_program/score.py"
        done = run_script([program, self.base / "input", self.output], kit=program.parent)
        file, page = self.output / "scores.json", self.output / "detailed_results.html"
        scores = json.loads(file.read_text()) if file.exists() else None
        assert (done.returncode == 0) == (scores is not None), done.stderr
        page = read_page(page.read_text())
        return SimpleNamespace(error=done.stderr.strip(), scores=scores, page=page)


def test_hosted_loops_with_a_progress_bar_visit_every_item() -> None:
    tqdm = runpy.run_path(str(layout.ROOT / "hosting/programs/tqdm.py"))["tqdm"]
    assert list(tqdm([1, 2], desc="Steps", disable=None)) == [1, 2]
    with tqdm(total=2, desc="Steps", leave=None) as bar:
        bar.set_postfix_str("loss 0.5", refresh=False)
        bar.update()
        bar.close()


def test_a_bundle_for_each_task_and_its_own_columns(bundles: Path) -> None:
    names = sorted(path.name for path in bundles.glob("*.zip"))
    assert names == [f"bundle_task_{n}{part}.zip" for n in "1234" for part in ("", "_private")]
    for task in (1, 2, 3, 4):
        bundle = bundles / f"bundle_task_{task}"
        described = yaml.safe_load((bundle / "competition.yaml").read_text())
        tasks = [f"Task {task}, {phase}" for phase in layout.PHASES]
        assert [one["name"] for one in described["tasks"]] == tasks
        (board,) = described["leaderboards"]
        masks = [f"mask_{number}" for number in range(10)] if task == 4 else []
        keys = [column["key"] for column in board["columns"]]
        assert keys == ["score", "standard_error", *masks]
        assert (board["submission_rule"], described["contact_email"]) == ("Force_Best", "a@b.org")
        page = (bundle / "pages/overview.md").read_text()
        assert "\nQuestions: a@b.org\n" in page and f"**Task {task}" in page
    said = (bundles / "said.txt").read_text()
    assert "MB, holds the private answers: keep it, never upload it" in said
    assert said.count("warning: ") == said.count("last day, 2020-03-31, is past: nobody can") == 1


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_where_the_private_answers_are_not_a_submission_is_received(
    bundles: Path, task: int
) -> None:
    bundle = bundles / f"bundle_task_{task}"
    files = valid(bundle, task)
    run = Platform(bundle, task, "private", files)
    done = run.score()
    assert (run.said, done.error, done.scores) == ("", "", {"received": 1.0})
    assert "Received, and complete." in done.page.text
    # Nor is anything received before the phase begins.
    settings = run.base / "input/ref/settings.json"
    settings.write_text(settings.read_text().replace("2020", "2999"))
    assert "error: this phase begins on 2999-03-25 00:00:00 UTC: not scored" in run.score().error
    # What the organiser will not be able to score is refused at once.
    ((name, text),) = files.items()
    wrong, expected = "\n".join(text.splitlines()[:-2]), "are missing"
    if task == 4:
        wrong, expected = text.replace("return right", "return 1 / 0, right"), "ZeroDivisionError"
    run = Platform(bundle, task, "private", {name: wrong})
    done = run.score()
    assert expected in done.error and expected in done.page.text and "\n" not in done.error
    assert run.said == (done.error if task == 4 else "")


def test_where_the_server_has_them_only_the_archive_tells_the_private_score(tmp_path: Path) -> None:
    flags = ("--size", "tiny", "--tasks", 1, 4, "--private_on_server", *PAST)
    served = make_bundles(tmp_path, *flags)
    whole = read_bundle(served, tmp_path / "read", tmp_path / "bundle_private.zip")
    tasks = {task.name: task for task in whole.tasks.values()}
    for task in (1, 4):
        files = valid(served, task)
        done = Platform(served, task, "private", files).score()
        path = write_zip(tmp_path / "a.zip", files)
        local = score(path, tasks[f"Task {task}, private"], whole, 600).scores
        assert {name: done.scores[f"private_{name}"] for name in local} == local
        assert local["score"] > 0 and f"{local['score']:.2f}" not in done.page.text
        assert not {column.key for column in whole.columns} & done.scores.keys()
    said = (tmp_path / "said.txt").read_text()
    assert "warning: the private answers are in what is uploaded: some servers hand" in said


def test_what_is_handed_on_is_of_no_use_to_a_program_beside_it(bundles: Path) -> None:
    """It may delete metadata.yaml before anybody looks, read the record, write another one."""
    bundle = bundles / "bundle_task_4"
    run = Platform(bundle, 4, "public", entry())
    record = (run.result / RECORD).read_text()
    honest = run.score()
    # Reads it: scores and counts, no prediction.
    told = json.loads(json.loads(record)["record"])
    names = "masks confusion curves standard_error facts seconds submission"
    assert set(told) == set(names.split())

    def is_refused(run: Platform, fault: str) -> bool:
        done = run.score()
        return done.scores is None and fault in done.error

    # The platform says that a program ran, though its metadata.yaml is gone.
    run.status["exitCode"] = 0
    assert is_refused(run, "brought a program of its own")
    # Nor does a record count that is there although the ingestion program has failed.
    run.status = {"exitCode": None, "ingestionExitCode": 137}
    assert is_refused(run, "was not played to its end")
    run.status["ingestionExitCode"] = 0
    # Without the files that the platform copies where no program is, it is another submission.
    (run.result / ENTRY_FILE).rename(run.result / "other.py")
    assert is_refused(run, "of another submission than this one")
    # Replaces it by the record of a better submission, by its own, or by none.
    other = Platform(bundle, 4, "public", valid(bundle, 4))
    for text, fault in (
        (record, "of another submission than this one"),
        (record.replace("0.", "1."), "is not signed by the ingestion program"),
        ("[]", "the entry was not played to its end"),
    ):
        (other.result / RECORD).write_text(text)
        assert is_refused(other, fault)
    # What a zip brings under this name is replaced, and metadata.yaml is refused where it is seen.
    assert other.ingest() == "" and other.score().scores == honest.scores
    (other.base / "submitted/metadata.yaml").write_text("command: python3 a.py")
    assert "the zip holds metadata.yaml" in other.ingest()
    assert other.score().scores is None


@pytest.mark.slow
def test_the_programs_need_numpy_and_pandas_alone(
    bundles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same scores, to the last digit, as with this Python; a page without SciPy says so."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # Compiling all that is installed takes longer than all else: what is imported is enough.
    wanted = ["--only-binary=:all:", "--no-compile", "numpy==1.26.4", "pandas==2.2.3"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", *wanted]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.SubprocessError as fault:
        pytest.skip(f"no environment from the package index: {fault}")
    for task in (1, 2, 3, 4):
        folder = bundles / f"bundle_task_{task}"
        bundle, files = read_bundle(folder, tmp_path / folder.name), valid(folder, task)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", python)
            result = score(write_zip(tmp_path / "a.zip", files), bundle.tasks[0], bundle, 600)
        assert result.scores == Platform(folder, task, "public", files).score().scores
        assert result.scores and result.output == ()
        page = read_page(result.details)
        lacks = "No charts and tables here: No module named 'scipy'" in page.text
        assert (lacks, bool(page.tables)) == (task == 3, task != 3)
