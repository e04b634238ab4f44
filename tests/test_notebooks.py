"""Scripts that a notebook calls use their own modules, arguments and names, not the notebook's."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from conftest import copy_kit
from nbclient import NotebookClient
from run_scripts import PATIENCE

# Code of a notebook cell that trains a package of task 4.
TRAIN = "%run task_4/{}/train_model.py --local"


@pytest.fixture
def kit(split_kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a kit whose package task_4/copy predicts the opposite of task_4/numpy."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    copy = Path(shutil.copytree(kit / "task_4/numpy", kit / "task_4/copy"))
    replace(
        copy / "model.py",
        old="2 * n_correct > self.num_answers",
        new="2 * n_correct <= self.num_answers",
    )
    # The kernel of a notebook is a process of its own. It must import this kit's modules.
    monkeypatch.setenv("PYTHONPATH", str(kit))
    yield kit
    # nbclient has imported ipykernel. A script that runs later in this process would find ipykernel
    # loaded and behave as in a notebook.
    sys.modules.pop("ipykernel", None)


def replace(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must hold this text exactly once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def run_cells(kit: Path, *cells: str) -> list[str]:
    """Run the cells of a notebook in the kit's folder; return the output of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook, timeout=PATIENCE, allow_errors=True, resources={"metadata": {"path": str(kit)}}
    )
    client.execute()
    printed_by_cells = []
    for cell in notebook.cells:
        # An output is a printed text, or an error with the message in the field `evalue`.
        texts = [output.get("text", output.get("evalue", "")) for output in cell.outputs]
        printed_by_cells.append("".join(texts))
    return printed_by_cells


def read_weights(kit: Path, package: str) -> Any:
    """Return the weights of a package: the outcome (0 or 1) that it predicts for each question."""
    return np.load(kit / f"task_4/{package}/model_task_4_most_popular.npy")


def read_record(kit: Path, name: str) -> dict[str, Any]:
    """Return the record of a file that a script has made."""
    record: dict[str, Any] = json.loads((kit / name).read_text(encoding="utf-8"))
    return record


def test_a_script_uses_the_modules_beside_it_also_after_other_scripts_and_edits(kit: Path) -> None:
    """In one kernel, the scripts of two packages each use the `model` of their own package.

    The package task_4/copy first predicts the opposite of task_4/numpy. Then a cell edits its
    model.py, so that it predicts the same. The next training must use the edited file.
    """
    # The fixture `kit` has changed model.py, so that it predicts the opposite. This cell undoes the
    # change.
    edit = (
        "from pathlib import Path\n"
        "model = Path('task_4/copy/model.py')\n"
        "text = model.read_text(encoding='utf-8').replace('<= self.num', '> self.num')\n"
        "_ = model.write_text(text, encoding='utf-8')"
    )
    train_numpy = TRAIN.format("numpy")
    train_copy = TRAIN.format("copy")

    printed = run_cells(kit, train_numpy, train_copy)
    assert all("trained on" in text for text in printed), printed
    # A weight is the predicted outcome of a question, 0 or 1. So the opposite of a weight w is
    # 1 − w.
    assert (read_weights(kit, "copy") == 1 - read_weights(kit, "numpy")).all()

    run_cells(kit, train_copy, edit, train_copy)
    assert (read_weights(kit, "copy") == read_weights(kit, "numpy")).all()


def test_a_module_of_another_folder_is_refused(kit: Path) -> None:
    """A trainer must not use the `model` of another package that the notebook has imported.

    The notebook imports the `model` of task_4/numpy. Then it starts the trainer of task_4/copy.
    This trainer imports `model`, but Python has already loaded the `model` of task_4/numpy. The
    notebook starts the trainer in two ways: as a script by %run, and as a module.
    """
    refusal = f"would use {kit}/task_4/numpy/model.py as its module model, expected "
    import_numpy = "import sys; sys.path.insert(0, 'task_4/numpy'); import model, train_model"
    train_as_script = TRAIN.format("copy")
    train_as_module = (
        "import importlib.util as util\n"
        "spec = util.spec_from_file_location('train_copy', 'task_4/copy/train_model.py')\n"
        "train_copy = util.module_from_spec(spec)\n"
        "spec.loader.exec_module(train_copy)\n"
        "train_copy.main()"
    )
    _, script_output, module_output = run_cells(kit, import_numpy, train_as_script, train_as_module)
    assert refusal in script_output
    assert refusal in module_output
    # Neither start of the trainer has written weights.
    assert not (kit / "task_4/copy/model_task_4_most_popular.npy").exists()


