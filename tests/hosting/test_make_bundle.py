"""Whole competitions: bundles are made, unpacked and scored; participants cannot find answers."""

import ast
import csv
import hashlib
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import competition
import malformed
import numpy as np
import participants
import platform_rules
import pytest
import toy_bundle
import yaml
from conftest import Run
from page_reading import read_page
from run_scripts import run_process

from common import layout, schema
from common.adaptive.entry_files import ENTRY_FILE as ENTRY_NAME

Succeeds = Callable[..., str]

ROOT = Path(__file__).resolve().parents[2]
# Joined, so that this file, which is part of the starting kit, does not hold it.
SECRET = " ".join(["nobody", "will", "ever", "guess", "it"])
PUBLIC = competition.PUBLIC_DATA
Columns = dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]
CSV_TASKS = (1, 2, 3)
# An entry of task 4 with room for what its methods do besides.
ENTRY = """
class Submission:
    def select_questions(self, seen, right, can_query):
        {select}
        return can_query.argmax(axis=1)
    def update_model(self, seen, right, can_query):
        {update}
    def predict(self, seen, right):
        return right.cumsum(axis=1) % 2
"""


def make(run: Run, path: Path, *flags: object) -> Path:
    done = run(["hosting/make_bundle.py", *flags, "--output", path])
    assert done.returncode == 0, done.stderr
    return path


def unpacked(path: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.parent / "unpacked")
    return path.parent / "unpacked"


