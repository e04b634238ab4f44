"""Task 4, run as a user runs it: split, train, evaluate, package; what every package promises."""

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import layout, metadata, metrics
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import LocalEntry, Rules, play, read_reference
from common.tasks import TASK_4

import numpy as np
import pandas as pd
import pytest
import toy_bundle
from ability import load_module
from conftest import Write, fails, run, succeeds
from page_reading import Page, read_page
from platforms import with_links
from run_scripts import ROOT
from sample_blocks import needs_blocks
from task_4_models import load_package

Evaluate = Callable[..., tuple[str, float, Page]]
EVALUATE = "task_4/numpy/local_evaluation.py"
TRAIN = "task_4/numpy/train_model.py"
# The weights of each package.
PACKAGES = {
    "numpy": {"model_task_4_most_popular.npy", "model_task_4_num_answers.npy"},
    "item_response": {"model_task_4_item_response.npz"},
    "pytorch": {"model_task_4.pt"},
}
CODE = {"local_evaluation.py", "model.py", "submission_model_task_4.py", "train_model.py"}
RECORDS = {"model_task_4_students.npy", "model_task_4_training.json"}
every_package = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_blocks(f"task_4/{name}/train_model.py")) for name in PACKAGES],
)


def published_score(entry: Any, answers: pd.DataFrame, n_questions: int) -> float:
    """Play as the published evaluators do: zeros where nothing is known, targets may be asked."""
    student, question = answers.UserId.rank(method="dense").astype(int) - 1, answers.QuestionId
    rows = np.arange(student.max() + 1)
    data, binary_data, targets, can_query = np.zeros((4, len(rows), n_questions), int)
    data[student, question], binary_data[student, question] = answers.AnswerValue, answers.IsCorrect
    targets[student, question], can_query[student, question] = answers.IsTarget, 1
    masked_data, masked_binary_data = np.zeros_like(data), np.zeros_like(data)
    for _ in range(10):
        asked = rows, entry.select_feature(masked_data, masked_binary_data, can_query)
        assert (can_query[asked] == 1).all()
        can_query[asked] = 0
        masked_data[asked], masked_binary_data[asked] = data[asked], binary_data[asked]
        entry.update_model(masked_data, masked_binary_data, can_query)
    prediction = entry.predict(masked_data, masked_binary_data)
    return float(np.mean(prediction[targets == 1] == binary_data[targets == 1]))


def most_popular_score(train: pd.DataFrame, valid: pd.DataFrame, mask: str = "IsTarget") -> float:
    """The baseline's score in plain pandas; a tie counts as wrong, as in the official arrays."""
    mostly_right = train.groupby("QuestionId").IsCorrect.mean() > 0.5
    targets = valid[valid[mask] == 1]
    prediction = targets.QuestionId.map(mostly_right).fillna(train.IsCorrect.mean() > 0.5)
    return float((prediction.astype(int) == targets.IsCorrect).mean())


