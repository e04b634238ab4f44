"""Whole competitions: bundles are made, unpacked and scored; participants cannot find answers."""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from itertools import product
from pathlib import Path

from common import layout
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
from run_scripts import ROOT
from sklearn.metrics import roc_auc_score
from toy_bundle import entry, make_bundles, submission_for, write_zip

# Joined, so that this file, which is part of the starting kit, does not hold it.
SECRET = " ".join(["nobody", "will", "ever", "guess", "it"])
PUBLIC = competition.PUBLIC_DATA
PLAY = "hosting/run_locally.py"
PAIR = ["UserId", "QuestionId"]


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of all tasks from a secret seed, unpacked: only read from it."""
    flags = ("--size", "tiny", "--seed", SECRET, "--start", "2027-02-01", "--end", "2027-03-31")
    about = ("--title", "A course: of '27", "--tasks", 1, 2, 3, 4)
    return make_bundles(tmp_path_factory.mktemp("bundle"), *flags, *about)


def answers_of(bundle: Path, task: int, phase: str) -> Path:
    """Return the file of the answers that a phase of a task is scored on."""
    name = TASKS[task].answers_name(phase)
    base = bundle if phase == "public" else bundle.with_name(f"{bundle.name}_private")
    return base / f"reference_data/task_{task}_{phase}/test_data" / name


def scores_in(output: Path) -> dict[tuple[str, int], float]:
    """Return the scores on a leaderboard, by team and task."""
    board = pd.read_csv(output / "leaderboard.csv", index_col=["team", "task"])
    return board["score"].to_dict()


# ---- Scores --------------------------------------------------------------------------------------


def test_scores_refusals_and_pages_are_those_of_the_local_evaluation(
    simulated_kit: Path, tmp_path: Path
) -> None:
    """Tasks 1 to 3, in one phase or the other, to the last digit; task 4 follows below."""
    official = ("--official", simulated_kit / "data", "--tasks", 1, 2, 3)
    bundle, local = make_bundles(tmp_path, *official), tmp_path / "local"
    # Their licence leaves it to their publisher to hand out the official files.
    assert zipfile.ZipFile(bundle / PUBLIC).namelist() == ["README.md"]
    right: dict[str, str] = {}
    for task in (1, 2, 3):
        right |= submission_for(simulated_kit / "submission_templates", task)
    cut = {name: text[: text.index("\n", len(text) // 2) + 1] for name, text in right.items()}
    nested = {f"a/{name}": text for name, text in right.items()}
    nested["submission_task_2.csv/b.csv"] = ""
    for team, members in {"right": right, "cut": cut, "nested": nested}.items():
        path = write_zip(tmp_path / f"handed_in/{team}.zip", members)
        shutil.unpack_archive(path, tmp_path / team)
    for phase, tasks in (("public", (1, 3)), ("private", (2, 3))):
        flags = ("--submissions", tmp_path / "handed_in", "--phase", phase, "--tasks", *tasks)
        done = run([PLAY, bundle, *flags, "--output_dir", tmp_path / phase])
        assert (done.returncode, done.stderr.count("\n")) == (2, 4)
        scores = scores_in(tmp_path / phase)
        assert set(scores) == {("right", task) for task in tasks}, done.stdout + done.stderr
        for task in tasks:
            name = TASKS[task].submission
            flags = ("--submit_data", name, "--phase", phase, "--output_dir", local)
            evaluate = [f"task_{task}/local_evaluation.py", *flags, "--submission_dir"]
            line = fails([*evaluate, tmp_path / "cut"], kit=simulated_kit)
            for place in (tmp_path / "cut", simulated_kit / "data", simulated_kit):
                line = line.replace(f"{place}/", "")
            assert line.startswith(name)
            assert f"error: cut.zip: Task {task}, {phase}: {line}\n" in done.stderr
            succeeds([*evaluate, tmp_path / "right"], kit=simulated_kit)
            text = (local / f"scores_task_{task}_{phase}.txt").read_text()
            assert 0 < scores["right", task] == float(text.removeprefix("score:")) < 1
    missing = "the zip holds no submission_task_2.csv at its top level, but a/"
    assert f"error: nested.zip: Task 2, private: {missing}" in done.stderr
    # With everything that training answers and metadata tell, read when the bundle was made.
    expected = read_page((local / "scores_task_1_public.html").read_text())
    pages = [read_page(path.read_text()) for path in (tmp_path / "public/details").iterdir()]
    (page,) = (page for page in pages if page.headings == expected.headings)
    # The first table says where the files lie.
    assert page.tables[1:] == expected.tables[1:] and len(page.tables) > 4
    assert page.charts == expected.charts
    for part in ("From simulated answers", "Confusion matrix", "By difficulty", "Pupil premium"):
        assert part in page.text
    assert "left out" not in page.text
    # What the experts said of single pairs would be the answers.
    assert "Pairs on which" in (local / "scores_task_3_public.html").read_text()
    assert not any("Pairs on which" in page.text for page in pages)


def test_an_entry_that_fails_or_cheats_gets_no_score(
    secret: Path, simulated_kit: Path, tmp_path: Path
) -> None:
    keys = f"{tempfile.gettempdir()}/**/key.txt"
    cases = {
        "fails": entry("raise ValueError('x' * 9)"),
        # Scored, but then it tells what it has seen: nothing of that may reach the page.
        "tells": entry(
            "self.asked = True",
            "can_query[:] = 0\n        if not hasattr(self, 'asked'):\n"
            "            raise ValueError('the answers ' + '0110' * 9)",
        ),
        "opens": entry(f"open(__import__('glob').glob({keys!r}, recursive=True)[0])"),
    }
    folder, output = tmp_path / "submissions", tmp_path / "output"
    for case, members in cases.items():
        write_zip(folder / f"{case}.zip", members)
    played = ("--tasks", 4, "--output_dir", output)
    assert run([PLAY, secret, "--submissions", folder, *played]).returncode == 2
    assert "raised ValueError" in Page((output / "leaderboard.html").read_text()).text
    # Its score is the one that the local evaluation gives for its questions and predictions.
    honest = write_zip(tmp_path / "honest.zip", entry())
    flags = ("--skip_curve", "--phase", "public", "--output_dir", tmp_path,
             "--input_dir", answers_of(secret, 4, "public").parent)  # fmt: skip
    succeeds(["task_4/local_evaluation.py", honest, *flags], kit=simulated_kit)
    text = (tmp_path / "scores_task_4_public.txt").read_text()
    assert scores_in(output) == {("tells", 4): float(text.removeprefix("score:"))}
    (page,) = (path.read_text() for path in (output / "details").iterdir())
    assert "failed when the games were replayed with given questions" in page
    assert "0110" not in page and "update_model changes" not in page
    # In the private phase no word of an entry's own is shown.
    fails = folder / "fails.zip"
    done = run([PLAY, secret, fails, "--phase", "private", *played])
    line = "the entry: IsTarget_0, round 1, select_questions failed; the public phase says how"
    assert (done.returncode, done.stderr) == (2, f"error: {fails}: Task 4, private: {line}\n")
    assert "xxx" not in done.stdout + done.stderr


# ---- What participants get -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(secret: Path) -> dict[str, bytes]:
    """Return every file that participants get, by its name."""
    files: dict[str, bytes] = {}
    for name in (PUBLIC, competition.STARTING_KIT):
        with zipfile.ZipFile(secret / name) as archive:
            files |= {f"{name}/{member}": archive.read(member) for member in archive.namelist()}
    # The platform keeps programs and input for itself, but shows the latter to a submission that
    # brings a program of its own.
    paths = [*(secret / "pages").iterdir(), *(secret / "input_data").rglob("*.csv")]
    return files | {str(path.relative_to(secret)): path.read_bytes() for path in paths}


def test_no_seed_marker_or_answers_are_among_them(
    secret: Path, given: dict[str, bytes], simulated_kit: Path
) -> None:
    parts = {name.split("/")[1] for name in given if name.startswith(PUBLIC)}
    assert parts == {"README.md", "train_data", "metadata", "submission_templates"}
    number = int.from_bytes(hashlib.sha256(SECRET.encode()).digest(), "big")
    keys = {path.read_bytes().strip() for path in secret.parent.rglob("key.txt")}
    assert len(keys) == 3
    for name, content in given.items():
        assert not any(key in content for key in keys), name
        assert not name.endswith(layout.SIMULATED_MARKER_NAME), name
        assert "test_data/" not in name, name
    # Not even in the bundle, which an organiser may pass on to another.
    bundle = {str(path): path.read_bytes() for path in secret.parent.rglob("*") if path.is_file()}
    for name, content in (given | bundle).items():
        assert SECRET.encode() not in content and str(number).encode() not in content, name
    # The generator is public: its default seed gives other answers.
    name = f"train_data/{layout.TRAIN_TASK_1_2}"
    assert given[f"{PUBLIC}/{name}"] != (simulated_kit / "data" / name).read_bytes()


def test_what_is_uploaded_holds_no_private_answer(secret: Path, given: dict[str, bytes]) -> None:
    """Of no pair a value, of no examined student a row, of no judgement the questions."""
    there = {str(path.relative_to(secret)): path.read_bytes() for path in secret.rglob("*.csv")}
    tables = {name: text for name, text in (given | there).items() if name.endswith(".csv")}
    assert len(tables) > 12
    for name, text in tables.items():
        table = pd.read_csv(io.BytesIO(text))
        if {*PAIR} <= set(table) and {"IsCorrect", "AnswerValue"} & set(table):
            # Tasks 3 and 4 have questions and students of their own.
            tasks, key = ((1, 2), PAIR) if re.search("task_[12]", name) else ((4,), PAIR[:1])
            # What participants get holds none of the public phase either.
            is_kept = name.startswith(("reference_data", "ingestion_program"))
            for task, phase in product(tasks, ["private"] if is_kept else layout.PHASES):
                hidden = pd.read_csv(answers_of(secret, task, phase))
                assert len(hidden) and hidden[key].merge(table[key]).empty, name
    # Nor as lines of a file of any kind: a value beside its ids.
    lines = set()
    for path in filter(Path.is_file, secret.rglob("*")):
        lines |= set(path.read_bytes().split())
    for task in (1, 2, 3, 4):
        public, own = (
            set(answers_of(secret, task, phase).read_bytes().split()[1:]) for phase in layout.PHASES
        )
        # Of few questions, a pair may be judged alike in both.
        assert public <= lines and len(own - public) > 20 and not (own - public) & lines, task


def test_nothing_in_the_order_of_the_answers_tells_them(secret: Path) -> None:
    """Numbers and rows are as good as a coin at ranking the answers; so is the template's order."""
    hidden = pd.read_csv(answers_of(secret, 1, "private"))
    right = hidden["IsCorrect"]
    deviation = np.sqrt((len(right) + 1) / (12 * right.sum() * (1 - right).sum()))
    for guess in (hidden.index, hidden["AnswerId"], hidden["UserId"]):
        assert abs(roc_auc_score(right, guess) - 0.5) < 4 * deviation


