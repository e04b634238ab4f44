"""No score without its origin: honest mistakes are refused, or named beside the score.

Each test follows a user who changes flags, moves files, edits code, or makes the data anew, and
then scores what was made before. For task 4, see tests/task_4/test_refused_and_doubted_weights.py.
"""

import json
import re
import shutil
from pathlib import Path

from tools.results import read_results

import pandas as pd
import pytest
from changed_files import add_line
from conftest import fails, run, succeeds
from sample_blocks import needs_blocks

MAJORITY = "task_1/sample_model_majority.py"
# The command that scores the submission for the local split.
SCORE = ["task_1/local_evaluation.py"]
SUBMISSION = "data/test_output/test_submission_task_1"
SEEN = "was made from train_task_1_2.csv, which holds the answers that it is scored on"
# The evaluation prints this note if no record beside a submission says how it was made.
NOTE_OF_UNKNOWN_SOURCES = (
    "note: may have seen these answers: no record says what it has learned from\n"
)

pytestmark = needs_blocks(MAJORITY)


@pytest.fixture
def kit(split_kit: Path, tmp_path: Path) -> Path:
    """Return a kit with the local splits, which the test may change."""
    return Path(shutil.copytree(split_kit, tmp_path / "kit"))


def read_last_doubts(kit: Path) -> list[str]:
    """Return the reasons to doubt the last score in the record."""
    return read_results(kit / "data/test_output/results.jsonl")[-1].doubts


def add_to_model(kit: Path, name: str, lines: str) -> str:
    """Write an entry: the majority model with further lines of code after its predictions.

    Return the path of the script, relative to the kit's folder.
    """
    text = (kit / MAJORITY).read_text(encoding="utf-8")
    end_of_model = "    # ---- End of the model."
    assert end_of_model in text
    script = f"task_1/{name}.py"
    changed = text.replace(end_of_model, f"{lines}{end_of_model}")
    (kit / script).write_text(changed, encoding="utf-8")
    return script


# ---- Learned from the hidden answers -------------------------------------------------------------


@pytest.mark.parametrize("task", [1, 2])
def test_a_model_that_has_learned_from_all_answers_gets_no_score_on_the_local_split(
    kit: Path, task: int
) -> None:
    train_on_all = ["--local", "--input_dir", kit / "data/train_data"]
    succeeds([f"task_{task}/sample_model_majority.py", *train_on_all], kit=kit)
    assert SEEN in fails([f"task_{task}/local_evaluation.py"], kit=kit)
    assert not (kit / f"data/test_output/scores_task_{task}.txt").exists()
    submission = kit / f"data/test_output/test_submission_task_{task}.csv"
    assert SEEN in fails(["-m", "tools.compare", submission, submission], kit=kit)


def test_an_entry_that_reads_a_copy_of_all_answers_cannot_be_cross_validated(
    kit: Path, tmp_path: Path
) -> None:
    """The copy lies outside of the kit, and its rows are in another order.

    So the kit can recognise the copy neither by its path nor by its fingerprint, only by its rows.
    """
    copy = tmp_path / "copy.csv"
    pd.read_csv(kit / "data/train_data/train_task_1_2.csv").sort_values("UserId").to_csv(copy)
    read_copy = f"    import pandas as pd\n    pd.read_csv({str(copy)!r})\n"
    script = add_to_model(kit, "reads_copy", read_copy)
    error = fails(["-m", "tools.cross_validate", kit / script, "--folds", "2"], kit=kit)
    assert "answers that it is scored on; expected an entry that has not seen them" in error


