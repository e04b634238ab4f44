"""The page about the data: the script on simulated, real, mixed, partial and missing files."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from conftest import Run
from page_reading import read_page as check_page

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "data/explore.py"
SECTIONS = (
    "Answers", "Difficulty", "Options", "Times", "Quizzes and groups", "Confidence", "Subjects",
    "Students", "What is missing",
)  # fmt: skip


def text_of(page: str) -> str:
    """Return what a page says, without its charts."""
    page = re.sub(r"<style.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def without_ids(svg: str) -> str:
    """Return a picture without the ids in it, which nobody sees: they are hashes."""
    return re.sub(r"(id=\"|#)[a-z][0-9a-f]{10}\b", r"\1", svg)


def sections(page: str) -> list[str]:
    return re.findall(r"<h[23][^>]*>(.*?)</h[23]>", page)


def explore(run: Run, kit: Path, folder: Path, output: Path, *more: object) -> list[str]:
    """Run the script on a folder; return the names of what it has written."""
    done = run([SCRIPT, "--data_dir", folder, "--output_dir", output, *more], kit=kit)
    assert done.returncode == 0, done.stderr
    written = re.findall(r"^written: (.*)$", done.stdout, re.MULTILINE)
    assert done.stdout.count("\n") == len(written)
    return [Path(path).name for path in written]


def copy_data(kit: Path, folder: Path) -> Path:
    for name in ("train_data", "metadata"):
        shutil.copytree(kit / "data" / name, folder / name)
    shutil.copy(kit / "data/SIMULATED.json", folder)
    return folder


def make_real(*paths: Path) -> None:
    """Change files as little as possible, so that they are no longer those of the simulation."""
    for path in paths:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.fixture(scope="module")
def simulated_page(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page about tiny simulated data."""
    output = tmp_path_factory.mktemp("explore")
    assert explore(run, simulated_kit, simulated_kit / "data", output) == ["explore.html"]
    return (output / "explore.html").read_text(encoding="utf-8")


def test_a_page_about_simulated_data(simulated_kit: Path, simulated_page: str) -> None:
    text = simulated_page
    page = check_page(text)
    assert "Nothing on this page is about real students" in text_of(text)
    assert sections(text) == ["Tasks 1/2", *SECTIONS, "Tasks 3/4", *SECTIONS]
    # Every chart has a title, and a sentence on how to read it.
    assert len(page.charts) == text.count("<figcaption>") == text.count("<figure><h4>") > 25
    assert all(len(caption) > 40 for caption in re.findall("<figcaption>(.*?)</figc", text))
    labels = re.findall(r'aria-label="([^"]*)"', text)
    assert len(set(labels)) == len(page.charts)
    said = text_of(text)
    for tasks, part in (("1_2", said.split("Tasks 3/4")[0]), ("3_4", said.split("Tasks 3/4")[1])):
        answers = pd.read_csv(simulated_kit / f"data/train_data/train_task_{tasks}.csv")
        metadata = pd.read_csv(simulated_kit / f"data/metadata/answer_metadata_task_{tasks}.csv")
        joined = answers.merge(metadata, on="AnswerId")
        assert f"{len(answers):,} training answers" in part
        assert f"{answers.UserId.nunique():,} students" in part
        assert f"{answers.IsCorrect.mean():.1%} of the answers right" in part
        assert f"{joined.QuizId.nunique():,} quizzes" in part
        n = answers.UserId.nunique() * answers.QuestionId.nunique()
        assert f"{len(answers) / n:.2%} of all pairs answered" in part
        empty = joined.Confidence.isna().sum()
        assert f"Confidence {empty / len(answers):.1%} · {empty:,} of {len(answers):,}" in part
        students = pd.read_csv(simulated_kit / f"data/metadata/student_metadata_task_{tasks}.csv")
        students = students[students.UserId.isin(answers.UserId)]
        women = (students.Gender == 1).sum()
        assert f"female {women:,} students ({women / len(students):.1%})" in part
        year = students.DateOfBirth.dropna().str[:4].astype(int)
        commonest = year[year.between(1998, 2014)].mode()[0]
        assert f"Those of the most common year, {commonest}, turned {2020 - commonest}" in part
        at_100 = joined[joined.Confidence == 100].IsCorrect
        assert f"<title>100% sure ({len(at_100)}): {at_100.mean():.2f}</title>" in text