def test_the_starting_kit_is_this_kit(given: dict[str, bytes]) -> None:
    inside = {name.partition("/")[2] for name in given if name.startswith(competition.STARTING_KIT)}
    assert {"README.md", "quickstart.py", "common/reading.py", "common/item_response/model.py",
            "common/templates/base.html", "common/templates/style.css",
            "task_1/sample_model_majority.py"} <= inside  # fmt: skip
    assert not any(re.search(r"\.venv|__pycache__|train_data|\.git/", name) for name in inside)
    # Its pages link to nothing that it lacks, such as this folder.
    folders = {str(place) for name in inside for place in Path(name).parents}
    for name in filter(lambda name: name.endswith(".md"), inside):
        text = given[f"{competition.STARTING_KIT}/{name}"].decode()
        assert text.count("\n") == (ROOT / name).read_text().count("\n")
        for link in re.findall(r"\]\((?!http)([^)#]+)", text):
            assert os.path.normpath(Path(name).parent / link) in inside | folders, (name, link)
    if (ROOT / ".git").exists():
        done = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
        others = ("hosting/", "tests/", ".ci/", ".github/", ".pre-commit-config.yaml")
        tracked = {name for name in done.stdout.split("\n") if name and (ROOT / name).is_file()}
        assert inside == {name for name in tracked if not name.startswith(others)}