def test_a_submission_without_a_record_is_scored_and_marked(kit: Path) -> None:
    """The record, a JSON file beside a submission, says from which answers it was learned.

    Without the record, the submission is scored, but the terminal, the page of the score, the
    record of scores and the scoreboard say that it may have seen the answers.
    """
    succeeds([MAJORITY, "--local"], kit=kit)
    with_record = succeeds(SCORE, kit=kit)
    record = kit / f"{SUBMISSION}.json"
    record.unlink()

    without_record = succeeds(SCORE, kit=kit)

    assert NOTE_OF_UNKNOWN_SOURCES not in with_record
    assert NOTE_OF_UNKNOWN_SOURCES in without_record
    doubt = "may have seen these answers"
    assert read_last_doubts(kit) == [doubt]
    assert doubt in (kit / "data/test_output/scores_task_1.html").read_text()
    scoreboard = succeeds(["-m", "tools.scoreboard"], kit=kit)
    assert f"({doubt})" in " ".join(scoreboard.split())


def test_an_entry_that_has_learned_from_a_part_of_all_answers_gets_no_score(kit: Path) -> None:
    """The first lines of the training file hold some of the answers of the local split."""
    lines = (kit / "data/train_data/train_task_1_2.csv").read_text().splitlines(keepends=True)
    (kit / "part.csv").write_text("".join(lines[:3000]))
    succeeds([MAJORITY, "--local", "--input_dir", kit, "--train_data", "part.csv"], kit=kit)

    error = fails(SCORE, kit=kit)

    assert re.search(r"was made from part\.csv, which holds \d+ of the 2,560 answers", error)


def test_one_faulty_line_does_not_hide_answers_that_an_entry_has_seen(
    kit: Path, tmp_path: Path
) -> None:
    lines = (kit / "data/train_data/train_task_1_2.csv").read_text().splitlines(keepends=True)
    copy = tmp_path / "copy.csv"
    copy.write_text("".join([*lines[:100], "faulty\n", *lines[100:]]))
    read_copy = f"    import pandas as pd\n    pd.read_csv({str(copy)!r})\n"
    succeeds([add_to_model(kit, "reads_copy", read_copy), "--local"], kit=kit)
    assert "which holds 2,560 of the 2,560 answers that it is scored on" in fails(SCORE, kit=kit)


def test_an_entry_may_learn_from_other_answers_that_are_not_scored(kit: Path) -> None:
    """The other answers come from tasks 3 and 4, which have other students and questions."""
    others = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    others.assign(UserId=others["UserId"] + 10_000_000).to_csv(kit / "others.csv", index=False)
    succeeds([MAJORITY, "--local", "--input_dir", kit, "--train_data", "others.csv"], kit=kit)
    assert "note: " not in succeeds(SCORE, kit=kit)


def test_answers_that_an_entry_reads_with_pandas_are_noticed(kit: Path) -> None:
    """The entry reads its training answers with the kit, and all answers with pandas."""
    path = kit / "data/train_data/train_task_1_2.csv"
    read_all = f"    import pandas as pd\n    pd.read_csv({str(path)!r})\n"
    script = add_to_model(kit, "peeks", read_all)
    succeeds([script, "--local"], kit=kit)
    assert SEEN in fails(SCORE, kit=kit)


@pytest.mark.parametrize("is_saved_anew", [False, True])
def test_a_copy_of_the_hidden_answers_gives_no_score_to_an_entry_that_has_seen_them(
    kit: Path, tmp_path: Path, is_saved_anew: bool
) -> None:
    """An entry has learned from all answers. A user scores it on a copy of the hidden answers.

    The copy lies in another folder, without the record of the split. The copy is either the same
    file, or has nine tenths of the rows in another order (`is_saved_anew`).
    """
    hidden_answers = kit / "data/test_input/valid_task_1_2.csv"
    copy = tmp_path / "mine" / hidden_answers.name
    copy.parent.mkdir()
    if is_saved_anew:
        pd.read_csv(hidden_answers).sample(frac=0.9, random_state=0).to_csv(copy, index=False)
    else:
        shutil.copy(hidden_answers, copy)
    succeeds([MAJORITY, "--local", "--input_dir", kit / "data/train_data"], kit=kit)
    error = fails([*SCORE, "--input_dir", copy.parent, "--output_dir", tmp_path], kit=kit)
    # The training file holds all answers of the copy: 2,560, or nine tenths of them, 2,304.
    n_answers = "2,304" if is_saved_anew else "2,560"
    assert f"was made from data/train_data/train_task_1_2.csv, which holds {n_answers}" in error


