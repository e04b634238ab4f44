"""Competitions are made and scored as a whole, and participants see no hidden answers."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import layout, official_files, row_sketches
from common.tasks import TASKS

import bundle_files
import competition
import numpy as np
import pandas as pd
import pytest
import yaml
from bundle import read_bundle
from conftest import fails, imported, run, succeeds
from page_reading import Page, read_page
from run_scripts import ROOT, Done
from sklearn.metrics import roc_auc_score
from toy_bundle import entry, make_bundles, submission_for, write_zip

# The seed of the bundles. A test checks that no file of the kit holds this text. So this file holds
# only the single words.
SECRET = " ".join(["nobody", "will", "ever", "guess", "it"])
PUBLIC = competition.PUBLIC_DATA
PLAY = "hosting/run_locally.py"


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked bundle of all tasks, made with a secret seed. Tests must not change it."""
    return make_bundles(
        tmp_path_factory.mktemp("bundle"),
        *("--size", "tiny"),
        *("--seed", SECRET),
        *("--start", "2027-02-01", "--end", "2027-03-31"),
        *("--title", "A course: of '27"),
        *("--tasks", 1, 2, 3, 4),
    )


def answers_of(bundle: Path, task: int, phase: str) -> Path:
    """Return the file of the answers on which a phase of a task is scored."""
    name = TASKS[task].answers_name(phase)
    base = bundle if phase == "public" else bundle.with_name(f"{bundle.name}_private")
    return base / f"reference_data/task_{task}_{phase}/test_data" / name


def read_scores(output: Path) -> dict[tuple[str, int], float]:
    """Return the scores of a leaderboard, by team and task."""
    board = pd.read_csv(output / "leaderboard.csv", index_col=["team", "task"])
    return board["score"].to_dict()


# ---- Scores of tasks 1 to 3 --------------------------------------------------------------------

# The phases and tasks in which the tests below score submissions.
SCORED_TASKS = [("public", 1), ("public", 3), ("private", 2), ("private", 3)]
# The teams that hand in a zip in each phase. Every zip is scored in a process of its own, which
# takes time, so the zip of team "nested" is scored in one phase only.
TEAMS = {"public": ["right", "cut"], "private": ["right", "cut", "nested"]}


def scored_tasks(phase: str) -> list[int]:
    """Return the tasks of `SCORED_TASKS` in a phase."""
    return [task for scored_phase, task in SCORED_TASKS if scored_phase == phase]


@dataclass(frozen=True)
class OfficialCompetition:
    """A competition with official data, in which three teams hand in a zip each.

    The zip of team "right" is valid. The zip of team "cut" holds only the first half of each file.
    The zip of team "nested" holds the files in a folder.
    """

    # The bundle, unpacked.
    bundle: Path
    # The folder of this competition. It holds the zips of the teams (in handed_in/public and
    # handed_in/private), a folder with the unpacked files of each team, and a leaderboard in a
    # folder for each phase.
    base: Path
    # For each phase, how the script run_locally.py has ended, and its output.
    done: dict[str, Done]
    kit: Path

    def evaluate_locally(self, team: str, task: int, phase: str) -> list[object]:
        """Return the command that scores a team's file with the kit, not with the bundle."""
        return [
            f"task_{task}/local_evaluation.py",
            *("--submission_dir", self.base / team),
            *("--submit_data", TASKS[task].submission),
            *("--phase", phase),
            *("--output_dir", self.base / "local"),
        ]