def test_what_an_organiser_keeps_in_the_kit_stays_there(tmp_path: Path) -> None:
    kept = ("my_class.csv", "seed.txt", "bundle/organiser/students.csv", "data/my_class.csv",
            "data/test_data/key.txt", "hosting/bundle.zip", "handed_in/team/model.py",
            "bundle/scoring_program/score.py", "data/metadata/a.py", "task_1/.seed.md",
            "related_challenges/cloze/data/README.md", "submission_templates/a.csv")  # fmt: skip
    kit = ("README.md", "common/reading.py", "common/item_response/model.py", "data/README.md")
    for name in (*kept, *kit):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert bundle_files.list_kit(tmp_path) == sorted(kit)
    # So does what the organiser has put under version control.
    (tmp_path / ".gitignore").write_text("")
    for command in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / "common/new.py").write_text("x")
    assert bundle_files.list_kit(tmp_path) == sorted([".gitignore", *kit])


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


def test_the_platform_takes_it_and_shows_no_answers(secret: Path, tmp_path: Path) -> None:
    bundle = read_bundle(secret, tmp_path / "bundle")
    assert bundle.title == "A course: of '27"
    times = [(phase.start, phase.end) for phase in bundle.phases]
    assert times == [("2027-02-01 00:00:00", "2027-03-24 23:59:59"),
                     ("2027-03-25 00:00:00", "2027-03-31 23:59:59")]  # fmt: skip
    # The best score first, then the smallest error; what masks give is a task's own.
    columns = [(column.key, column.sorting, column.precision) for column in bundle.columns]
    assert columns == [("score", "desc", 4), ("standard_error", "asc", 4)]
    described = yaml.safe_load((secret / "competition.yaml").read_text())
    assert described["enable_detailed_results"] is True and "contact_email" not in described
    # Its rule for the best one would look at all tasks together.
    assert described["leaderboards"][0]["submission_rule"] == "Force_Latest_Multiple"
    for flag in ("make_programs_available", "make_input_data_available",
                 "can_participants_make_submissions_public",
                 "show_detailed_results_in_leaderboard"):  # fmt: skip
        assert described[flag] is False, flag
    # Else a stranger could fetch what leads, and an entry print the answers it has seen.
    for part in ("output", "prediction_output", "score_output"):
        assert all(phase[f"hide_{part}"] is True for phase in described["phases"])
    # The pages say what the platform does.
    said = " ".join(" ".join(page.read_text() for page in (secret / "pages").iterdir()).split())
    assert "public phase from 2027-02-01 to 2027-03-24, private phase to 2027-03-31" in said
    assert "5 a day, 100 in all in the public phase, 1 a day, 3 in all in the private" in said