@pytest.mark.parametrize("name_of_file", ["own.csv", "valid_task_1_2.csv"])
def test_an_own_file_of_true_answers_is_compared_with_the_training_answers_beside_it(
    kit: Path, tmp_path: Path, name_of_file: str
) -> None:
    """A user scores on a file of 100 true answers, which are all among the training answers.

    The kit knows that the two parts of its own splits share no answers. It does not know this of a
    user's file, even if the file has the name of a split. So it compares the file with the training
    answers, finds the same answers, and refuses to score.
    """
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(kit / "data/train_data/train_task_1_2.csv", folder)
    valid = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
    true_answers = valid.sample(100, random_state=0)
    true_answers.to_csv(folder / name_of_file, index=False)
    succeeds([MAJORITY, "--local", "--input_dir", folder], kit=kit)
    flags = ["--input_dir", folder, "--ref_data", name_of_file, "--output_dir", tmp_path]
    assert "which holds 100 of the 100 answers" in fails([*SCORE, *flags], kit=kit)


def test_a_ranking_that_has_learned_from_a_copy_of_the_panel_gets_no_score(kit: Path) -> None:
    """A panel is a file of experts' judgements, which score the rankings of task 3.

    The entry task_3/peeks.py opens a copy of the 25 judgements, with the rows in another order.
    """
    panel = pd.read_csv(kit / "data/test_data/quality_response_remapped_public.csv")
    panel.sort_values("left").to_csv(kit / "panel.csv", index=False)
    sample = (kit / "task_3/sample_model_entropy.py").read_text(encoding="utf-8")
    end_of_model = "    # ---- End of the model."
    open_copy = "    open('panel.csv').close()\n"
    peeking = sample.replace(end_of_model, f"{open_copy}{end_of_model}")
    (kit / "task_3/peeks.py").write_text(peeking, encoding="utf-8")
    succeeds(["task_3/peeks.py"], kit=kit, cwd=kit)
    error = fails(["task_3/local_evaluation.py", "--phase", "public"], kit=kit)
    assert "was made from panel.csv, which holds 25 of the 25 answers" in error


@pytest.mark.parametrize("flags", [[], ["--input_dir", "data/test_input"]])
def test_a_submission_for_a_phase_may_learn_from_all_training_answers_or_their_split(
    kit: Path, flags: list[str]
) -> None:
    succeeds([MAJORITY, *flags], kit=kit, cwd=kit)
    assert "note: " not in succeeds([*SCORE, "--phase", "public"], kit=kit)


OWN_WAY = """
from common import layout, submission

import pandas as pd

answers = pd.read_csv(layout.TEST_INPUT_DIR / "train_task_1_2.csv")
template = submission.read_template(layout.TEST_INPUT_DIR / "test_submission_task_1_2.csv")
prediction = [int(answers["IsCorrect"].mean() > 0.5)] * len(template)
path = layout.TEST_OUTPUT_DIR / "test_submission_task_1.csv"
submission.write_predictions(template, 1, prediction, path)
"""


def test_an_entry_that_reads_its_training_answers_in_its_own_way_is_marked(kit: Path) -> None:
    """An entry reads its training answers with pandas, and not with the kit's functions.

    The kit then does not know from which answers the entry has learned.
    """
    (kit / "task_1/own_way.py").write_text(OWN_WAY, encoding="utf-8")
    succeeds(["task_1/own_way.py"], kit=kit)
    assert NOTE_OF_UNKNOWN_SOURCES in succeeds(SCORE, kit=kit)


