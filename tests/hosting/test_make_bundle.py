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
import yaml
from conftest import Run

from common import layout, schema

ROOT = Path(__file__).resolve().parents[2]
# Joined, so that this file, which is part of the starting kit, does not hold it.
SECRET = " ".join(["nobody", "will", "ever", "guess", "it"])
CSV_TASKS = (1, 2, 3)


def make(run: Run, path: Path, *flags: object) -> Path:
    done = run(["hosting/make_bundle.py", *flags, "--output", path])
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def of_the_kit(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of the simulated kit's own files, unpacked: only read from it."""
    folder = tmp_path_factory.mktemp("bundle")
    path = make(run, folder / "bundle.zip", "--official", simulated_kit / "data")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.fixture(scope="module")
def secret(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle from a secret seed, unpacked: only read from it."""
    folder = tmp_path_factory.mktemp("secret")
    flags = ("--size", "tiny", "--seed", SECRET, "--start", "2027-02-01", "--end", "2027-03-31")
    path = make(run, folder / "bundle.zip", *flags, "--title", "A course: of '27")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


# ---- Scores --------------------------------------------------------------------------------------


def test_scores_are_those_of_the_local_evaluation(
    of_the_kit: Path, tiny_kit: Path, run: Run, tmp_path: Path
) -> None:
    """Every task, in one phase or the other, to the last digit."""

    def ok(*arguments: object) -> str:
        done = run(arguments, kit=tiny_kit)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    ok("task_1/sample_model_majority.py")
    ok("task_2/sample_model_majority.py")
    ok("task_3/sample_model_entropy.py")
    ok("task_4/numpy/train_model.py")
    ok("task_4/package.py", tiny_kit / "task_4/numpy")
    team = tmp_path / "submissions/team"
    team.mkdir(parents=True)
    for task in (1, 2, 3, 4):
        name = f"submission_task_{task}.zip"
        (tiny_kit / "submissions" / name).rename(team / name)
    for phase, tasks in (("public", (1, 3, 4)), ("private", (2,))):
        flags = ("--submissions", team.parent, "--phase", phase, "--output_dir", tmp_path / phase)
        flags += ("--tasks", *tasks)
        done = run(["hosting/run_locally.py", of_the_kit, *flags])
        with (tmp_path / phase / "leaderboard.csv").open(newline="") as file:
            found = {row["task"]: float(row["score"]) for row in csv.DictReader(file)}
        assert set(found) == set(map(str, tasks)), done.stdout + done.stderr
        for task in tasks:
            script = f"task_{task}/local_evaluation.py"
            where = ("--submission_dir", team, "--submit_data", f"submission_task_{task}.zip")
            if task == 4:
                where = (team / "submission_task_4.zip", "--skip_curve")
            ok(script, *where, "--phase", phase, "--output_dir", tmp_path / "local")
            text = (tmp_path / f"local/scores_task_{task}_{phase}.txt").read_text()
            assert found[str(task)] == float(text.removeprefix("score:"))


def score_many(bundle: Path, name: str, submissions: Path) -> dict[str, list[object]]:
    command = ("tests/hosting/score_many.py", bundle / "scoring_program",
               bundle / "reference_data" / name, submissions)  # fmt: skip
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


def submissions_of(bundle: Path, task: int) -> tuple[str, bytes, tuple[schema.Column, ...]]:
    """Return the name, the content and the columns of a valid submission of tasks 1 to 3."""
    name = layout.submission_name(task)
    with zipfile.ZipFile(bundle / competition.PUBLIC_DATA) as archive:
        if task == 3:
            rows = archive.read(f"submission_templates/{layout.TEMPLATE_TASK_3}").decode().split()
            lines = [f"{row}{rank}" for rank, row in enumerate(rows[1:], 1)]
            columns = (schema.QUESTION_ID, schema.RANKING)
            return name, "\n".join([rows[0], *lines, ""]).encode(), columns
        text = archive.read(f"submission_templates/{layout.TEMPLATE_TASK_1_2}").decode()
    column = schema.PREDICTED_COLUMN[task]
    header, *rows = text.splitlines()
    lines = [f"{header},{column.name}", *(f"{row},1" for row in rows)]
    return name, "\n".join([*lines, ""]).encode(), (schema.QUESTION_ID, schema.USER_ID, column)


@pytest.mark.parametrize("task", CSV_TASKS)
def test_malformed_submissions_get_a_message_and_no_score(
    secret: Path, task: int, tmp_path: Path
) -> None:
    name, content, columns = submissions_of(secret, task)
    item = malformed.Input("", "", "", columns=columns)
    cases = dict(malformed.damage_csv(item, content))
    chosen = random.Random(task).sample(sorted(cases), 20)
    lines = content.splitlines(keepends=True)
    files: dict[str, dict[str, bytes]] = {
        "right": {name: content},
        "with the file of another task": {name: content, layout.submission_name(task % 3 + 1): b""},
        "nothing": {"metadata": b"exitCode: 0\n"},
        "another name": {"submission.csv": content},
        "a folder": {f"submissions/{name}": content},
        "a zip in the zip": {name.replace(".csv", ".zip"): content},
        "another task": {layout.submission_name(task % 3 + 1): content},
        "a row left out": {name: b"".join(lines[:-1])},
        "an empty file": {name: b""},
        "a folder of that name": {f"{name}/a.csv": content},
        **{case: {name: cases[case]} for case in chosen},
    }
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


def test_pages_are_those_of_the_local_evaluation(of_the_kit: Path, tmp_path: Path) -> None:
    """With everything that training answers and metadata tell, read when the bundle was made."""
    name, content, _ = submissions_of_templates(of_the_kit)
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / name).write_bytes(content)
    _, _, written = found = score_many(of_the_kit, "task_1_public", tmp_path)["0"]
    assert isinstance(written, dict) and found[0] == 0
    page = written["detailed_results.html"]
    for part in ("From simulated answers", "best possible", "Confusion matrix", "By difficulty",
                 "other answers in the quiz known", "Pupil premium"):  # fmt: skip
        assert part in page, part
    assert "left out" not in page


def submissions_of_templates(bundle: Path) -> tuple[str, bytes, int]:
    """Return a submission of task 1, made from what lies in the bundle."""
    rows = ["QuestionId,UserId,IsCorrect"]
    folder = bundle / "reference_data/task_1_public/test_data"
    for phase in layout.PHASES:
        with (folder / layout.test_answers_name(1, phase)).open(newline="") as file:
            rows += [f"{row['QuestionId']},{row['UserId']},1" for row in csv.DictReader(file)]
    return layout.submission_name(1), "\n".join([*rows, ""]).encode(), len(rows)


def test_an_entry_that_fails_or_cheats_gets_no_score(
    secret: Path, run: Run, tmp_path: Path
) -> None:
    entry = """
class Submission:
    def select_questions(self, *arrays): {}
    def update_model(self, *arrays): pass
    def predict(self, *arrays): pass
"""
    name = "submission_model_task_4.py"
    fails = 'raise ValueError("x" * 5000)'
    # Scored, but then it tells what it has seen: nothing of that may reach the page.
    tells = """
class Submission:
    asked = 0
    def select_questions(self, seen, right, can_query):
        self.asked += 1
        return can_query.argmax(axis=1)
    def update_model(self, seen, right, can_query):
        can_query[:] = 0
        if not self.asked:
            raise ValueError("the answers " + "0110" * 9)
    def predict(self, seen, right):
        return right * 0
"""
    keys = f"{tempfile.gettempdir()}/**/key.txt"
    opens = f"open(__import__('glob').glob({keys!r}, recursive=True)[0])"
    cases = {
        "fails": {name: entry.format(fails)},
        "tells": {name: tells},
        "opens": {name: entry.format(opens)},
        "forges": {"played_task_4.npz": "x", "played_task_4.signature": "0" * 64},
        "program": {name: entry.format("pass"), "metadata.yaml": "command: python3 cheat.py"},
    }
    folder = tmp_path / "submissions"
    folder.mkdir()
    for case, members in cases.items():
        with zipfile.ZipFile(folder / f"{case}.zip", "w") as archive:
            for member, text in members.items():
                archive.writestr(member, text)
    flags = ("--submissions", folder, "--tasks", 4, "--output_dir", tmp_path / "output")
    done = run(["hosting/run_locally.py", secret, *flags])
    assert done.returncode == 2
    page = (tmp_path / "output/leaderboard.html").read_text()
    assert "raised ValueError" in page and "x" * 400 not in page
    assert "of its own" in page
    rows = list(csv.reader((tmp_path / "output/leaderboard.csv").open()))[1:]
    assert [row[3] for row in rows] == ["tells"]
    (page,) = (path.read_text() for path in (tmp_path / "output/details").iterdir())
    assert "failed when it was given the questions" in page
    assert "0110" not in page and "update_model changes" not in page
    # In the private phase no word of an entry's own is shown.
    flags = ("--phase", "private", "--tasks", 4, "--output_dir", tmp_path / "output")
    done = run(["hosting/run_locally.py", secret, folder / "fails.zip", *flags])
    assert "IsTarget_0, round 1, select_questions failed; the public" in done.stderr
    assert "xxx" not in done.stdout + done.stderr


# ---- What participants get -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(secret: Path) -> dict[str, bytes]:
    """Return every file that participants get, by its name."""
    files = {}
    for name in (competition.PUBLIC_DATA, competition.STARTING_KIT):
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
    with zipfile.ZipFile(secret / competition.PUBLIC_DATA) as archive:
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


def read(content: bytes) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Read whole numbers of a CSV; other columns are left out."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return {
        name: np.array(values, float).astype(int)
        for name, values in columns.items()
        if name in ("UserId", "QuestionId", "AnswerId", "IsCorrect")
    }


def test_hidden_answers_are_not_among_the_training_answers(
    secret: Path, given: dict[str, bytes]
) -> None:
    public = f"{competition.PUBLIC_DATA}/train_data/"
    train = read(given[f"{public}{layout.TRAIN_TASK_1_2}"])
    known = set(zip(train["UserId"].tolist(), train["QuestionId"].tolist(), strict=True))
    for phase in layout.PHASES:
        name = layout.test_answers_name(1, phase)
        hidden = read((secret / f"reference_data/task_1_{phase}/test_data/{name}").read_bytes())
        pairs = set(zip(hidden["UserId"].tolist(), hidden["QuestionId"].tolist(), strict=True))
        assert pairs and not pairs & known
        name = layout.test_masks_name(phase)
        examined = read((secret / f"reference_data/task_4_{phase}/test_data/{name}").read_bytes())
        trained = read(given[f"{public}{layout.TRAIN_TASK_3_4}"])
        assert not set(examined["UserId"].tolist()) & set(trained["UserId"].tolist())


@pytest.mark.parametrize("task", (1, 2))
def test_a_phase_does_not_know_the_answers_of_the_other(secret: Path, task: int) -> None:
    name = layout.test_answers_name(task, "private")
    text = (secret / f"reference_data/task_{task}_public/test_data/{name}").read_text()
    values = {row[schema.PREDICTED_COLUMN[task].name] for row in csv.DictReader(io.StringIO(text))}
    assert len(values) == 1


def test_nothing_in_the_order_of_the_files_tells_the_answers(
    secret: Path, given: dict[str, bytes]
) -> None:
    """Numbers of answers and rows of the template are as good as a coin at ranking the answers."""
    template = read(
        given[f"{competition.PUBLIC_DATA}/submission_templates/submission_task_1_2.csv"]
    )
    row = {
        pair: number
        for number, pair in enumerate(
            zip(template["UserId"].tolist(), template["QuestionId"].tolist(), strict=True)
        )
    }
    name = layout.test_answers_name(1, "private")
    hidden = read((secret / f"reference_data/task_1_private/test_data/{name}").read_bytes())
    rows = [
        row[p] for p in zip(hidden["UserId"].tolist(), hidden["QuestionId"].tolist(), strict=True)
    ]
    for guess in (np.array(rows), hidden["AnswerId"], hidden["UserId"]):
        ranks = np.argsort(np.argsort(guess))
        right = hidden["IsCorrect"] == 1
        n_right, n_wrong = right.sum(), (~right).sum()
        auc = (ranks[right].sum() - n_right * (n_right - 1) / 2) / (n_right * n_wrong)
        deviation = np.sqrt((len(ranks) + 1) / (12 * n_right * n_wrong))
        assert abs(auc - 0.5) < 4 * deviation


def test_guessed_seeds_do_not_make_the_same_answers(
    secret: Path, simulated_kit: Path, given: dict[str, bytes]
) -> None:
    """The generator is public: its default seed gives other answers."""
    ours = (simulated_kit / "data/train_data" / layout.TRAIN_TASK_1_2).read_bytes()
    assert given[f"{competition.PUBLIC_DATA}/train_data/{layout.TRAIN_TASK_1_2}"] != ours


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
    # What an entry of task 4 predicts is its own to choose, and could be the answers it has seen.
    phases = yaml.safe_load((secret / "competition.yaml").read_text())["phases"]
    assert all(phase["hide_prediction_output"] is True for phase in phases)
    assert [column.key for column in bundle.columns][:3] == ["score", "standard_error", "mask_0"]
    text = (secret / "competition.yaml").read_text()
    for fact in (
        "version: 2",
        "leaderboards:",
        "docker_image: codalab/codalab-legacy:py312",
        "enable_detailed_results: true",
        "precision: 4",
        "execution_time_limit: 600",
    ):
        assert fact in text
    for page in (secret / "pages").iterdir():
        assert "$" not in page.read_text()


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
    with zipfile.ZipFile(make(run, tmp_path / "again.zip", *flags)) as archive:
        for phase in layout.PHASES:
            name = f"reference_data/task_1_{phase}/test_data/{layout.test_answers_name(1, phase)}"
            assert archive.read(name) == (secret / name).read_bytes()
        described = archive.read("competition.yaml").decode()
        assert b"One zip may hold" not in archive.read("pages/overview.md")
    assert "One zip may hold" in (secret / "pages/overview.md").read_text()
    assert "Task 2" not in described and "mask_0" not in described
    assert "submission_rule: Force_Best" in described
    assert "hide_prediction_output: false" in described


def test_a_bundle_of_ones_own_answers(run: Run, simulated_kit: Path, tmp_path: Path) -> None:
    train = simulated_kit / "data/train_data" / layout.TRAIN_TASK_3_4
    bundle = make(run, tmp_path / "own.zip", "--answers", train)
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        page = archive.read("pages/overview.md").decode()
        data_page = archive.read("pages/data.md").decode()
    assert "Task 4 has the same questions" in data_page and "of their own" not in data_page
    assert "metadata/" not in data_page
    assert "organiser/students.csv" in names
    assert not any(re.search("task_3_p", name) for name in names)
    assert "of real students" in page
    with zipfile.ZipFile(bundle) as archive:
        data = archive.read(competition.PUBLIC_DATA)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert not any("organiser" in member for member in archive.namelist())
        header, *rows = (
            archive.read("submission_templates/submission_task_1_2.csv").decode().split()
        )
    content = "\n".join([f"{header},IsCorrect", *(f"{row},1" for row in rows), ""]).encode()
    with zipfile.ZipFile(tmp_path / "team.zip", "w") as archive:
        archive.writestr(layout.submission_name(1), content)
    done = run(["hosting/run_locally.py", bundle, tmp_path / "team.zip", "--output_dir", tmp_path])
    assert done.returncode == 0, done.stderr
    assert "Task 1, public: scored" in done.stdout


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