def test_subjects_are_nested_as_in_the_tree(simulated_kit: Path, simulated_page: str) -> None:
    text = simulated_page
    tree = text[text.index('<div class="rows tree">') :].split("<h3")[0]
    subjects = pd.read_csv(
        simulated_kit / "data/metadata/subject_metadata.csv", encoding="utf-8-sig"
    )
    questions = pd.read_csv(simulated_kit / "data/metadata/question_metadata_task_1_2.csv")
    answered = pd.read_csv(simulated_kit / "data/train_data/train_task_1_2.csv").QuestionId.unique()
    questions = questions[questions.QuestionId.isin(answered)]
    ids = questions.SubjectId.str.findall(r"\d+").explode().astype(int)
    n = ids.value_counts()
    shown = re.findall(r'class="name">(.*?)</span>.*?class="figures">([\d,]+) question', tree)
    assert len(shown) == len(n)
    expected = subjects.set_index("SubjectId").loc[n.index].assign(n=n)
    assert sorted((name, int(count.replace(",", ""))) for name, count in shown) == sorted(
        zip(expected.Name, expected.n, strict=True)
    )
    # Only the roots are open.
    n_roots = (expected.Level == 0).sum()
    assert tree.count("<details open>") == n_roots
    assert tree.count("<details>") > 1


def test_real_and_simulated_never_share_a_page(
    simulated_kit: Path, run: Run, tmp_path: Path
) -> None:
    folder = copy_data(simulated_kit, tmp_path / "mixed")
    make_real(folder / "train_data/train_task_1_2.csv", folder / "metadata/subject_metadata.csv")
    names = explore(run, simulated_kit, folder, tmp_path / "out")
    assert names == ["explore.html", "explore_simulated.html"]
    real, simulated = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in names)
    for text in (real, simulated):
        check_page(text)
    assert "not simulated by the kit" in text_of(real)
    assert "Nothing on this page" not in text_of(real)
    assert [name for name in sections(real) if "/" in name] == ["Tasks 1/2"]
    assert [name for name in sections(simulated) if "/" in name] == ["Tasks 3/4"]
    assert "Tasks 3/4 are not on this page, being simulated: see explore_simulated.html" in real
    assert "Tasks 1/2 are not on this page, being not simulated: see explore.html" in simulated
    # Simulated metadata tell nothing about real answers, nor the other way round.
    left_out = "student_metadata_task_1_2.csv, answer_metadata_task_1_2.csv."
    assert f"not: question_metadata_task_1_2.csv, {left_out}" in real
    assert "as the answers are: subject_metadata.csv." in simulated
    assert sections(real)[1:] == ["Answers", "Difficulty", "Options"]
    assert "Subjects" not in sections(simulated)


def test_what_is_not_there_is_said(simulated_kit: Path, run: Run, tmp_path: Path) -> None:
    folder = copy_data(simulated_kit, tmp_path / "part")
    (folder / "train_data/train_task_1_2.csv").unlink()
    for name in ("answer_metadata_task_3_4.csv", "subject_metadata.csv"):
        (folder / "metadata" / name).unlink()
    explore(run, simulated_kit, folder, tmp_path / "out")
    text = (tmp_path / "out/explore.html").read_text(encoding="utf-8")
    check_page(text)
    said = text_of(text)
    assert "Tasks 1/2 are not on this page: train_data/train_task_1_2.csv is not there." in said
    assert "Not there: answer_metadata_task_3_4.csv, subject_metadata.csv." in said
    expected = ["Tasks 3/4", "Answers", "Difficulty", "Options", "Students", "What is missing"]
    assert sections(text) == expected