def test_a_model_of_the_science_exam_is_not_scored_on_questions_that_it_has_seen(
    kit: Path,
) -> None:
    """The questions of the public test file are also among the training questions.

    So a model that has learned from all training questions gets no score on the test file.
    """
    folder = "related_challenges/science_exam"
    succeeds([f"{folder}/generate_sample.py"], kit=kit)
    succeeds([f"{folder}/local_data_split.py"], kit=kit)
    run_model = [f"{folder}/sample_model_ranker.py"]
    evaluate = [f"{folder}/local_evaluation.py"]
    succeeds(run_model, kit=kit)
    assert "was made from train.csv, which holds the answers" in fails(evaluate, kit=kit)

    # With --local, each question is predicted by a model that has not seen it. So the evaluation
    # prints no note with a doubt.
    succeeds([*run_model, "--local"], kit=kit)
    assert "note: " not in succeeds(evaluate, kit=kit)


# ---- Inputs that have changed since --------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "score", "changed"),
    [
        (
            ["task_1/sample_model_item_response.py"],
            ["task_1/local_evaluation.py", "--phase", "public"],
            "data/train_data/train_task_1_2.csv",
        ),
        (
            ["task_3/sample_model_entropy.py"],
            ["task_3/local_evaluation.py", "--phase", "public"],
            "data/train_data/train_task_3_4.csv",
        ),
    ],
)
def test_a_submission_is_not_scored_if_its_training_answers_have_changed(
    kit: Path, make: list[str], score: list[str], changed: str
) -> None:
    succeeds(make, kit=kit)
    succeeds(score, kit=kit)
    add_line(kit / changed)

    error = fails(score, kit=kit)

    assert f"was made from other data than now lie in {changed}" in error
    assert f"`python {make[0]}` makes it again" in error


def test_guesses_of_a_related_challenge_are_not_scored_on_other_queries(kit: Path) -> None:
    folder = "related_challenges/cloze"
    evaluate = [f"{folder}/local_evaluation.py"]
    succeeds([f"{folder}/generate_sample.py"], kit=kit)
    succeeds([f"{folder}/local_data_split.py"], kit=kit)
    succeeds([f"{folder}/sample_model_frequent.py", "--local"], kit=kit)
    succeeds(evaluate, kit=kit)
    # Simulate other queries (sentences with a gap to be guessed), with the same ids as before. So
    # the kit cannot notice the change by the ids, and must compare the contents of the files.
    succeeds([f"{folder}/generate_sample.py", "--seed", "1"], kit=kit)

    error = fails(evaluate, kit=kit)

    assert "was made from other data than now lie in related_challenges/cloze/data/" in error


# ---- Code that has changed -----------------------------------------------------------------------


def test_a_score_of_edited_code_is_marked_until_the_entry_runs_again(kit: Path) -> None:
    """A user makes a submission, edits the code, and scores the submission once more.

    The evaluation then prints a note, the record of scores marks the score as doubtful, and a
    comparison says that the code has changed. A new submission by the edited code has no note.
    """
    # An entry that differs from the majority model only by its name.
    script = add_to_model(kit, "idea", lines="")
    succeeds([script, "--local"], kit=kit)
    assert "note: " not in succeeds(SCORE, kit=kit)
    with (kit / script).open("a", encoding="utf-8") as file:
        file.write("# An edit.\n")

    printed_after_edit = succeeds(SCORE, kit=kit)

    assert f"note: {script} or a file that it imports has changed since" in printed_after_edit
    assert read_last_doubts(kit) == ["made by earlier code"]
    # The arguments are the numbers of two scores in the record of scores: score 1 was made before
    # the edit, and score 2 after it.
    comparison = succeeds(["-m", "tools.compare", "1", "2"], kit=kit)
    assert "task_1/idea.py has changed since" in " ".join(comparison.split())

    succeeds([script, "--local"], kit=kit)
    assert "note: " not in succeeds(SCORE, kit=kit)