@pytest.fixture(scope="module")
def of_the_kit(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of the simulated kit's own files, unpacked: only read from it."""
    path = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    return unpacked(make(run, path, "--official", simulated_kit / "data"))


@pytest.fixture(scope="module")
def secret(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle from a secret seed, unpacked: only read from it."""
    path = tmp_path_factory.mktemp("secret") / "bundle.zip"
    flags = ("--size", "tiny", "--seed", SECRET, "--start", "2027-02-01", "--end", "2027-03-31")
    return unpacked(make(run, path, *flags, "--title", "A course: of '27"))


def answers_of(bundle: Path, task: int, phase: str) -> Path:
    """Return the file of the answers that a phase of a task is scored on, or of both of them."""
    name = layout.test_masks_name(phase) if task == 4 else layout.test_answers_name(task, phase)
    return bundle / f"reference_data/task_{task}_{phase}/test_data/{name}"


def template_name(task: int) -> str:
    return layout.TEMPLATE_TASK_3 if task == 3 else layout.TEMPLATE_TASK_1_2


def fill_in(template: str, task: int) -> bytes:
    """Return a valid submission of tasks 1 to 3 for a template."""
    header, *rows = template.split()
    if task == 3:
        lines = [header, *(f"{row}{rank}" for rank, row in enumerate(rows, 1))]
    else:
        lines = [f"{header},{schema.PREDICTED_COLUMN[task].name}"]
        lines += [f"{row},{place % (2 * task) + task - 1}" for place, row in enumerate(rows)]
    return "\n".join([*lines, ""]).encode()


# ---- Scores --------------------------------------------------------------------------------------


def test_scores_and_pages_are_those_of_the_local_evaluation(
    of_the_kit: Path, simulated_kit: Path, run: Run, succeeds: Succeeds, tmp_path: Path
) -> None:
    """Tasks 1 to 3, in one phase or the other, to the last digit; task 4 follows below."""
    team, local = tmp_path / "team", tmp_path / "local"
    team.mkdir()
    for task in CSV_TASKS:
        template = simulated_kit / "submission_templates" / template_name(task)
        (team / layout.submission_name(task)).write_bytes(fill_in(template.read_text(), task))
    handed_in = tmp_path / "handed_in/team.zip"
    toy_bundle.write_zip(handed_in, {path.name: path.read_text() for path in team.iterdir()})
    for phase, tasks in (("public", (1, 3)), ("private", (2,))):
        flags = ("--submissions", handed_in.parent, "--phase", phase, "--tasks", *tasks)
        output = tmp_path / phase
        done = run(["hosting/run_locally.py", of_the_kit, *flags, "--output_dir", output])
        with (output / "leaderboard.csv").open(newline="") as file:
            found = {row["task"]: float(row["score"]) for row in csv.DictReader(file)}
        assert set(found) == set(map(str, tasks)), done.stdout + done.stderr
        assert all(0 < score < 1 for score in found.values())
        for task in tasks:
            where = ("--submission_dir", team, "--submit_data", layout.submission_name(task))
            flags = (*where, "--phase", phase, "--output_dir", local)
            succeeds([f"task_{task}/local_evaluation.py", *flags], kit=simulated_kit)
            text = (local / f"scores_task_{task}_{phase}.txt").read_text()
            assert found[str(task)] == float(text.removeprefix("score:"))
    # With everything that training answers and metadata tell, read when the bundle was made.
    expected = read_page((local / "scores_task_1_public.html").read_text())
    pages = [read_page(path.read_text()) for path in (tmp_path / "public/details").iterdir()]
    (page,) = (page for page in pages if page.headings == expected.headings)
    # The first says where the files lie.
    shown = [table.rows for table in page.tables[1:]]
    assert shown == [table.rows for table in expected.tables[1:]] and len(shown) > 3
    drawn = [chart.texts for chart in page.charts]
    assert drawn == [chart.texts for chart in expected.charts]
    told = " ".join([page.text, *(text for chart in drawn for text in chart)])
    for part in ("From simulated answers", "best possible", "Confusion matrix", "By difficulty",
                 "no other answer in the quiz known", "Pupil premium"):  # fmt: skip
        assert part in told, part
    assert "left out" not in page.text


def score_many(bundle: Path, name: str, submissions: Path) -> dict[str, list[object]]:
    command = ("tests/hosting/score_many.py", bundle / "scoring_program",
               bundle / "reference_data" / name, submissions)  # fmt: skip
    done = run_process(command)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("task", CSV_TASKS)
def test_malformed_submissions_get_a_message_and_no_score(
    secret: Path, task: int, tmp_path: Path
) -> None:
    name, other = layout.submission_name(task), layout.submission_name(task % 3 + 1)
    with zipfile.ZipFile(secret / PUBLIC) as archive:
        template = archive.read(f"submission_templates/{template_name(task)}").decode()
    content = fill_in(template, task)
    columns: tuple[schema.Column, ...] = (schema.QUESTION_ID, schema.RANKING)
    if task != 3:
        columns = (schema.QUESTION_ID, schema.USER_ID, schema.PREDICTED_COLUMN[task])
    damaged = dict(malformed.damage_csv(malformed.Input("", "", "", columns=columns), content))
    files: dict[str, dict[str, bytes]] = {
        "right": {name: content},
        "with the file of another task": {name: content, other: b""},
        "nothing": {"metadata": b"exitCode: 0\n"},
        "another name": {"submission.csv": content},
        "a folder": {f"submissions/{name}": content},
        "a zip in the zip": {name.replace(".csv", ".zip"): content},
        "another task": {other: content},
        "a row left out": {name: b"".join(content.splitlines(keepends=True)[:-1])},
        "an empty file": {name: b""},
        "a folder of that name": {f"{name}/a.csv": content},
    }
    for case in random.Random(task).sample(sorted(damaged), 8):
        files[case] = {name: damaged[case]}
    for number, members in enumerate(files.values()):
        for member, data in members.items():
            path = tmp_path / str(number) / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    found = score_many(secret, f"task_{task}_public", tmp_path)
    for number, case in enumerate(files):
        code, errors, written = found[str(number)]
        assert isinstance(errors, str) and isinstance(written, dict)
        if number < 2:
            assert (code, errors) == (0, ""), case
            assert set(written) == {"scores.json", "detailed_results.html"}
            # What the experts said of single pairs would be the answers.
            assert "Pairs on which" not in written["detailed_results.html"]
        else:
            assert code == 2, case
            assert re.fullmatch(r"error: [^\n]+\n", errors), case
            assert set(written) == {"detailed_results.html"}, case
            assert "Not scored" in written["detailed_results.html"]
            assert str(secret) not in errors


def test_an_entry_that_fails_or_cheats_gets_no_score(
    secret: Path, simulated_kit: Path, run: Run, succeeds: Succeeds, tmp_path: Path
) -> None:
    # Scored, but then it tells what it has seen: nothing of that may reach the page.
    tells = (
        "self.asked = True",
        "can_query[:] = 0\n        if not hasattr(self, 'asked'):\n"
        "            raise ValueError('the answers ' + '0110' * 9)",
    )
    keys = f"{tempfile.gettempdir()}/**/key.txt"
    opens = f"open(__import__('glob').glob({keys!r}, recursive=True)[0])"

    def entry(select: str, update: str = "pass") -> dict[str, str]:
        return {ENTRY_NAME: ENTRY.format(select=select, update=update)}

    cases = {
        "fails": entry("raise ValueError('x' * 5000)"),
        "tells": entry(*tells),
        "opens": entry(opens),
        "forges": {"played_task_4.npz": "x", "played_task_4.signature": "0" * 64},
        "program": {**entry("pass"), "metadata.yaml": "command: python3 cheat.py"},
    }
    folder, output = tmp_path / "submissions", tmp_path / "output"
    for case, members in cases.items():
        toy_bundle.write_zip(folder / f"{case}.zip", members)
    played = ("--tasks", 4, "--output_dir", output)
    done = run(["hosting/run_locally.py", secret, "--submissions", folder, *played])
    assert done.returncode == 2
    page = (output / "leaderboard.html").read_text()
    assert "raised ValueError" in page and "x" * 400 not in page
    assert "of its own" in page
    with (output / "leaderboard.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["team"] == "tells"
    # Its score is the one that the local evaluation gives for its questions and predictions.
    honest = toy_bundle.write_zip(tmp_path / "honest.zip", entry("pass"))
    flags = ("--skip_curve", "--phase", "public", "--output_dir", tmp_path,
             "--input_dir", answers_of(secret, 4, "public").parent)  # fmt: skip
    succeeds(["task_4/local_evaluation.py", honest, *flags], kit=simulated_kit)
    text = (tmp_path / "scores_task_4_public.txt").read_text()
    assert float(row["score"]) == float(text.removeprefix("score:"))
    (page,) = (path.read_text() for path in (output / "details").iterdir())
    assert "failed when it was given the questions" in page
    assert "0110" not in page and "update_model changes" not in page
    # In the private phase no word of an entry's own is shown.
    done = run(["hosting/run_locally.py", secret, folder / "fails.zip", "--phase", "private",
                *played])  # fmt: skip
    assert "IsTarget_0, round 1, select_questions failed; the public" in done.stderr
    assert "xxx" not in done.stdout + done.stderr


# ---- What participants get -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(secret: Path) -> dict[str, bytes]:
    """Return every file that participants get, by its name."""
    files: dict[str, bytes] = {}
    for name in (PUBLIC, competition.STARTING_KIT):
        with zipfile.ZipFile(secret / name) as archive:
            files |= {f"{name}/{member}": archive.read(member) for member in archive.namelist()}
    files |= {f"pages/{path.name}": path.read_bytes() for path in (secret / "pages").iterdir()}
    # The platform keeps programs and input for itself, but shows the latter to a submission that
    # brings a program of its own.
    files |= {
        str(path.relative_to(secret)): path.read_bytes()
        for path in (secret / "input_data").rglob("*")
        if path.is_file()
    }
    return files


def test_no_seed_marker_or_answers_are_among_them(secret: Path, given: dict[str, bytes]) -> None:
    with zipfile.ZipFile(secret / PUBLIC) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {
            "README.md", "train_data", "metadata", "submission_templates"
        }  # fmt: skip
    number = int.from_bytes(hashlib.sha256(SECRET.encode()).digest(), "big")
    keys = [path.read_bytes().strip() for path in secret.rglob("key.txt")]
    assert len(set(keys)) == 2
    for name, content in given.items():
        assert SECRET.encode() not in content, name
        assert str(number).encode() not in content, name
        assert not any(key in content for key in keys), name
        assert not name.endswith(layout.SIMULATED_MARKER_NAME), name
        assert "test_data/" not in name, name
    # Not even in the bundle, which an organiser may pass on to another.
    for path in secret.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert SECRET.encode() not in content and str(number).encode() not in content, path


def read(content: bytes) -> Columns:
    """Read whole numbers of a CSV; other columns are left out."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return {
        name: np.array(values, float).astype(int)
        for name, values in columns.items()
        if name in ("UserId", "QuestionId", "AnswerId", "IsCorrect")
    }


def pairs_of(columns: Columns) -> list[tuple[int, int]]:
    return list(zip(columns["UserId"].tolist(), columns["QuestionId"].tolist(), strict=True))


def test_hidden_answers_are_not_among_the_training_answers(
    secret: Path, given: dict[str, bytes]
) -> None:
    train = read(given[f"{PUBLIC}/train_data/{layout.TRAIN_TASK_1_2}"])
    known = set(pairs_of(train))
    trained = read(given[f"{PUBLIC}/train_data/{layout.TRAIN_TASK_3_4}"])
    for phase in layout.PHASES:
        pairs = set(pairs_of(read(answers_of(secret, 1, phase).read_bytes())))
        assert pairs and not pairs & known
        examined = read(answers_of(secret, 4, phase).read_bytes())
        assert not set(examined["UserId"].tolist()) & set(trained["UserId"].tolist())


@pytest.mark.parametrize("task", (1, 2))
def test_a_phase_does_not_know_the_answers_of_the_other(secret: Path, task: int) -> None:
    name = layout.test_answers_name(task, "private")
    text = answers_of(secret, task, "public").with_name(name).read_text()
    values = {row[schema.PREDICTED_COLUMN[task].name] for row in csv.DictReader(io.StringIO(text))}
    assert len(values) == 1


def test_nothing_in_the_order_of_the_files_tells_the_answers(
    secret: Path, given: dict[str, bytes]
) -> None:
    """Numbers of answers and rows of the template are as good as a coin at ranking the answers."""
    template = read(given[f"{PUBLIC}/submission_templates/{layout.TEMPLATE_TASK_1_2}"])
    row = {pair: number for number, pair in enumerate(pairs_of(template))}
    hidden = read(answers_of(secret, 1, "private").read_bytes())
    rows = [row[pair] for pair in pairs_of(hidden)]
    for guess in (np.array(rows), hidden["AnswerId"], hidden["UserId"]):
        ranks = np.argsort(np.argsort(guess))
        right = hidden["IsCorrect"] == 1
        n_right, n_wrong = right.sum(), (~right).sum()
        auc = (ranks[right].sum() - n_right * (n_right - 1) / 2) / (n_right * n_wrong)
        deviation = np.sqrt((len(ranks) + 1) / (12 * n_right * n_wrong))
        assert abs(auc - 0.5) < 4 * deviation


def test_guessed_seeds_do_not_make_the_same_answers(
    simulated_kit: Path, given: dict[str, bytes]
) -> None:
    """The generator is public: its default seed gives other answers."""
    name = f"train_data/{layout.TRAIN_TASK_1_2}"
    assert given[f"{PUBLIC}/{name}"] != (simulated_kit / "data" / name).read_bytes()


def test_the_starting_kit_is_this_kit(given: dict[str, bytes]) -> None:
    inside = {name.partition("/")[2] for name in given if name.startswith(competition.STARTING_KIT)}
    assert {"README.md", "quickstart.py", "common/io.py", "common/metadata/reading.py",
            "task_1/sample_model_majority.py", "hosting/make_bundle.py"} <= inside  # fmt: skip
    assert not any(re.search(r"\.venv|__pycache__|train_data|\.git/", name) for name in inside)


def test_the_kit_without_git_is_the_same() -> None:
    walked = participants.walk_kit(ROOT)
    listed = participants.list_kit()
    if not (ROOT / ".git").exists():
        pytest.skip("no repository to compare with")
    assert {name for name in listed if not name.startswith(".")} <= set(walked)
    assert not any(name.startswith(("data/metadata", ".")) for name in walked)


def test_what_an_organiser_keeps_in_the_kit_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("my_class.csv", "seed.txt", "bundle/organiser/students.csv", "data/my_class.csv",
            "data/test_data/key.txt", "hosting/bundle.zip", "handed_in/team/model.py",
            "bundle/scoring_program/score.py", "data/metadata/a.py", "task_1/.seed.md",
            "related_challenges/cloze/data/README.md", "submission_templates/a.csv")  # fmt: skip
    kit = ("README.md", "common/io.py", "common/metadata/reading.py", "hosting/README.md")
    for name in (*kept, *kit):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert participants.walk_kit(tmp_path) == sorted(kit)
    # So does what the organiser has put under version control, but for what is the repository's.
    (tmp_path / ".gitignore").write_text("")
    for command in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / "common/new.py").write_text("x")
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    assert participants.list_kit() == sorted([".gitignore", *kit])