def read_split(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, valid = (pd.read_csv(folder / f"{name}_task_4.csv") for name in ("train", "valid"))
    return train, valid


def read_score(folder: Path, name: str = "task_4") -> float:
    return float((folder / f"scores_{name}.txt").read_text().removeprefix("score:"))


@pytest.fixture(scope="module")
def kit(scored_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with the baseline trained on its local split; `scores` trains more packages in it."""
    return Path(shutil.copytree(scored_kit, tmp_path_factory.mktemp("task_4") / "kit"))


@pytest.fixture
def package(kit: Path, tmp_path: Path) -> Path:
    """A copy of the trained baseline, which a test may change."""
    return Path(shutil.copytree(kit / "task_4/numpy", tmp_path / "package"))


@pytest.fixture
def evaluate(kit: Path, tmp_path: Path) -> Evaluate:
    """Score the baseline, or another submission; return what is printed, the score, the page."""

    def run(*flags: object, script: object = EVALUATE, name: str = "task_4") -> Any:
        printed = succeeds([script, *flags, "--output_dir", tmp_path], kit=kit)
        page = read_page((tmp_path / f"scores_{name}.html").read_text())
        return printed, read_score(tmp_path, name), page

    return run


def test_local_evaluation(kit: Path, evaluate: Evaluate, tmp_path: Path) -> None:
    printed, score, page = evaluate()
    train, valid = read_split(kit / "data/test_input")
    expected = most_popular_score(train, valid)
    assert score == pytest.approx(expected)
    assert printed.startswith(f"score {expected:.4f} (one mask, targets may not be asked, ")
    assert not (tmp_path / "entry_output_task_4.txt").exists()
    assert "From simulated answers" in page.text
    facts = dict(page.tables[0].rows)
    assert facts["Phase"] == "local split"
    assert facts["Weights trained by"] == f"python {TRAIN} --local"
    assert facts["Students"] == f"{valid.UserId.nunique()}"
    assert facts["Targets scored"] == f"{valid.IsTarget.sum()}"
    assert facts["Rules"] == "targets may not be asked, unobserved = -1"
    assert "open" in facts["Isolation"] or "enforced" in facts["Isolation"]
    confusion = page.table("Confusion matrix").rows[1:]
    assert [row[0] for row in confusion] == ["wrong", "right"]
    counts = np.array([[int(cell.partition("%")[2]) for cell in row[1:]] for row in confusion])
    n_right = valid[valid.IsTarget == 1].IsCorrect.sum()
    assert counts.sum(axis=1).tolist() == [valid.IsTarget.sum() - n_right, n_right]
    assert np.trace(counts) / counts.sum() == pytest.approx(expected)

    # The most answered questions in order: in the file, on the page, printed of some students.
    askable = valid[valid.IsTarget == 0]
    askable = askable.assign(n=askable.QuestionId.map(train.QuestionId.value_counts()).fillna(0))
    askable = askable.sort_values(["UserId", "n", "QuestionId"], ascending=[True, False, True])
    asked = askable.groupby("UserId").head(10).reset_index(drop=True)
    asked["Mask"], asked["Round"] = "IsTarget", asked.groupby("UserId").cumcount() + 1
    columns = ["Mask", "UserId", "Round", "QuestionId", "IsCorrect"]
    written = pd.read_csv(tmp_path / "sequence_task_4.csv")
    pd.testing.assert_frame_equal(written, asked[columns], check_dtype=False)
    subjects = np.array(metadata.name_subjects(kit / "data/metadata", np.arange(80)))
    asked["subject"] = subjects[asked.QuestionId]
    asked["outcome"] = np.array(["wrong", "right"])[asked.IsCorrect]
    shown = asked.astype(str).set_index("UserId")[["Round", "QuestionId", "subject", "outcome"]]
    tables = {table.caption: table.rows for table in page.tables if "UserId" in table.caption}
    assert len(tables) == 3
    for caption, rows in tables.items():
        assert rows == shown.loc[caption.removeprefix("UserId ")].to_numpy().tolist()
    said = (shown.QuestionId + " " + shown.outcome).groupby(asked.UserId.to_numpy()).agg(", ".join)
    lines = [f"UserId {student}, IsTarget: {words}" for student, words in said.items()]
    rest = f"and so on, of all {len(lines)} students: {tmp_path}/sequence_task_4.csv"
    assert printed.splitlines()[-5:-1] == [*lines[:3], rest]
    for n_shown in (0, 1000):
        printed, _, page = evaluate("--skip_curve", "--show_sequences", n_shown)
        assert printed.splitlines()[1:-1] == lines[:n_shown]
        assert "No curve: not asked for." in page.text
    # A run that fails leaves nothing of the last one behind.
    fails([EVALUATE, "--submission", tmp_path / "none", "--output_dir", tmp_path], kit=kit)
    assert not [*tmp_path.glob("sequence_*"), *tmp_path.glob("scores_*")]


BELIEVES = """
    def predict_probabilities(self, masked_data, masked_binary_data):
        return 0.25 + 0.5 * self.predict(masked_data, masked_binary_data)
"""


def test_probabilities_are_written_and_scored(
    kit: Path, evaluate: Evaluate, package: Path, tmp_path: Path
) -> None:
    path = tmp_path / "p.parquet"
    flags = ["--submission", package, "--skip_curve", "--probabilities", path]
    entry = package / "submission_model_task_4.py"
    entry.write_text(entry.read_text() + BELIEVES)
    printed, score, page = evaluate(*flags)
    targets = pd.read_csv(kit / "data/test_input/valid_task_4.csv").query("IsTarget == 1")
    joined = targets.merge(pd.read_parquet(path), "outer", validate="one_to_one")
    assert len(joined) == len(targets)
    p = joined.ProbabilityCorrect
    assert (((p > 0.5) == joined.IsCorrect).mean()) == pytest.approx(score)
    log_loss = f"{-np.log(np.where(joined.IsCorrect == 1, p, 1 - p)).mean():.4f}"
    assert f"log loss {log_loss}, AUC" in printed
    assert page.headings[-1] == "Probabilities"
    assert log_loss in page.text


def test_what_an_entry_prints_changes_and_relies_on_is_told(
    kit: Path, evaluate: Evaluate, write: Write, tmp_path: Path
) -> None:
    # It prints past Python, as libraries do.
    select = "self.asked = __import__('os').system('echo choosing')"
    source = toy_bundle.entry(select, "can_query[:] = seen[:] = 7")[ENTRY_FILE]
    source = source.replace("return right", "return self.asked + right")
    printed, _, page = evaluate("--submission", write(f"entry/{ENTRY_FILE}", source).parent)
    note = "update_model changes can_query, masked_data: it got a copy, so that has no effect"
    why = "replaying the games without select_questions, after round 0, predict: raised Attr"
    assert f"note: {note}\n" in printed and f"no curve: {why}" in printed
    assert note in page.text and f"No curve: {why}" in page.text
    assert dict(page.tables[0].rows)["Weights trained by"] == "not recorded"
    output = tmp_path / "entry_output_task_4.txt"
    assert output.read_text() == "choosing\n" * 10 and str(output) in printed


def test_phases_average_their_ten_masks(
    kit: Path, evaluate: Evaluate, package: Path, tmp_path: Path
) -> None:
    succeeds([package / "train_model.py"], kit=kit)
    flags = ["--phase", "public", "--unobserved", "0", "--memory_limit", "6"]
    script = package / "local_evaluation.py"
    printed, score, page = evaluate(*flags, script=script, name="task_4_public")
    train = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    valid = pd.read_csv(kit / "data/test_data/test_public_task_4_more_splits.csv")
    masks = [f"IsTarget_{k}" for k in range(10)]
    scores = [most_popular_score(train, valid, mask) for mask in masks]
    assert score == pytest.approx(np.mean(scores))
    deviation = f"{np.std(scores, ddof=1):.4f}"
    assert f"score {np.mean(scores):.4f} ± {deviation} (mean of 10 masks, " in printed
    facts = dict(page.tables[0].rows)
    assert facts["Phase"] == "public"
    assert facts["Rules"] == "targets may not be asked, unobserved = 0"
    assert facts["Limits"].startswith("600 s for one mask, 6 GiB of memory")
    assert facts["Deviation over masks"] == deviation
    # Every mask's accuracy, and the mean over them after each question.
    titles = page.chart("Accuracy with each mask").titles
    assert titles == [f"{m}: {one:.4f}" for m, one in zip(masks, scores, strict=True)]
    # This entry learns nothing from the answers.
    curve = page.table("Accuracy after each question")
    assert curve.columns == ["Questions", "entry's choice", "random choice"]
    assert curve.rows == [[f"{n}", *[f"{np.mean(scores):.4f}"] * 2] for n in range(11)]
    sequences = pd.read_csv(tmp_path / "sequence_task_4_public.csv")
    for mask in masks:
        asked = sequences[sequences.Mask == mask].merge(valid, validate="one_to_one")
        assert (asked[mask] == 0).all()
        assert len(asked) == 10 * valid.UserId.nunique()
    # Shown are the games of the first mask alone.
    assert {len(table.rows) for table in page.tables if "UserId" in table.caption} == {10}


def test_an_entry_for_the_published_evaluator(
    kit: Path, evaluate: Evaluate, write: Write, tmp_path: Path
) -> None:
    """Its first method has another name, and a zero means that an answer is not revealed."""
    source = toy_bundle.entry(update="assert seen.min() >= 0")[ENTRY_FILE]
    source = source.replace("select_questions", "select_feature")
    entry = write(f"entry/{ENTRY_FILE}", source).parent
    printed, score, page = evaluate("--submission", entry, "--unobserved", "0")
    _, own, random = page.table("Accuracy after each question").rows[-1]
    assert f"with questions chosen at random {random}\n" in printed
    assert f"{score:.4f}" == own != random
    pack = ["task_4/package.py", entry, "--output_dir", tmp_path]
    assert "round 1, update_model: raised AssertionError" in fails(pack, kit=kit)
    assert "submission_task_4.zip" in succeeds([*pack, "--unobserved", "0"], kit=kit)


@with_links
def test_all_beside_the_entry_is_played_checked_and_packed(
    kit: Path, package: Path, tmp_path: Path
) -> None:
    """All tools say the same of saved models that are not named by the rule."""
    taken = ["notes/table.csv", "weights/mine.PT", "model_task_4_b/0.pt", "notes/common.py"]
    left = [".hidden", ".git/a", "notes/__pycache__/a.pyc", "__MACOSX/a", "a.npy.partial"]
    for name in taken + left:
        (package / name).parent.mkdir(exist_ok=True, parents=True)
        (package / name).touch()
    (tmp_path / "link").symlink_to(package)
    entry = package / "submission_model_task_4.py"
    entry.write_text(f"open('notes/table.csv').close()\n{entry.read_text()}")
    local = (
        f"warning: {package}: its model was trained with --local and never saw the answers of the "
        f"validation students; `python {package}/train_model.py` learns from all\n"
    )
    named = "warning: {}: weights/mine.PT seems to be a saved model, expected a name that begins "
    named += "with model_task_4_, as the challenge's guide asks\n"
    archive = tmp_path / "submission_task_4.zip"
    by_hand = Path(shutil.make_archive(f"{tmp_path}/by_hand", "zip", package))
    evaluate = ["task_4/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path]
    for command, submission, warning in (
        (["task_4/package.py", "--output_dir", tmp_path], package, named + local),
        *((evaluate, path, named) for path in (package, archive, by_hand)),
        *((["-m", "tools.check_submission"], path, named) for path in (tmp_path / "link", archive)),
    ):
        done = run([*command, submission], kit=kit)
        assert (done.returncode, done.stderr) == (0, warning.format(submission))
    found = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    assert set(zipfile.ZipFile(archive).namelist()) == found - {*left, "common.py"}
    assert "train_model.py" in found
    lines = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert len({(line["code"], line["score"]) for line in lines}) == 1


def test_a_model_of_all_students_is_packed_without_a_warning_and_not_scored_on_them(
    kit: Path, evaluate: Evaluate, package: Path, tmp_path: Path
) -> None:
    """Nor is an entry that is given their answers in its training file."""
    succeeds([package / "train_model.py", "--input_dir", kit / "data/train_data"], kit=kit)
    weights = {path: path.read_bytes() for path in package.glob("model_task_4*")}
    succeeds(["task_4/package.py", package, "--output_dir", tmp_path], kit=kit)
    other = ["task_4/local_evaluation.py", package, "--output_dir", tmp_path]
    message = fails(other, kit=kit)
    assert re.search(r"trained on UserId \d+ of .*valid_task_4.csv.*`train_model.py --l", message)
    shutil.copy(kit / "data/test_input/valid_task_4.csv", tmp_path)
    shutil.copy(kit / "data/train_data/train_task_3_4.csv", tmp_path / "train_task_4.csv")
    message = fails([*other, "--input_dir", tmp_path], kit=kit)
    assert re.search(r"train_task_4.csv: holds UserId \d+ of .*valid_task_4.csv", message)

    # The package's own script scores a copy that has learned from the split.
    printed, score, page = evaluate("--skip_curve", script=package / "local_evaluation.py")
    trained_by = f"python {package}/train_model.py --local"
    told = f"its weights know the local split: `{trained_by}` trains a copy\nscore {score:.4f} ("
    assert printed.startswith(told)
    assert score == pytest.approx(most_popular_score(*read_split(kit / "data/test_input")))
    assert dict(page.tables[0].rows)["Weights trained by"] == trained_by
    assert {path: path.read_bytes() for path in package.glob("model_task_4*")} == weights


def test_faults_are_one_line(split_kit: Path, kit: Path, package: Path, tmp_path: Path) -> None:
    # As in a fresh clone.
    message = fails([EVALUATE], kit=split_kit)
    assert f"{split_kit}/task_4/numpy: holds no weights (model_task_4…)" in message
    assert f"`python {TRAIN}` writes (with --local for the local split)" in message
    command = [EVALUATE, "--submission", package, "--output_dir", tmp_path / "output"]
    message = fails([*command, "--ref_data", "none.csv"], kit=kit)
    assert re.search("none.csv: file not found; the folder holds .*, valid_task_", message)
    (package / "model_task_4_num_answers.npy").unlink()
    assert "starting Submission: raised FileNotFoundError" in fails(command, kit=kit)
    # The zip is not written unless it runs.
    pack = ["task_4/package.py", package, "--output_dir", tmp_path / "output"]
    assert "dry run, starting Submission: raised FileNotFoundError" in fails(pack, kit=kit)
    assert [path.name for path in (tmp_path / "output").iterdir()] == ["entry_output_task_4.txt"]


@pytest.fixture(scope="module")
def scores(kit: Path) -> dict[str, float]:
    """The score of every package, trained on the local split."""
    found = {}
    for name in PACKAGES:
        printed = succeeds([f"task_4/{name}/train_model.py", "--local"], kit=kit)
        assert re.fullmatch(r"trained on \d,\d{3} answers, 80 questions\n", printed)
        evaluate = [f"task_4/{name}/local_evaluation.py", "--skip_curve"]
        printed = succeeds([*evaluate, "--output_dir", kit / name], kit=kit)
        found[name] = read_score(kit / name)
        assert f"score {found[name]:.4f} (one mask, targets may not be asked, " in printed
    return found


def play_phases(kit: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Play five masks of both phases; return whether each target is predicted right, and whose."""
    _, submission = load_package(name, "submission_model_task_4", kit=kit)
    hits, students = [], []
    for phase in layout.PHASES:
        path = kit / "data/test_data" / TASK_4.answers_name(phase)
        reference = read_reference(path, n_questions=80)
        for mask in sorted(reference.targets)[:5]:
            game = play(LocalEntry(submission.Submission()), reference, mask)
            row, _ = np.nonzero(reference.targets[mask])
            hits.append(game.prediction == game.truth)
            students.append(reference.student[row])
    return np.concatenate(hits), np.concatenate(students)


@needs_blocks(*(f"task_4/{name}/train_model.py" for name in PACKAGES))
@pytest.mark.usefixtures("scores")
def test_they_beat_the_most_popular_answer(kit: Path) -> None:
    """On the 50 students of both phases, whom no package knows; the 40 of the split are too few."""
    popular, students = play_phases(kit, "numpy")
    for name in ("item_response", "pytorch"):
        hits, _ = play_phases(kit, name)
        # Both predict the same answers, and those of one student go together. Over 50 students the
        # standard error of the gain is 0.017; the gain is 0.08, so that rounding, which turns few
        # predictions, cannot bring it below three standard errors.
        gain = hits.astype(float) - popular
        assert gain.mean() > 3 * metrics.clustered_standard_error(gain, students), name


@pytest.mark.usefixtures("scores")
@every_package
def test_it_plays_in_the_published_loop(kit: Path, tmp_path: Path, name: str) -> None:
    pack = ["task_4/package.py", kit / "task_4" / name, "--output_dir", tmp_path]
    assert run(pack, kit=kit).returncode == 0
    path = tmp_path / "submission_task_4.zip"
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == CODE | RECORDS | PACKAGES[name]
    evaluate = ["task_4/local_evaluation.py", path, "--skip_curve", "--output_dir", tmp_path]
    printed = succeeds([*evaluate, "--unobserved", "0", "--targets_queryable"], kit=kit)
    assert "(one mask, targets may be asked, unobserved = 0)" in printed
    _, submission = load_package(name, "submission_model_task_4", kit=kit)
    _, valid = read_split(kit / "data/test_input")
    assert published_score(submission.Submission(), valid, 80) == read_score(tmp_path)


def test_the_template_has_both_names() -> None:
    entry = load_module(ROOT / "submission_templates/submission_model_task_4.py", "template")
    assert entry.Submission.select_feature is entry.Submission.select_questions


@every_package
def test_training(kit: Path, tmp_path: Path, name: str) -> None:
    """QuestionId, UserId, IsCorrect are enough; a second file must hold other students."""
    columns = ["QuestionId", "UserId", "IsCorrect"]
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv", usecols=columns)
    parts = np.array_split(answers.UserId.unique()[:60], 2)
    first, second = (answers[answers.UserId.isin(part)] for part in parts)
    first.to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    package = Path(shutil.copytree(kit / "task_4" / name, tmp_path / "package"))
    script = [package / "train_model.py", "--input_dir", tmp_path, "--train_data", "first.csv"]

    def train(*flags: object) -> tuple[str, list[bytes]]:
        printed = succeeds([*script, *flags], kit=kit)
        return printed, [(package / weights).read_bytes() for weights in sorted(PACKAGES[name])]

    _, weights = train()
    if name == "pytorch":
        assert train("--seed", 1)[1] != weights
    printed, of_both = train("--more_train_data", "second.csv")
    n_questions = pd.concat([first, second]).QuestionId.max() + 1
    assert f"trained on {len(first) + len(second):,} answers, {n_questions} questions" in printed
    assert "replaced weights that were trained on other students (30)" in printed
    assert set(np.load(package / "model_task_4_students.npy")) == {*parts[0], *parts[1]}
    assert of_both != weights
    made_from = json.loads((package / "model_task_4_training.json").read_text())["made_from"]
    assert {"../first.csv", "../second.csv"} <= {*made_from}
    # Bit by bit.
    assert train()[1] == weights

    pd.concat([second, first.iloc[[0]]]).to_csv(tmp_path / "second.csv", index=False)
    message = fails([*script, "--more_train_data", "second.csv"], kit=kit)
    known = f"UserId {first.UserId.iloc[0]} appears in another training file"
    assert re.search(f"second.csv: .*{known}", message)


@needs_blocks("task_4/item_response/train_model.py", "task_4/pytorch/train_model.py")
@pytest.mark.usefixtures("scores")
@pytest.mark.parametrize("targets_queryable", [False, True])
@pytest.mark.parametrize("name", ["item_response", "pytorch"])
def test_both_readings_of_unobserved_are_learned_alike(
    kit: Path, name: str, targets_queryable: bool
) -> None:
    """Without options too, where 0 means a wrong answer as well as one not revealed."""
    model, submission = load_package(name, "submission_model_task_4")
    weights = model.Model.load(kit / "task_4" / name)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", 80)
    games = []
    for option in (reference.option, np.full_like(reference.option, -1)):
        for unobserved in (-1, 0):
            rules = Rules(targets_queryable=targets_queryable, unobserved=unobserved)
            entry = LocalEntry(submission.Submission(weights))
            games.append(play(entry, replace(reference, option=option), "IsTarget", rules))
    for game in games[1:]:
        assert np.array_equal(game.chosen, games[0].chosen)
        assert np.array_equal(game.prediction, games[0].prediction)
    # A target that was asked is predicted as it was answered.
    row, target = np.nonzero(reference.targets["IsTarget"])
    asked = (games[0].chosen[row] == target[:, None]).any(axis=1)
    assert asked.any() == targets_queryable
    assert np.array_equal(games[0].prediction[asked], games[0].truth[asked])