def test_two_answers_are_enough(simulated_kit: Path, run: Run, tmp_path: Path) -> None:
    """Without options, ids and metadata, and with too few answers for any share."""
    (tmp_path / "train_data").mkdir()
    train = tmp_path / "train_data/train_task_3_4.csv"
    train.write_text("QuestionId,UserId,IsCorrect\n5,2000000000,1\n7,3,0\n")
    explore(run, simulated_kit, tmp_path, tmp_path)
    text = (tmp_path / "explore.html").read_text(encoding="utf-8")
    check_page(text)
    assert sections(text) == ["Tasks 3/4", "Answers"]


def test_faults(simulated_kit: Path, fails: Callable[..., str], tmp_path: Path) -> None:
    output = ["--output_dir", tmp_path / "out"]
    missing = tmp_path / "nowhere"
    line = fails([SCRIPT, "--data_dir", missing, *output], kit=simulated_kit)
    assert line == f"{missing}: not found, expected a folder laid out like data/"
    line = fails([SCRIPT, "--data_dir", tmp_path, *output], kit=simulated_kit)
    assert line.startswith(f"{tmp_path / 'train_data'}: holds neither train_task_1_2.csv nor ")
    folder = copy_data(simulated_kit, tmp_path / "data")
    (folder / "train_data/train_task_1_2.csv").unlink()
    train = folder / "train_data/train_task_3_4.csv"
    make_real(train)
    more = ["--pictures", tmp_path / "pictures"]
    line = fails([SCRIPT, "--data_dir", folder, *output, *more], kit=simulated_kit)
    assert line.startswith(f"--pictures: {train} is not simulated")
    train.write_text("QuestionId,UserId,IsCorrect\n5,2,1\n7,3,2\n")
    line = fails([SCRIPT, "--data_dir", folder, *output], kit=simulated_kit)
    assert line.startswith(f"{train}: column 'IsCorrect': row 3 is '2'")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "pictures").exists()


def test_the_pictures_are_those_that_the_script_makes(
    simulated_kit: Path, run: Run, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    done = run(["data/generate_sample.py", "--size", "small", "--output_dir", small])
    assert done.returncode == 0, done.stderr
    pictures = tmp_path / "pictures"
    explore(run, simulated_kit, small, tmp_path, "--pictures", pictures)
    committed = ROOT / "data/pictures"
    assert {path.name for path in pictures.iterdir()} == {path.name for path in committed.iterdir()}
    for path in committed.iterdir():
        text = path.read_text(encoding="utf-8")
        made = (pictures / path.name).read_text(encoding="utf-8")
        assert without_ids(made) == without_ids(text)
        assert "Simulated data: " in "".join(ElementTree.fromstring(text).itertext())
        assert "prefers-color-scheme: dark" in text
        # An image has no page to take colours from.
        assert "Canvas" not in text
        assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))


@pytest.mark.parametrize(
    ("folder", "tasks"), [("eedi_tasks_3_4", "3/4"), ("eedi_tasks_1_2_sample", "1/2")]
)
def test_a_page_about_real_answers(
    real_data: Path, folder: str, tasks: str, simulated_kit: Path, run: Run, tmp_path: Path
) -> None:
    explore(run, simulated_kit, real_data / folder, tmp_path)
    text = (tmp_path / "explore.html").read_text(encoding="utf-8")
    check_page(text)
    assert "not simulated by the kit" in text
    assert sections(text) == [f"Tasks {tasks}", *(
        name for name in SECTIONS if name not in ("Times", "Quizzes and groups", "Confidence")
    )]  # fmt: skip
    assert f"Not there: answer_metadata_task_{tasks.replace('/', '_')}.csv." in text_of(text)