# ---- The bundle ----------------------------------------------------------------------------------


def test_the_platform_takes_it(secret: Path) -> None:
    bundle = platform_rules.read_bundle(secret, secret)
    assert bundle.warnings == []
    assert bundle.title == "A course: of '27"
    assert [phase.name for phase in bundle.phases] == ["Public", "Private"]
    public, private = bundle.phases
    assert public.start.date() == date(2027, 2, 1)
    assert public.end is not None and public.end.date() == date(2027, 3, 24)
    assert private.start > public.end
    assert private.end is not None and private.end.date() == date(2027, 3, 31)
    assert [bundle.tasks[index].name for index in private.tasks] == [
        f"Task {task}, private" for task in (1, 2, 3, 4)
    ]
    # The best score first, the smallest error, the first mask.
    columns = [(column.key, column.descending, column.precision) for column in bundle.columns[:3]]
    assert columns == [("score", True, 4), ("standard_error", False, 4), ("mask_0", True, 4)]
    assert bundle.primary is bundle.columns[0]
    assert (bundle.image, bundle.shows_details) == ("codalab/codalab-legacy:py312", True)


def test_the_platform_shows_no_answers(secret: Path) -> None:
    described = yaml.safe_load((secret / "competition.yaml").read_text())
    for flag in ("make_programs_available", "make_input_data_available",
                 "can_participants_make_submissions_public",
                 "show_detailed_results_in_leaderboard"):  # fmt: skip
        assert described[flag] is False, flag
    # What an entry of task 4 predicts is its own to choose, and could be the answers it has seen.
    assert all(phase["hide_prediction_output"] is True for phase in described["phases"])


