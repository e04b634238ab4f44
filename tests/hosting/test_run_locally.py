"""The local runner: what programs see, how they end, and a class's leaderboard."""

import csv
import json
import os
import shutil
import time
from pathlib import Path

import bundle as worker
import pytest
import toy_bundle
from bundle import Bundle, read_bundle
from conftest import fails, run, succeeds
from page_reading import Page, read_page
from platforms import on_unix
from run_scripts import Done, ends

SCRIPT = "hosting/run_locally.py"
FIRST = "submission_task_1.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the toy bundle as a folder: only read from it."""
    return toy_bundle.write_folder(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def bundle(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return read_bundle(folder, tmp_path_factory.mktemp("unpacked"))


def play(
    bundle: Bundle, path: Path, source: str, beside: str = "", task: int = 0, limit: int = 60
) -> worker.Result:
    """Let the toy scoring program run a text as a submission, perhaps with a file beside it."""
    name = FIRST if task == 0 else "submission_model_task_4.py"
    more = {beside: "command: python3 a.py"} if beside else {}
    toy_bundle.write_zip(path, {name: source, **more})
    return worker.score(path, bundle.tasks[task], bundle, limit)


# ---- One submission ----------------------------------------------------------------------------


def test_programs_see_the_folders_of_the_platform(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("A_PASSWORD", "x")
    source = """
import os
assert sys.argv[1].endswith("/app/input") and sys.argv[2].endswith("/app/output")
program = given.parent / "program"
assert pathlib.Path.cwd() == program and sys.path[0] == str(program)
assert not {"PYTHONPATH", "A_PASSWORD"} & set(os.environ)
assert (given / "ref/file.txt").read_text() == "submission_task_1.csv"
assert sorted(p.name for p in (given / "res").iterdir()) == ["a.txt", "metadata", file.name]
assert "ingestionExitCode: null" in (given / "res/metadata").read_text()
print("only to stdout")
# These are copies: nothing that a run changes reaches the next one.
for path in (given / "ref/file.txt", pathlib.Path(sys.argv[0])):
    path.write_text("changed")
score(0.1 + 0.2, standard_error=1, extra=[1])
"""
    result = play(bundle, tmp_path / "a.zip", source, "a.txt")
    for name in ("reference_data/task_1_public/file.txt", "scoring_program/score.py"):
        assert (bundle.folder / name).read_text() != "changed"
    assert (result.fault, result.output) == ("", ())
    assert result.scores == {"score": 0.1 + 0.2, "standard_error": 1.0}
    assert result.details == f"<p>{0.1 + 0.2}</p>"


@pytest.mark.parametrize(
    ("source", "beside", "expected"),
    [
        ("(written / 'scores.json').write_text('{}')", "", worker.NO_SCORES),
        ("sys.exit('error: row 3 is missing')", "", "row 3 is missing"),
        ("raise ValueError('at ' + str(given))", "", "ValueError: at /app/input"),
        ("fail", "", "the entry failed"),
        # The platform would run the submission itself.
        ("score(1)", "metadata.yaml", "holds metadata.yaml: the platform would run the submission"),
        ("score(1)", "metadata", "holds metadata: the platform would run the submission as a "),
    ],
)
def test_without_valid_scores_a_submission_fails(
    bundle: Bundle, tmp_path: Path, source: str, beside: str, expected: str
) -> None:
    result = play(bundle, tmp_path / "a.zip", source, beside, task=2 if source == "fail" else 0)
    assert result.scores == {} and expected in result.fault
    if source == "fail":  # What went wrong first is the reason.
        lines = ("error: the entry failed", "error: no file of the task in the zip")
        assert (result.fault, result.output) == (expected, lines)


@on_unix("signals for a group of processes")
def test_a_program_ends_in_time_with_what_it_started(bundle: Bundle, tmp_path: Path) -> None:
    where = tmp_path / "child"
    source = f"""
import subprocess, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(where)!r}).write_text(str(child.pid))
score(0.9)
"""
    for limit in (1, 4, 16, 64):  # A busy machine may not have started it within a second.
        result = play(bundle, tmp_path / "a.zip", f"{source}time.sleep(600)", limit=limit)
        assert result.scores == {}
        assert result.fault == f"Execution Time Limit exceeded. Limit was {limit} seconds"
        if where.exists() and where.read_text():
            break
    assert ends(int(where.read_text()))
    # So does what a program leaves behind that ends by itself.
    assert play(bundle, tmp_path / "a.zip", source).scores == {"score": 0.9}
    assert ends(int(where.read_text()))
    # And what runs at Control-C, which no score is made of.
    interrupt = "import os, signal\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        play(bundle, tmp_path / "a.zip", source + interrupt)
    assert ends(int(where.read_text()))


# ---- The command line --------------------------------------------------------------------------


def test_one_submission_is_scored_on_its_tasks(folder: Path, tmp_path: Path) -> None:
    first = {FIRST: "score(0.61239, standard_error=0.01)"}
    second = {"submission_task_2.csv": "score(0.5)"}
    path, out = toy_bundle.write_zip(tmp_path / "a.zip", first | second), tmp_path / "out"
    said = succeeds([SCRIPT, folder, path, "--output_dir", out])
    assert "Task 1, public: scored\n  Score: 0.6124\n  Standard error: 0.0100\n" in said
    assert "Task 2, public: scored\n  Score: 0.5000\n" in said
    assert "Task 4" not in said
    pages = sorted(page.name for page in out.iterdir())
    assert pages == ["detailed_results_task_1_public.html", "detailed_results_task_2_public.html"]
    flags = ("--phase", "PRIVATE", "--tasks", 2, "--output_dir", out)
    said = succeeds([SCRIPT, folder, path, *flags])
    assert "Task 2, private: scored" in said and "Task 1" not in said
    # Of a bundle alone is said what it holds.
    _, public, _, columns = succeeds([SCRIPT, folder]).splitlines()
    tasks = "Task 1, public; Task 2, public; Task 4, public"
    assert public == f"Public: from 2026-10-01 00:00:00 to 2026-10-31 23:59:59, 600 s; {tasks}"
    assert columns == "Leaderboard: Score, Standard error, Mask 0, Mask 1"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("{b} {z} --submissions {d}", "expected either a submission or"),
        ("{b} {z} --phase final", "--phase final: the bundle has no such phase"),
        ("{b} {z} --phase both", "--watch, --site and --phase both: are for --submissions DIR"),
        ("{b} {z} --tasks 3", "--tasks 3: the phase has no such task, expected Task 1"),
        ("{b} {z} --private {d}/none.zip", "none.zip: file not found"),
        ("{b} --submissions {d}/none", "none: not found, expected a folder"),
        ("{b} --submissions {b}/pages", "pages: holds no submission, expected TEAM.zip"),
    ],
)
def test_faults_are_one_line(folder: Path, tmp_path: Path, flags: str, expected: str) -> None:
    path = toy_bundle.write_zip(tmp_path / "a.zip", {FIRST: "score(1)"})
    given = flags.format(b=folder, z=path, d=tmp_path).split()
    assert expected in fails([SCRIPT, *given, "--output_dir", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


# ---- A class -----------------------------------------------------------------------------------


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "leaderboard.csv").read_text().splitlines()))