def test_a_module_that_a_script_does_not_import_may_have_any_name(kit: Path) -> None:
    foreign = "import sys, types; sys.modules['local_evaluation'] = types.ModuleType('x', None)\n"
    foreign += "sys.modules['local_evaluation'].__file__ = '/elsewhere/local_evaluation.py'"
    _, printed = run_cells(kit, foreign, TRAIN.format("copy"))
    assert "trained on" in printed


def test_scripts_of_two_kits_do_not_mix(kit: Path, tmp_path: Path) -> None:
    other = copy_kit(tmp_path / "other")
    script = "task_1/sample_model_majority.py"
    first, second = run_cells(kit, f"%run {script}", f"%run {other}/{script}")
    assert first.startswith("written: submissions/submission_task_1.csv")
    assert "Python uses another copy of the kit than that in " in second


# Code of notebook cells that call a sample of task 1 without flags, each in another way.
CALLS = [
    "import sys; sys.path.insert(0, 'task_1'); import sample_model_majority as m; m.main()",
    "import runpy; _ = runpy.run_path('task_1/sample_model_majority.py', run_name='__main__')",
    "%run task_1/sample_model_majority.py",
]


def test_a_script_reads_no_arguments_of_the_kernel_and_is_recorded_by_its_own_name(
    kit: Path,
) -> None:
    """A notebook calls a sample model in three ways, by the cells in `CALLS`.

    The arguments in `sys.argv` are for the kernel, the process that runs the notebook, so the
    sample must not read them. The record of the submission names the sample, its flags and its
    inputs. It names nothing of the kernel or of a script that the notebook has run before.
    """
    run_other_script = "%run task_3/sample_model_entropy.py --output_file first.csv"
    print_record = "print(open('submissions/submission_task_1.json', encoding='utf-8').read())"
    cells = []
    for call in CALLS:
        cells += [run_other_script, call, print_record]
    printed = run_cells(kit, *cells)
    # For each call there are three cells: the second one is the call, the third prints the record.
    outputs_of_calls = printed[1::3]
    records = printed[2::3]
    for output, record in zip(outputs_of_calls, records, strict=True):
        assert output.startswith("written: submissions/submission_task_1.csv"), output
        fields = json.loads(record)
        assert fields["script"] == "task_1/sample_model_majority.py"
        assert fields["options"] == {}
        assert set(fields["made_from"]) == {
            "../data/train_data/train_task_1_2.csv",
            "../submission_templates/submission_task_1_2.csv",
        }


def test_flags_of_a_script_that_a_cell_runs_are_recorded(kit: Path) -> None:
    run_cells(kit, "%run task_1/sample_model_majority.py --local --output_file mine.csv")
    record = read_record(kit, "data/test_output/mine.json")
    assert record["script"] == "task_1/sample_model_majority.py"
    assert record["options"] == {"local": True, "output_file": "mine.csv"}


def test_a_cell_that_writes_predictions_itself_is_recorded_as_a_notebook(kit: Path) -> None:
    """A cell may write a submission without a script of the kit.

    The record of the submission then has "notebook" as its script, and no flags and no inputs. It
    must not name the sample model that an earlier cell, `CALLS[0]`, has run.
    """
    # Predict 0, a wrong answer, for each row of the template of task 1.
    write_zeros = (
        "from common import layout, submission\n"
        "from pathlib import Path\n"
        "template = submission.read_template(layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_1_2)\n"
        "path = Path('submissions/mine.csv')\n"
        "submission.write_predictions(template, 1, (template['UserId'] * 0).to_numpy(), path)"
    )
    _, printed = run_cells(kit, CALLS[0], write_zeros)
    # The cell has run without an error.
    assert printed == ""
    record = read_record(kit, "submissions/mine.json")
    assert record["script"] == "notebook"
    assert record["options"] == {}
    # The kit cannot know which answers the notebook has used.
    assert record["made_from"] == {}


def test_a_script_leaves_the_kernel_as_it_was(kit: Path) -> None:
    state = "import signal, sys; print(signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr)"
    before, _, after = run_cells(kit, state, CALLS[2], state)
    assert after == before