def test_the_pages_say_what_the_platform_does(secret: Path) -> None:
    said = " ".join(page.read_text() for page in (secret / "pages").iterdir())
    said = " ".join(said.split())
    assert "$" not in said
    dates = "public phase from 2027-02-01 to 2027-03-24, private phase to 2027-03-31"
    assert dates in said
    phases = yaml.safe_load((secret / "competition.yaml").read_text())["phases"]
    keys = ("max_submissions_per_day", "max_submissions")
    # The private phase decides, and is no place to try.
    assert [tuple(phase[key] for key in keys) for phase in phases] == [(5, 100), (1, 3)]
    assert (
        "Submissions: 5 a day, 100 in all in the public phase, 1 a day, 3 in all in the private"
    ) in said
    assert all(phase["execution_time_limit"] == 600 for phase in phases)


def test_programs_import_only_what_the_image_has(secret: Path) -> None:
    """What stands in for pyarrow and tqdm lies beside the programs."""
    programs = [secret / "scoring_program", *(secret / "ingestion_program").iterdir()]
    assert len(programs) == 3
    for program in programs:
        imported = set()
        for path in program.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    imported.add(node.module.split(".")[0])
        beside = {path.stem for path in program.glob("*.py")} | {"common"}
        others = imported - set(sys.stdlib_module_names) - beside
        assert others <= {"numpy", "matplotlib", "pyarrow", "tqdm", "scipy", "sklearn"}