def test_a_class_has_its_leaderboard_and_nothing_is_scored_twice(
    folder: Path, tmp_path: Path
) -> None:
    """The best of each team; ties go to the smaller error, if it is known, then to the earlier."""
    path = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", folder))
    handed_in, out, mark = tmp_path / "in", tmp_path / "out", tmp_path / "mark"

    def submit(name: str, minute: int, values: object, member: str = FIRST) -> None:
        # Leaves a mark each time that it is scored.
        source = f"# {name}\nopen({str(mark)!r}, 'a').write('.')\nscore({values})"
        toy_bundle.write_zip(handed_in / name, {member: source}, 1e9 + 60 * minute)

    def score(*flags: object, bundle: Path = path, output: Path = out) -> Done:
        return run([SCRIPT, bundle, "--submissions", handed_in, "--output_dir", output, *flags])

    second, fails = "submission_task_2.csv", "sys.exit('error: row 3 is <i>')"
    toy_bundle.write_zip(handed_in / "bob/first.zip", {FIRST: fails}, 1e9 + 60)
    assert score().returncode == 2 and rows(out) == []
    assert "No submission was scored." in read_page((out / "leaderboard.html").read_text()).text
    # The platform keeps ten decimal places.
    submit("ann.zip", 1, "0.7 + 1e-12")
    submit("ann/model.zip", 1, "0.1 + 0.2, mask_0=1 / 3, mask_1=1 / 8", second)
    submit("bob/second.ZIP", 3, "0.7, standard_error=0.2")
    submit("cid & co.zip", 0, 0.7)
    submit("cid & co/worse.zip", 2, 0.5)
    submit("ida.zip", 4, "0.7, standard_error=0.1")
    score()
    toy_bundle.write_zip(handed_in / "hal.zip", {FIRST: fails, second: fails}, 1e9 + 80)
    (handed_in / "gus.zip").write_bytes(b"PK")
    os.utime(handed_in / "gus.zip", (1e9, 1e9))
    for name in ("notes.txt", "._ann.zip"):
        (handed_in / name).touch()
    done = score()
    assert done.returncode == 2, done.stdout + done.stderr
    # In the order of their times.
    assert done.stderr.splitlines() == [
        "error: gus.zip: is not a zip file, or is cut off",
        "error: bob/first.zip: Task 1, public: row 3 is <i>",
        "error: hal.zip: Task 1, public: row 3 is <i>",
        "error: hal.zip: Task 2, public: row 3 is <i>",
    ]
    assert "note: notes.txt is no zip, and is left out" in done.stdout
    assert "10 results: 6 scored, 4 failed; 6 of them reused" in done.stdout
    assert "   2  bob       0.7000 ± 0.2000\n   3  cid & co  0.7000\n" in done.stdout
    assert mark.read_text() == "......"
    # To the last digit.
    assert rows(out)[4] == {
        "task": "2", "phase": "Public", "rank": "1", "team": "ann", "score": repr(0.1 + 0.2),
        "standard_error": "", "mask_0": repr(1 / 3), "mask_1": "0.125", "submissions": "1",
        "time": "2001-09-09T01:47:40+00:00", "file": "ann/model.zip",
    }  # fmt: skip
    details = [f"details/{path.name}" for path in (out / "details").iterdir()]
    page = read_page((out / "leaderboard.html").read_text(), details)
    assert "Public phase: 9 submissions of 6 teams; written " in page.text
    first, _, masks, failed = page.tables
    assert (first.heading, first.columns[2:4]) == ("Task 1, public", ["Score", "submissions"])
    assert first.rows == [
        ["1", "ida", "0.7000 ± 0.1000", "1", "2001-09-09 01:50", "page"],
        ["2", "bob", "0.7000 ± 0.2000", "1", "2001-09-09 01:49", "page"],
        ["3", "cid & co", "0.7000", "2", "2001-09-09 01:46", "page"],
        ["4", "ann", "0.7000", "1", "2001-09-09 01:47", "page"],
    ]
    assert (masks.heading, masks.columns) == ("Mask 0 to Mask 1", ["team", "Mask 0", "Mask 1"])
    assert masks.rows == [["ann", "0.333", "0.125"]]
    # What failed alike on several tasks is there once.
    assert [row[:2] + row[3:] for row in failed.rows[1:]] == [
        ["bob/first.zip", "Task 1, public", "row 3 is <i>"],
        ["hal.zip", "Task 1, public; Task 2, public", "row 3 is <i>"],
    ]
    # One chart: a single team needs none.
    (chart,) = page.charts
    assert chart.titles == [f"{team}: 0.7000" for team in ("ida", "bob", "cid & co", "ann")]
    # The pages of the best of four teams, and of one in another task.
    links = [link for link in page.references if link.startswith("details/")]
    values = [(out / link).read_text() for link in links]
    assert values == [f"<p>{value}</p>" for value in (0.7, 0.7, 0.7, 0.7 + 1e-12, 0.1 + 0.2)]

    # The next day one more. What failed is tried again: it may have been the machine.
    submit("fay.zip", 9, 0.9)
    assert "11 results: 7 scored, 4 failed; 6 of them reused" in score().stdout
    places = [(row["team"], row["score"]) for row in rows(out)]
    assert places[:2] == [("fay", "0.9"), ("ida", "0.7")] and len(places) == 6
    # Of what is for the other task only, nothing is said.
    done = score("--tasks", 2, output=tmp_path / "task_2")
    assert "bob" not in done.stderr and len(done.stderr.splitlines()) == 2
    assert [row["team"] for row in rows(tmp_path / "task_2")] == ["ann"]
    # Neither another phase nor another bundle takes over what was scored.
    assert "0 of them reused" in score("--tasks", 2, "--phase", "private").stdout
    changed = Path(shutil.copytree(folder, tmp_path / "changed"))
    (changed / "public_data.zip").write_text("another")
    assert "0 of them reused" in score("--tasks", 2, bundle=changed).stdout

    # A run that was stopped left a line cut off; with a line that is none, and a page that is gone.
    score(output=tmp_path / "again")
    records = tmp_path / "again/leaderboard_results.jsonl"
    lines = [line for line in records.read_text().splitlines() if not json.loads(line)["fault"]]
    (records.parent / json.loads(lines[0])["details"]).unlink()
    records.write_text("\n".join(["[]", *lines[:-1], lines[-1][:30]]))
    assert "5 of them reused" in score(output=records.parent).stdout
    # Nor is a recorded score reused that is text.
    as_text = json.loads(lines[1])
    as_text["scores"] = {name: str(value) for name, value in as_text["scores"].items()}
    records.write_text("\n".join([json.dumps(as_text), *lines[2:]]))
    assert f"{len(lines) - 2} of them reused" in score(output=records.parent).stdout