def test_programs_import_only_what_the_image_has(secret: Path) -> None:
    """What stands in for tqdm, and the engine of the pages, lie beside the programs."""
    for program in (secret / "scoring_program", secret / "ingestion_program/private"):
        names = {name.split(".")[0] for path in program.rglob("*.py") for name in imported(path)}
        others = names - {path.stem for path in program.iterdir()}
        # Only what checks types would import the last, in jinja2.
        others -= {*sys.stdlib_module_names, "typing_extensions"}
        assert others <= {"numpy", "pandas", "pyarrow", "tqdm", "scipy", "sklearn"}


def test_the_same_secret_makes_the_same_competition(secret: Path, tmp_path: Path) -> None:
    again = make_bundles(tmp_path, "--size", "tiny", "--seed", SECRET, "--tasks", 1)
    for phase in layout.PHASES:
        answers = answers_of(secret, 1, phase).read_bytes()
        assert answers_of(again, 1, phase).read_bytes() == answers


def test_a_bundle_of_ones_own_answers(simulated_kit: Path, tmp_path: Path) -> None:
    own = simulated_kit / "data/train_data" / layout.TRAIN_TASK_3_4
    flags = ("--answers", own, "--min_answers", 0, "--tasks", 1, 2, 4)
    bundle = make_bundles(tmp_path, *flags)
    data_page = (bundle / "pages/data.md").read_text()
    assert "Task 4 has the same questions" in data_page and "metadata/" not in data_page
    assert (tmp_path / "bundle_private/organiser/students.csv").is_file()
    shutil.unpack_archive(bundle / PUBLIC, tmp_path / "public")
    assert not [*bundle.rglob("organiser"), *(tmp_path / "public").rglob("organiser")]
    right = submission_for(tmp_path / "public/submission_templates", 1)
    team = write_zip(tmp_path / "team.zip", right)
    said = succeeds([PLAY, bundle.with_name("bundle.zip"), team, "--output_dir", tmp_path])
    assert "Task 1, public: scored" in said
    # The page tells what is left out, and nothing of the organiser's folders.
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
def test_wrong_flags(flags: list[str], message: str, tmp_path: Path) -> None:
    given = [flag.format(tmp=tmp_path) for flag in ["--output", "{tmp}/bundle.zip", *flags]]
    assert message in fails(["hosting/make_bundle.py", *given])
    assert list(tmp_path.iterdir()) == []