def test_the_same_secret_makes_the_same_competition(secret: Path, run: Run, tmp_path: Path) -> None:
    flags = ("--size", "tiny", "--seed", SECRET, "--tasks", 1)
    again = unpacked(make(run, tmp_path / "again.zip", *flags))
    for phase in layout.PHASES:
        answers = answers_of(secret, 1, phase).read_bytes()
        assert answers_of(again, 1, phase).read_bytes() == answers
    assert "One zip may hold" in (secret / "pages/overview.md").read_text()
    assert "One zip may hold" not in (again / "pages/overview.md").read_text()
    described = (again / "competition.yaml").read_text()
    assert "Task 2" not in described and "mask_0" not in described
    assert "submission_rule: Force_Best" in described
    assert "hide_prediction_output: false" in described


def test_a_bundle_of_ones_own_answers(
    run: Run, succeeds: Succeeds, simulated_kit: Path, tmp_path: Path
) -> None:
    train = simulated_kit / "data/train_data" / layout.TRAIN_TASK_3_4
    bundle = unpacked(make(run, tmp_path / "own.zip", "--answers", train))
    data_page = (bundle / "pages/data.md").read_text()
    assert "Task 4 has the same questions" in data_page and "of their own" not in data_page
    assert "metadata/" not in data_page
    assert "of real students" in (bundle / "pages/overview.md").read_text()
    assert (bundle / "organiser/students.csv").is_file()
    assert not list(bundle.rglob("task_3_p*"))
    with zipfile.ZipFile(bundle / PUBLIC) as archive:
        assert not any("organiser" in member for member in archive.namelist())
        template = archive.read(f"submission_templates/{template_name(1)}").decode()
    filled_in = {layout.submission_name(1): fill_in(template, 1).decode()}
    team = toy_bundle.write_zip(tmp_path / "team.zip", filled_in)
    said = succeeds(["hosting/run_locally.py", tmp_path / "own.zip", team, "--output_dir",
                     tmp_path])  # fmt: skip
    assert "Task 1, public: scored" in said