def first_half(text: str) -> str:
    """Return the lines of a text up to the line that contains its middle."""
    end_of_line = text.index("\n", len(text) // 2)
    return text[: end_of_line + 1]


def files_of_teams(templates: Path) -> dict[str, dict[str, str]]:
    """Return the files that the teams of `OfficialCompetition` hand in, by team and file name."""
    right: dict[str, str] = {}
    for task in (1, 2, 3):
        right |= submission_for(templates, task)
    cut = {name: first_half(text) for name, text in right.items()}
    nested = {f"a/{name}": text for name, text in right.items()}
    # In this zip, a folder has the name of a submission. It must not be taken for the submission.
    nested["submission_task_2.csv/b.csv"] = ""
    return {"right": right, "cut": cut, "nested": nested}


@pytest.fixture(scope="module")
def official(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> OfficialCompetition:
    """Make a bundle as for official data, and score the zips that teams hand in for each phase.

    Simulated data stand in for the official data. hosting/run_locally.py scores the zips as the
    platform would. `TEAMS` lists the teams of each phase, and `SCORED_TASKS` lists the tasks to
    score. Tests share the result and must not change it.
    """
    base = tmp_path_factory.mktemp("official")
    bundle = make_bundles(base, "--official", simulated_kit / "data", "--tasks", 1, 2, 3)
    files_by_team = files_of_teams(simulated_kit / "submission_templates")
    done_by_phase = {}
    for phase in layout.PHASES:
        handed_in = base / "handed_in" / phase
        for team in TEAMS[phase]:
            path = write_zip(handed_in / f"{team}.zip", files_by_team[team])
            # `evaluate_locally` scores the files of a team in this folder.
            shutil.unpack_archive(path, base / team)
        flags = ("--submissions", handed_in, "--phase", phase, "--tasks", *scored_tasks(phase))
        done_by_phase[phase] = run([PLAY, bundle, *flags, "--output_dir", base / phase])
    return OfficialCompetition(bundle, base, done_by_phase, simulated_kit)


def test_official_files_are_not_handed_out(official: OfficialCompetition) -> None:
    """The bundle holds no official file, because their licence forbids it."""
    assert zipfile.ZipFile(official.bundle / PUBLIC).namelist() == ["README.md"]


def test_a_bundle_is_for_trying_only_unless_its_files_are_the_official_ones(
    official: OfficialCompetition, tmp_path: Path
) -> None:
    """make_bundle.py prints a note if files that are given as official are not official.

    The bundle of the fixture `official` was made of simulated answers, so make_bundle.py has
    printed the note. Then the same answers get the record that marks official files: a list of
    files with their fingerprints. A second bundle is made of these answers, without the note.
    """
    note = "not the official ones that the pages describe: this bundle is for trying only"
    # The file said.txt holds what make_bundle.py has printed.
    assert f"holds simulated answers, {note}" in (official.base / "said.txt").read_text()

    # For official files, data/download.py writes a record of the files. Write the same record for
    # the answers of task 3, so that they count as official.
    data_dir = Path(shutil.copytree(official.kit / "data", tmp_path / "data"))
    released = [data_dir / "test_data" / TASKS[3].answers_name(phase) for phase in layout.PHASES]
    record_by_path = official_files.record_of(data_dir, released)
    for path, content in record_by_path.items():
        path.write_text(content)

    make_bundles(tmp_path, "--official", data_dir, "--tasks", 3)

    assert note not in (tmp_path / "said.txt").read_text()


@pytest.mark.parametrize("phase", layout.PHASES)
def test_only_valid_submissions_have_scores(official: OfficialCompetition, phase: str) -> None:
    done = official.done[phase]
    tasks = scored_tasks(phase)
    # Only team "right" has a valid zip. The zips of the other teams fail on each task.
    n_failures = (len(TEAMS[phase]) - 1) * len(tasks)
    assert (done.returncode, done.stderr.count("\n")) == (2, n_failures)
    scores = read_scores(official.base / phase)
    assert set(scores) == {("right", task) for task in tasks}, done.stdout + done.stderr


@pytest.mark.parametrize(("phase", "task"), SCORED_TASKS)
def test_scores_equal_those_of_the_local_evaluation_to_the_last_digit(
    official: OfficialCompetition, phase: str, task: int
) -> None:
    succeeds(official.evaluate_locally("right", task, phase), kit=official.kit)
    text = (official.base / f"local/scores_task_{task}_{phase}.txt").read_text()
    score = read_scores(official.base / phase)["right", task]
    assert 0 < score == float(text.removeprefix("score:")) < 1


@pytest.mark.parametrize(("phase", "task"), SCORED_TASKS)
def test_refusals_equal_those_of_the_local_evaluation(
    official: OfficialCompetition, phase: str, task: int
) -> None:
    line = fails(official.evaluate_locally("cut", task, phase), kit=official.kit)
    # The platform's messages name files without their folders. So remove the folders from the
    # message of the local evaluation before the two are compared.
    for folder in (official.base / "cut", official.kit / "data", official.kit):
        line = line.replace(f"{folder}/", "")
    assert line.startswith(TASKS[task].submission)
    assert f"error: cut.zip: Task {task}, {phase}: {line}\n" in official.done[phase].stderr


def test_a_zip_whose_files_lie_in_a_folder_is_refused(official: OfficialCompetition) -> None:
    missing = "the zip holds no submission_task_2.csv at its top level, but a/"
    assert f"error: nested.zip: Task 2, private: {missing}" in official.done["private"].stderr


def read_details(official: OfficialCompetition) -> list[Page]:
    """Read the pages that the platform shows about the scores of the public phase."""
    folder = official.base / "public/details"
    return [read_page(path.read_text()) for path in folder.iterdir()]


def test_a_page_equals_that_of_the_local_evaluation(official: OfficialCompetition) -> None:
    """The page of a score on the platform holds the same tables and charts as the local page.

    The charts need training answers and metadata, which the platform does not have: the bundle
    holds facts computed from these files.
    """
    # "right" is the team whose submission is valid.
    succeeds(official.evaluate_locally("right", task=1, phase="public"), kit=official.kit)
    expected = read_page((official.base / "local/scores_task_1_public.html").read_text())
    # The platform has a page for each score. Only one of them has the headings of task 1.
    pages = read_details(official)
    (page,) = [page for page in pages if page.headings == expected.headings]
    # The first table shows the paths of the files. These differ between the platform and the kit.
    assert page.tables[1:] == expected.tables[1:]
    assert len(page.tables) > 4
    assert page.charts == expected.charts
    for part in ("From simulated answers", "Confusion matrix", "By difficulty", "Pupil premium"):
        assert part in page.text
    assert "left out" not in page.text


def test_no_page_shows_what_experts_said_of_single_pairs(official: OfficialCompetition) -> None:
    """The pages on the platform show no judgements of single pairs, but the local page does.

    These judgements are the hidden answers of task 3.
    """
    succeeds(official.evaluate_locally("right", task=3, phase="public"), kit=official.kit)
    local = (official.base / "local/scores_task_3_public.html").read_text()
    assert "Pairs on which" in local
    assert not any("Pairs on which" in page.text for page in read_details(official))


# ---- Scores of task 4 --------------------------------------------------------------------------


@dataclass(frozen=True)
class PlayedEntries:
    """Three entries of task 4, which fail or cheat, after their games in the public phase."""

    # The folder of the three zips, which are named after the teams: fails.zip, tells.zip,
    # opens.zip.
    handed_in: Path
    # The folder into which run_locally.py has written the leaderboard and the pages of the scores.
    output: Path
    # How run_locally.py has ended, and its output.
    done: Done


def in_method(code: str) -> str:
    """Indent the lines of some code so that it fits into a method of an entry."""
    return textwrap.indent(code.strip(), " " * 8).lstrip()


# Body of `update_model` of an entry that tries to tell the answers that it has seen, in the message
# of an error. The error comes only after scoring, when the games are replayed for the chart of
# accuracy by round: the replay does not call `select_questions`, which sets `self.asked`. The entry
# also changes an argument, which the page of a score usually reports.
TELLING = """
can_query[:] = 0
if not hasattr(self, "asked"):
    raise ValueError("the answers " + "0110" * 9)
"""
# Body of `select_questions` of an entry that tries to open the secret key that signs the record of
# a game. KEYS stands for a pattern of paths.
OPENING = """
import glob
open(glob.glob(KEYS, recursive=True)[0])
"""


@pytest.fixture(scope="module")
def played(secret: Path, tmp_path_factory: pytest.TempPathFactory) -> PlayedEntries:
    """Play the games of three entries of task 4 with run_locally.py, and score the entries.

    Each team is named after what its entry tries: it fails, tells answers, or opens the secret key.
    Tests share the result and must not change it.
    """
    base = tmp_path_factory.mktemp("played")
    # run_locally.py unpacks the bundle, which holds secret keys, into a folder of temporary files.
    keys = f"{tempfile.gettempdir()}/**/key.txt"
    # The function `entry` returns the files of a toy entry. The method `select_questions` of this
    # entry begins with the code in `select`, and its method `update_model` with the code in
    # `update`.
    entries = {
        # This entry raises an error in the first round. A test checks that the message, xxxxxxxxx,
        # is not shown in the private phase.
        "fails": entry(select="raise ValueError('x' * 9)"),
        # This entry raises an error whose message tells answers, but only when the games are
        # replayed after scoring: the replay does not call `select_questions`, so `self.asked` is
        # missing.
        "tells": entry(select="self.asked = True", update=in_method(TELLING)),
        # This entry tries to read the key that signs the record of a game. It must fail.
        "opens": entry(select=in_method(OPENING.replace("KEYS", repr(keys)))),
    }
    for team, members in entries.items():
        write_zip(base / f"handed_in/{team}.zip", members)

    flags = ("--tasks", 4, "--output_dir", base / "output")
    done = run([PLAY, secret, "--submissions", base / "handed_in", *flags])
    return PlayedEntries(base / "handed_in", base / "output", done)


def test_entries_that_fail_get_no_score(played: PlayedEntries) -> None:
    """The entries "fails" and "opens" get no score.

    The entry "tells" has a score, because it fails only after it is scored.
    """
    assert played.done.returncode == 2
    assert set(read_scores(played.output)) == {("tells", 4)}
    assert "raised ValueError" in Page((played.output / "leaderboard.html").read_text()).text


def test_an_entry_s_score_equals_that_of_the_local_evaluation(
    played: PlayedEntries, secret: Path, simulated_kit: Path, tmp_path: Path
) -> None:
    """task_4/local_evaluation.py gives an entry the same score as the platform.

    Among the entries in `played`, only the entry "tells" has a score. It is the toy entry with an
    attempt to cheat after the games, so it chooses and predicts as the plain toy entry does. The
    plain toy entry is scored locally, and must get the same score.
    """
    plain_toy_entry = write_zip(tmp_path / "plain.zip", entry())
    flags = (
        "--skip_curve",
        *("--phase", "public"),
        *("--output_dir", tmp_path),
        *("--input_dir", answers_of(secret, 4, "public").parent),
    )
    succeeds(["task_4/local_evaluation.py", plain_toy_entry, *flags], kit=simulated_kit)
    text = (tmp_path / "scores_task_4_public.txt").read_text()
    local_score = float(text.removeprefix("score:"))
    assert read_scores(played.output)["tells", 4] == local_score


def test_an_entry_cannot_tell_on_its_page_what_it_has_seen(played: PlayedEntries) -> None:
    """The entry "tells" puts answers into an error message and changes an argument.

    The page of its score neither repeats the message nor reports the change.
    """
    (page,) = (path.read_text() for path in (played.output / "details").iterdir())
    assert "failed when the games were replayed with given questions" in page
    assert "0110" not in page
    assert "update_model changes" not in page


def test_in_the_private_phase_no_word_of_an_entry_is_shown(
    played: PlayedEntries, secret: Path, tmp_path: Path
) -> None:
    path = played.handed_in / "fails.zip"
    flags = ("--phase", "private", "--tasks", 4, "--output_dir", tmp_path)
    done = run([PLAY, secret, path, *flags])
    line = "the entry: IsTarget_0, round 1, select_questions failed; the public phase says how"
    assert (done.returncode, done.stderr) == (2, f"error: {path}: Task 4, private: {line}\n")
    assert "xxx" not in done.stdout + done.stderr


# ---- What participants get -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(secret: Path) -> dict[str, bytes]:
    """Return the content of each file that the bundle gives to participants, by the file's name."""
    files: dict[str, bytes] = {}
    for name in (PUBLIC, competition.STARTING_KIT):
        with zipfile.ZipFile(secret / name) as archive:
            files |= {f"{name}/{member}": archive.read(member) for member in archive.namelist()}
    # The platform lets nobody download the folder input_data. But an entry of task 4 is a program
    # that runs on the platform, and it could read the folder.
    paths = [*(secret / "pages").iterdir(), *(secret / "input_data").rglob("*.csv")]
    return files | {str(path.relative_to(secret)): path.read_bytes() for path in paths}


def test_participants_get_training_data_metadata_and_templates(given: dict[str, bytes]) -> None:
    parts = {name.split("/")[1] for name in given if name.startswith(PUBLIC)}
    folders = {"train_data", "metadata", "submission_templates"}
    assert parts == {"README.md", layout.SIMULATED_MARKER_NAME, *folders}


def test_participants_get_neither_keys_nor_answers(secret: Path, given: dict[str, bytes]) -> None:
    keys = {path.read_bytes().strip() for path in secret.parent.rglob("key.txt")}
    assert len(keys) == 3
    for name, content in given.items():
        assert not any(key in content for key in keys), name
        assert "test_data/" not in name, name


# The public data have a marker, which says that they are simulated. The marker holds sketches of
# files. By a sketch, the kit recognises a file even if it is renamed or lacks some rows. A
# participant with the sketch of a hidden file could test guesses of its rows.


@pytest.fixture(scope="module")
def marker(given: dict[str, bytes]) -> dict[str, Any]:
    """Return the marker of the public data: the JSON that says that the data are simulated."""
    content: dict[str, Any] = json.loads(given[f"{PUBLIC}/{layout.SIMULATED_MARKER_NAME}"])
    return content


# The training files in the public data.
TRAINING_FILES = [f"train_data/{name}" for name in (layout.TRAIN_TASK_1_2, layout.TRAIN_TASK_3_4)]


def test_the_marker_of_public_data_names_public_files_alone(
    given: dict[str, bytes], marker: dict[str, Any]
) -> None:
    public = {name.removeprefix(f"{PUBLIC}/") for name in given if name.startswith(f"{PUBLIC}/")}
    assert set(marker) == {"simulated", "hosted", "files", "sketches"}
    assert set(marker["files"]) <= public
    assert sorted(marker["sketches"]) == sorted(TRAINING_FILES)


def answers_read_by_platform(bundle: Path, task: int, phase: str) -> Path:
    """Return the file from which the platform reads the answers of a phase of a task.

    In task 4, the file is in the folder of the ingestion program. For the private phase, this
    folder is in the private part of the bundle, which lies beside the public part.
    """
    if task != 4:
        return answers_of(bundle, task, phase)
    base = bundle if phase == "public" else bundle.with_name(f"{bundle.name}_private")
    return base / f"ingestion_program/{phase}/test_data" / TASKS[4].answers_name(phase)


@pytest.mark.parametrize("phase", layout.PHASES)
@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_the_marker_of_public_data_has_no_sketch_of_hidden_answers(
    marker: dict[str, Any], secret: Path, task: int, phase: str
) -> None:
    """Participants cannot recognise the file of hidden answers with the data that they get.

    The public data have a marker file with sketches of other files. A sketch holds hashes of the
    rows of a file. With it, the kit recognises the file even if some rows are missing. With a
    sketch of the hidden answers, participants could test guessed answers.
    """
    hidden = answers_read_by_platform(secret, task, phase)
    sketches_with_hidden = {hidden.name: row_sketches.sketch(hidden)}
    # With its own sketch, the kit recognises the file of hidden answers. So the file has enough
    # rows for the next check.
    assert row_sketches.is_known(hidden, [sketches_with_hidden])
    assert not row_sketches.is_known(hidden, [marker["sketches"]])


@pytest.mark.parametrize("name", TRAINING_FILES)
def test_the_marker_of_public_data_recognises_the_training_files(
    given: dict[str, bytes], marker: dict[str, Any], tmp_path: Path, name: str
) -> None:
    path = tmp_path / Path(name).name
    path.write_bytes(given[f"{PUBLIC}/{name}"])
    assert row_sketches.is_known(path, [marker["sketches"]])


def test_a_split_of_simulated_public_data_is_marked_as_simulated(
    given: dict[str, bytes], tmp_path: Path
) -> None:
    """The record of a participant's local split says that the public data are simulated.

    `given` holds all files that participants get. PUBLIC is the name of the zip of public data.
    """
    for name, content in given.items():
        if name.startswith(f"{PUBLIC}/"):
            path = tmp_path / name.removeprefix(f"{PUBLIC}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    flags = ["--input_dir", tmp_path / "train_data", "--output_dir", tmp_path / "test_input"]
    succeeds(["task_1/local_data_split.py", *flags])
    record = json.loads((tmp_path / "test_input/split_task_1_2.json").read_text())
    assert record["origin"] == "simulated"


def test_no_file_holds_the_secret_seed(secret: Path, given: dict[str, bytes]) -> None:
    """Not even the bundle may hold the seed, because an organiser may pass the bundle on."""
    number = int.from_bytes(hashlib.sha256(SECRET.encode()).digest(), "big")
    bundle = {str(path): path.read_bytes() for path in secret.parent.rglob("*") if path.is_file()}
    for name, content in (given | bundle).items():
        assert SECRET.encode() not in content, name
        assert str(number).encode() not in content, name


def test_a_secret_seed_makes_other_answers_than_the_default_seed(
    given: dict[str, bytes], simulated_kit: Path
) -> None:
    """A secret seed keeps the answers secret: the default seed makes other answers.

    The generator is public, so anybody can compute the answers of the default seed.
    """
    name = f"train_data/{layout.TRAIN_TASK_1_2}"
    assert given[f"{PUBLIC}/{name}"] != (simulated_kit / "data" / name).read_bytes()


def is_table_of_answers(table: pd.DataFrame) -> bool:
    """Return whether a table says how students have answered questions."""
    has_pairs = {"UserId", "QuestionId"} <= set(table)
    has_outcomes = "IsCorrect" in table or "AnswerValue" in table
    return has_pairs and has_outcomes


@pytest.fixture(scope="module")
def uploaded_answers(secret: Path, given: dict[str, bytes]) -> dict[str, pd.DataFrame]:
    """Return the tables of answers that the bundle gives to anybody, by file name.

    The files are for the participants or for the platform.
    """
    files = {str(path.relative_to(secret)): path.read_bytes() for path in secret.rglob("*.csv")}
    csv_files = {name: text for name, text in (given | files).items() if name.endswith(".csv")}
    assert len(csv_files) > 12
    tables = {name: pd.read_csv(io.BytesIO(text)) for name, text in csv_files.items()}
    return {name: table for name, table in tables.items() if is_table_of_answers(table)}


@pytest.mark.parametrize("phase", layout.PHASES)
@pytest.mark.parametrize("task", [1, 2, 4])
def test_no_table_that_is_uploaded_holds_a_hidden_answer(
    secret: Path, uploaded_answers: dict[str, pd.DataFrame], task: int, phase: str
) -> None:
    """No table that participants get has a row that is hidden in the public or private phase.

    Some uploaded tables are for the platform alone. They hold the rows that are hidden in the
    public phase, because the platform scores this phase. They must not hold the rows that are
    hidden in the private phase, which the organiser scores later.
    """
    hidden = pd.read_csv(answers_of(secret, task, phase))
    assert len(hidden)
    # Tasks 1 and 2 hide single answers of a student to a question. Task 4 hides all answers of some
    # students.
    key = ["UserId"] if task == 4 else ["UserId", "QuestionId"]
    for name, table in uploaded_answers.items():
        # The UserIds of tasks 1 and 2 belong to other students than those of task 4. So skip tables
        # of other tasks.
        is_of_tasks_1_and_2 = bool(re.search("task_[12]", name))
        has_students_of_task = is_of_tasks_1_and_2 == (task in (1, 2))
        is_for_platform_only = name.startswith(("reference_data", "ingestion_program"))
        # To score the public phase, the platform must have the answers that are hidden in this
        # phase.
        may_hold_hidden_answers = is_for_platform_only and phase == "public"
        if has_students_of_task and not may_hold_hidden_answers:
            assert hidden[key].merge(table[key]).empty, name


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_no_line_of_the_private_answers_is_in_a_file_that_is_uploaded(
    secret: Path, uploaded_words: set[bytes], task: int
) -> None:
    """No file that the organiser uploads to the platform holds a line of the private answers.

    Such a line holds ids and an outcome, and no white space. So in a file, it is a single word.
    """
    public = lines_of_answers(secret, task, "public")
    private = lines_of_answers(secret, task, "private")
    # The public answers are uploaded, because the platform scores the public phase.
    assert public <= uploaded_words
    # Task 3 has few pairs. So a pair and its judgements can by chance be the same in both phases.
    only_private = private - public
    assert len(only_private) > 20
    assert not only_private & uploaded_words


def lines_of_answers(bundle: Path, task: int, phase: str) -> set[bytes]:
    """Return the lines of a file of answers, without the header."""
    _, *lines = answers_of(bundle, task, phase).read_bytes().splitlines()
    return set(lines)


@pytest.fixture(scope="module")
def uploaded_words(secret: Path) -> set[bytes]:
    """Return the words of all files of the bundle, split at white space."""
    words: set[bytes] = set()
    for path in filter(Path.is_file, secret.rglob("*")):
        words |= set(path.read_bytes().split())
    return words


@pytest.mark.parametrize("hint", ["position", "AnswerId", "UserId"])
def test_no_number_or_order_tells_the_outcome_of_a_hidden_answer(secret: Path, hint: str) -> None:
    """Participants see the ids and the order of the hidden answers in the template for submissions.

    Neither an id nor a position in the file may be correlated with right or wrong outcomes.
    """
    hidden = pd.read_csv(answers_of(secret, task=1, phase="private"))
    is_correct = hidden["IsCorrect"]
    number = hidden.index if hint == "position" else hidden[hint]
    # The standard deviation of the AUC if the numbers are independent of the outcomes (Mann and
    # Whitney 1947).
    n_right = is_correct.sum()
    n_wrong = (1 - is_correct).sum()
    deviation = np.sqrt((len(hidden) + 1) / (12 * n_right * n_wrong))
    assert abs(roc_auc_score(is_correct, number) - 0.5) < 4 * deviation


# ---- The starting kit ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def starting_kit(given: dict[str, bytes]) -> dict[str, bytes]:
    """Return the content of each file of the starting kit, by name.

    The starting kit is the kit's code, which participants get as a zip. `given` has the content of
    all files that participants get.
    """
    prefix = f"{competition.STARTING_KIT}/"
    return {
        name.removeprefix(prefix): content
        for name, content in given.items()
        if name.startswith(prefix)
    }


def test_the_starting_kit_is_this_kit_without_data(starting_kit: dict[str, bytes]) -> None:
    assert {
        "README.md",
        "quickstart.py",
        "common/reading.py",
        "common/item_response/model.py",
        "common/templates/base.html",
        "common/templates/style.css",
        "task_1/sample_model_majority.py",
    } <= set(starting_kit)
    unwanted = re.compile(r"\.venv|__pycache__|train_data|\.git/")
    assert not any(unwanted.search(name) for name in starting_kit)


def test_pages_of_the_starting_kit_link_to_nothing_that_it_lacks(
    starting_kit: dict[str, bytes],
) -> None:
    """Links to files that the starting kit lacks are removed, for instance links into hosting/."""
    folders = {str(parent) for name in starting_kit for parent in Path(name).parents}
    files_and_folders = set(starting_kit) | folders
    pages = [name for name in starting_kit if name.endswith(".md")]
    for page in pages:
        text = starting_kit[page].decode()
        # Links are removed, but no lines.
        assert text.count("\n") == (ROOT / page).read_text().count("\n")
        # A link is written as [text](target). Take each target that is no web address, without the
        # name of a section after "#".
        local_links = re.findall(r"\]\((?!http)([^)#]+)", text)
        for link in local_links:
            target = os.path.normpath(Path(page).parent / link)
            assert target in files_and_folders, (page, link)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the kit is not under version control")
def test_the_starting_kit_holds_the_files_under_version_control(
    starting_kit: dict[str, bytes],
) -> None:
    done = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    tracked = {name for name in done.stdout.split("\n") if name and (ROOT / name).is_file()}
    left_out = ("hosting/", "tests/", ".ci/", ".github/", ".pre-commit-config.yaml")
    assert set(starting_kit) == {name for name in tracked if not name.startswith(left_out)}


# Some files that the starting kit takes over from the kit.
KIT_FILES = [
    "README.md",
    "common/item_response/model.py",
    "common/reading.py",
    "data/README.md",
]
# An organiser may keep such files in the kit's folders. They must not get into the starting kit.
ORGANISERS_FILES = [
    "my_class.csv",
    "seed.txt",
    "bundle/organiser/students.csv",
    "data/my_class.csv",
    "data/test_data/key.txt",
    "hosting/bundle.zip",
    "handed_in/team/model.py",
    "bundle/scoring_program/score.py",
    "data/metadata/a.py",
    "task_1/.seed.md",
    "related_challenges/cloze/data/README.md",
    "submission_templates/a.csv",
]


@pytest.fixture
def organisers_kit(tmp_path: Path) -> Path:
    """Make a folder with files of the kit and files of an organiser; return its path."""
    for name in KIT_FILES + ORGANISERS_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def test_an_organiser_s_files_are_not_in_the_starting_kit(organisers_kit: Path) -> None:
    assert bundle_files.list_kit(organisers_kit) == KIT_FILES


def test_an_organiser_s_files_under_version_control_are_not_in_the_starting_kit(
    organisers_kit: Path,
) -> None:
    (organisers_kit / ".gitignore").write_text("")
    for command in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run(["git", "-C", str(organisers_kit), *command], check=True)
    # A new file in a folder of the kit is left out, because it is not under version control.
    (organisers_kit / "common/new.py").write_text("x")
    assert bundle_files.list_kit(organisers_kit) == [".gitignore", *KIT_FILES]


def test_without_git_what_a_user_has_added_is_not_in_the_starting_kit(tmp_path: Path) -> None:
    added = ("task_1/my_idea.py", "task_1/NOTES.md", "task_4/my_questions/train_model.py",
             "data/my_notes.md", "related_challenges/cloze/my_idea.py",
             "submission_templates/mine.py")  # fmt: skip
    kit = ("task_1/sample_model_majority.py", "task_4/published.csv", "tools/blend.py")
    for name in (*added, *kit):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert bundle_files.list_kit(tmp_path) == sorted(kit)


# ---- The bundle ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def description(secret: Path) -> dict[str, Any]:
    """Return what competition.yaml says."""
    content: dict[str, Any] = yaml.safe_load((secret / "competition.yaml").read_text())
    return content


def test_the_platform_reads_title_phases_and_columns(secret: Path, tmp_path: Path) -> None:
    """The bundle has the title and the days that were given to make_bundle.py as flags.

    The last seven days are the private phase. The fixture `secret` makes the bundle with these
    flags.
    """
    bundle = read_bundle(secret, tmp_path / "bundle")
    # Without quotes in competition.yaml, the colon and the apostrophe would be YAML syntax.
    assert bundle.title == "A course: of '27"
    assert [(phase.start, phase.end) for phase in bundle.phases] == [
        ("2027-02-01 00:00:00", "2027-03-24 23:59:59"),
        ("2027-03-25 00:00:00", "2027-03-31 23:59:59"),
    ]
    # On the leaderboard, scores are sorted in descending order and standard errors in ascending
    # order. Four decimals are shown.
    assert [(column.key, column.sorting, column.precision) for column in bundle.columns] == [
        ("score", "desc", 4),
        ("standard_error", "asc", 4),
    ]


def test_a_bundle_of_all_tasks_shows_results_and_no_address(description: dict[str, Any]) -> None:
    assert description["enable_detailed_results"] is True
    assert "contact_email" not in description


def test_the_latest_submission_counts_in_a_bundle_of_several_tasks(
    description: dict[str, Any],
) -> None:
    """The leaderboard shows the latest submission of a team, not the best one.

    If the best one counted, the platform would compare submissions to different tasks.
    """
    assert description["leaderboards"][0]["submission_rule"] == "Force_Latest_Multiple"


@pytest.mark.parametrize(
    "flag",
    [
        "make_programs_available",
        "make_input_data_available",
        "can_participants_make_submissions_public",
        "show_detailed_results_in_leaderboard",
    ],
)
def test_the_platform_shows_no_program_input_or_submission(
    description: dict[str, Any], flag: str
) -> None:
    """The platform's flags that would show programs, input data or submissions are off.

    If they were on, anybody could fetch the best submissions.
    """
    assert description[flag] is False


@pytest.mark.parametrize("part", ["output", "prediction_output", "score_output"])
def test_the_platform_hides_what_a_run_prints(description: dict[str, Any], part: str) -> None:
    """An entry could print the answers that it has seen, so the platform must show no output."""
    assert all(phase[f"hide_{part}"] is True for phase in description["phases"])


def test_the_pages_say_when_phases_are_and_how_often_one_may_submit(secret: Path) -> None:
    pages = " ".join(page.read_text() for page in (secret / "pages").iterdir())
    text = " ".join(pages.split())
    assert "public phase from 2027-02-01 to 2027-03-24, private phase to 2027-03-31" in text
    assert "5 a day, 100 in all in the public phase, 1 a day, 3 in all in the private" in text


@pytest.mark.parametrize("program", ["scoring_program", "ingestion_program/private"])
def test_programs_import_only_what_the_image_has(secret: Path, program: str) -> None:
    """The programs import no package that is missing on the platform.

    The bundle brings jinja2 and a stand-in for tqdm. All other packages must be in the platform's
    container image.
    """
    folder = secret / program
    imported_packages = set()
    for path in folder.rglob("*.py"):
        imported_packages |= {name.split(".")[0] for name in imported(path)}
    beside_programs = {path.stem for path in folder.iterdir()}
    # jinja2 imports typing_extensions only for type checkers, so the platform may lack it.
    needed = imported_packages - beside_programs - sys.stdlib_module_names - {"typing_extensions"}
    assert needed <= {"numpy", "pandas", "pyarrow", "tqdm", "scipy"}


def test_the_same_secret_makes_the_same_competition(secret: Path, tmp_path: Path) -> None:
    again = make_bundles(tmp_path, "--size", "tiny", "--seed", SECRET, "--tasks", 1)
    for phase in layout.PHASES:
        answers = answers_of(secret, 1, phase).read_bytes()
        assert answers_of(again, 1, phase).read_bytes() == answers, phase


# ---- Own answers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_bundle(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a bundle of answers that an organiser has collected; return it as an unpacked folder.

    The folder "public" beside it holds the unpacked public data. Tests must not change either
    folder.
    """
    answers = simulated_kit / "data/train_data" / layout.TRAIN_TASK_3_4
    flags = ("--answers", answers, "--min_answers", 0, "--tasks", 1, 2, 4)
    bundle = make_bundles(tmp_path_factory.mktemp("own"), *flags)
    shutil.unpack_archive(bundle / PUBLIC, bundle.with_name("public"))
    return bundle


def test_the_data_page_says_that_task_4_has_the_same_questions(own_bundle: Path) -> None:
    page = (own_bundle / "pages/data.md").read_text()
    assert "Task 4 has the same questions" in page
    assert "metadata/" not in page


def test_the_organiser_alone_gets_the_own_ids(own_bundle: Path) -> None:
    private = own_bundle.with_name("bundle_private")
    assert (private / "organiser/students.csv").is_file()
    assert [*own_bundle.rglob("organiser")] == []
    assert [*own_bundle.with_name("public").rglob("organiser")] == []


def test_a_page_names_a_missing_file_of_metadata_without_the_organisers_folders(
    own_bundle: Path, tmp_path: Path
) -> None:
    """The bundle is made from the organiser's own answers, without metadata.

    A submission is scored. The page of its score says which table is left out, and which file is
    missing.
    """
    public_data = own_bundle.with_name("public")
    files = submission_for(public_data / "submission_templates", task=1)
    submission = write_zip(tmp_path / "team.zip", files)
    zipped_bundle = own_bundle.with_name("bundle.zip")
    printed = succeeds([PLAY, zipped_bundle, submission, "--output_dir", tmp_path])
    assert "Task 1, public: scored" in printed
    # The page names the file by its path in the data folder, because participants do not know the
    # organiser's folders.
    page = read_page((tmp_path / "detailed_results_task_1_public.html").read_text())
    assert "Accuracy by quiz: metadata/answer_metadata_task_1_2.csv is not there." in page.text


# ---- Wrong flags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", "short"], "--seed: has 5 characters, expected at least 16"),
        (["--seed", SECRET, "--official", "{tmp}"], "--seed: is for simulated answers and splits"),
        (["--official", "{tmp}"], "fetches them, `python data/generate_sample.py` simulates some"),
        (["--min_answers", "9"], "--min_answers: is for answers of your own"),
        (["--contact", "me"], "--contact: is 'me', expected an address such as name@example.org"),
        (["--start", "2027-01-01", "--end", "2027-01-05"], "--end: is 2027-01-05, expected"),
        (["--final_days", "99999999999"], "with 99999999999 private days, expected an end"),
        (["--title", "two\nlines"], "--title: is 'two\\nlines', expected one line of 1 to 255"),
        (["--output", "{tmp}/bundle.tar"], "expected the name of a zip"),
    ],
)
def test_wrong_flags_are_told_in_one_line_and_nothing_is_written(
    flags: list[str], message: str, tmp_path: Path
) -> None:
    words = [flag.format(tmp=tmp_path) for flag in ["--output", "{tmp}/bundle.zip", *flags]]
    assert message in fails(["hosting/make_bundle.py", *words])
    assert list(tmp_path.iterdir()) == []