@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_a_score_is_marked_if_a_helper_outside_the_kit_has_changed(
    kit: Path, tmp_path: Path, change: str
) -> None:
    """An entry in a folder outside the kit imports a module beside it, helper.py.

    After the entry has made its submission, the helper is edited or deleted. The present code may
    get another score than the submission, so the evaluation prints a note.
    """
    script = add_to_model(kit, "idea", lines="    import helper\n")
    folder_outside = tmp_path / "task_1"
    folder_outside.mkdir()
    entry = Path(shutil.move(kit / script, folder_outside))
    helper = folder_outside / "helper.py"
    helper.touch()
    succeeds([entry, "--local"], kit=kit)
    assert "note: " not in succeeds(SCORE, kit=kit)
    # A changed file may have an older date than the submission, for example if it was restored from
    # a backup. To imitate this, date the submission to the year 2100. The kit must compare
    # contents, not dates.
    record = kit / f"{SUBMISSION}.json"
    fields = json.loads(record.read_text())
    fields["time"] = "2100-01-01T00:00:00+00:00"
    record.write_text(json.dumps(fields))
    if change == "edited":
        helper.write_text("# An edit.\n")
    else:
        helper.unlink()
    assert f"note: {entry} or a file that it imports has changed" in succeeds(SCORE, kit=kit)


def test_a_score_of_code_that_changed_while_it_ran_is_marked(kit: Path) -> None:
    edit = "    from pathlib import Path\n    Path(__file__).open('a').write('# An edit.\\n')\n"
    script = add_to_model(kit, "edited", edit)
    succeeds([script, "--local"], kit=kit)
    printed = succeeds(SCORE, kit=kit)
    assert f"note: {script} or a file that it imports changed while it ran" in printed
    assert read_last_doubts(kit) == ["its code changed while it ran"]


def test_the_first_line_says_what_is_scored_and_who_made_it_when(kit: Path) -> None:
    """A user runs a second model but forgets --local. The evaluation then scores the first model.

    The user can see this in the first line, which names the model.
    """
    succeeds([MAJORITY, "--local"], kit=kit)
    succeeds(["task_1/sample_model_item_response.py"], kit=kit)
    first, *_ = succeeds(SCORE, kit=kit).splitlines()
    assert first.startswith(f"scored: {SUBMISSION}.csv, made by `python {MAJORITY} --local` on 20")
    assert first.endswith(" UTC")


# ---- Parts that do not belong together -----------------------------------------------------------


def test_probabilities_of_another_model_are_refused(kit: Path) -> None:
    succeeds([MAJORITY, "--local", "--probabilities", kit / "majority.parquet"], kit=kit)
    other = ["task_1/sample_model_item_response.py", "--local", "--probabilities"]
    succeeds([*other, kit / "other.parquet"], kit=kit)
    succeeds([*SCORE, "--probabilities", kit / "other.parquet"], kit=kit)
    error = fails([*SCORE, "--probabilities", kit / "majority.parquet"], kit=kit)
    assert f"was made by `python {MAJORITY}" in error
    assert "expected both of the same run" in error


def test_an_upload_that_has_learned_from_the_local_split_alone_is_named(kit: Path) -> None:
    check = ["-m", "tools.check_submission", kit / "submissions/submission_task_1.csv"]
    succeeds([MAJORITY], kit=kit)
    assert "note: " not in succeeds(check, kit=kit)
    succeeds([MAJORITY, "--input_dir", kit / "data/test_input"], kit=kit)
    note = "it has learned from the training part of the local split alone"
    assert note in succeeds(check, kit=kit)


# ---- Interrupted fits ----------------------------------------------------------------------------


def test_a_score_of_an_interrupted_fit_is_marked(kit: Path) -> None:
    stopped = (
        "    from common import progress\n"
        "    with progress.steps(2, 'training') as (steps, show):\n"
        "        raise KeyboardInterrupt\n"
    )
    script = add_to_model(kit, "stopped", stopped)
    assert run([script, "--local"], kit=kit).returncode == 0
    assert "note: the fit was interrupted" in succeeds(SCORE, kit=kit)
    assert read_last_doubts(kit) == ["fit interrupted"]