# ---- Wrong flags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", "short"], "--seed: has 5 characters, expected at least 16"),
        (["--size", "full", "--answers", "a.csv"], "--size: is for simulated answers"),
        (["--official", "{tmp}", "--tasks", "1"], "test_public_answers_task_1.csv: file not found"),
        (["--official", "{tmp}"], "fetches them, `python data/generate_sample.py` simulates some"),
        (["--answers", "{tmp}/none.csv"], "none.csv: file not found"),
        (["--answers", "{tmp}/none.csv", "--tasks", "3"], "task 3 needs experts' judgements"),
        (["--start", "2027-01-01", "--end", "2027-01-05"], "--end: is 2027-01-05, expected"),
        (["--start", "9999-12-01"], "--start: is 9999-12-01, with 7 private days, expected an end"),
        (["--final_days", "99999999999"], "with 99999999999 private days, expected an end"),
        (["--title", "two\nlines"], "--title: is 'two\\nlines', expected one line of text"),
        (["--title", " "], "--title: has 1 characters, expected 1 to 255"),
        (["--output", "{tmp}/bundle.tar"], "expected the name of a zip"),
    ],
)
def test_wrong_flags(
    flags: Sequence[str], message: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    given = [flag.format(tmp=tmp_path) for flag in flags]
    if not {"--size", "--official", "--answers"} & set(given):
        given += ["--size", "tiny"]
    if "--output" not in given:
        given += ["--output", str(tmp_path / "bundle.zip")]
    assert message in fails(["hosting/make_bundle.py", *given])
    assert list(tmp_path.iterdir()) == []