def test_a_whole_event_from_a_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes in is scored in both phases, apart, and published, until Control-C."""
    handed_in, out, site = tmp_path / "in", tmp_path / "out", tmp_path / "site"
    handed_in.mkdir()
    sleep, days = time.sleep, []

    def submit(name: str, minute: int, value: float) -> None:
        toy_bundle.write_zip(handed_in / name, {FIRST: f"score({value})"}, 1e9 + 60 * minute)

    def wait(seconds: float) -> None:
        if seconds < 60:  # Of who waits for a program.
            return sleep(seconds)
        days.append(len(rows(out)) if out.exists() else 0)
        if len(days) == 1:
            submit("=ann.zip", 1, 0.6)
            for number, value in enumerate((0.9, 0.5, 0.4)):
                submit(f"bob/{number}.zip", number, value)
        elif len(days) == 3:
            submit("cid.zip", 1, 0.3)
        elif len(days) == 4:
            raise KeyboardInterrupt
        return None

    monkeypatch.setattr(time, "sleep", wait)
    command = [SCRIPT, folder, "--submissions", handed_in, "--site", site, "--phase"]
    done = run([*command, "both", "--output_dir", out, "--watch", 60])
    assert (done.returncode, done.stderr) == (130, "stopped\n")
    # Nothing on the first day, nothing new on the third.
    assert days == [0, 2, 2, 3] and done.stdout.count("results: ") == 4
    assert "4 results: 4 scored, 0 failed; 3 of them reused" in done.stdout
    # The phase takes two of a team, the last ones; no cell is a formula.
    assert "note: 1 earlier submissions are left out: only the last 2 of each" in done.stdout
    for place, phase in ((out, "Public"), (tmp_path / "out_private", "Private")):
        shown = [(row["team"], row["file"], row["score"], row["phase"]) for row in rows(place)]
        assert shown == [("'=ann", "'=ann.zip", "0.6", phase), ("bob", "bob/1.zip", "0.5", phase),
                         ("cid", "cid.zip", "0.3", phase)]  # fmt: skip
    # The private phase is published when it is asked for by itself.
    published = [path.name for path in site.rglob("*")]
    assert "leaderboard_public.html" in published and not any("private" in p for p in published)
    succeeds([*command, "private", "--output_dir", tmp_path / "final"])
    # Every link of the site leads to one of its files.
    for name in ("index.html", "terms.html", "leaderboard_public.html", "leaderboard_private.html"):
        page = Page((site / name).read_text())
        links = [link for link in page.references if not link.startswith(("#", "data:"))]
        assert links and all((site / link).is_file() for link in links)
    page = Page((site / "index.html").read_text())
    assert "Text with code & strong words. one two" in page.text
    assert (page.tables[0].columns, page.tables[0].rows) == (["file", "holds"], [["a", "b"]])
