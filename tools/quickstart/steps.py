"""Finds the steps to run, local splits and sample models, by their file names."""

from dataclasses import dataclass
from pathlib import Path

from common import layout
from common.layout import ROOT
from tools import script_flags

OUTPUT_DIR = layout.TEST_OUTPUT_DIR
# A package is a folder with an entry of task 4. The quickstart trains a copy of each package, which
# lies in this folder, on the training students of the local split.
PACKAGES_DIR = OUTPUT_DIR / "packages"
LOCAL_SPLIT = "local split"
TASK_DATA = (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEMPLATE_DIR)

# A Python script, as seen from the kit's folder, and its flags.
Command = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A local split, or a sample model from training to its score."""

    # The name of the task, such as "task 1", or of a related challenge.
    title: str
    # The model's name, or LOCAL_SPLIT.
    name: str
    # The commands of the step, which run one after the other.
    commands: tuple[Command, ...]
    # Where the score files are written; for a local split, where the split is written.
    output_dir: Path
    # The commands read data files in these folders.
    data: tuple[Path, ...] = TASK_DATA
    # Folder of an entry of task 4; None for other models.
    package: Path | None = None


def find_task_steps() -> list[Step]:
    """Return the steps of the tasks whose training file exists; print which tasks are left out."""
    steps: list[Step] = []
    if has_training_file(layout.TRAIN_TASK_1_2, "tasks 1 and 2"):
        # Tasks 1 and 2 share one local split. `split_first` puts the step that makes it before the
        # models.
        steps += split_first("task_1", [*find_task_models(1), *find_task_models(2)])
    if has_training_file(layout.TRAIN_TASK_3_4, "tasks 3 and 4"):
        # Models of task 3 are scored by experts' judgements, so the quickstart makes no split for
        # them.
        steps += find_task_models(3)
        steps += split_first("task_4", [*find_task_models(4), *find_packages()])
    return steps


def has_training_file(name: str, tasks: str) -> bool:
    """Return whether a training file exists; if not, print which tasks are left out."""
    path = layout.TRAIN_DIR / name
    if not path.exists():
        print(f"left out: {tasks}: {show(path)} is missing")
        return False
    return True


def split_first(folder: str, models: list[Step]) -> list[Step]:
    """Return the models, and before them the step that makes the local split of their task.

    If there are no models, there is no split either: the list is empty.
    """
    if not models:
        return []
    command = (f"{folder}/local_data_split.py",)
    title = folder.replace("_", " ")
    return [Step(title, LOCAL_SPLIT, (command,), layout.TEST_INPUT_DIR), *models]


def find_task_models(task: int) -> list[Step]:
    """Return a step for every script of a sample model of a task, except for blends of models."""
    return find_scripts(ROOT / f"task_{task}", f"task {task}", OUTPUT_DIR, TASK_DATA)


def find_packages() -> list[Step]:
    """Return a step for every package of task 4 that has a trainer, train_model.py.

    A step trains a copy of the package and scores it.
    """
    steps = []
    for script in sorted((ROOT / "task_4").glob("*/train_model.py")):
        package = script.parent
        # Train a copy: training with --local in the package itself would overwrite weights that a
        # user has trained there on all students.
        trained_copy = PACKAGES_DIR / package.name
        output_dir = OUTPUT_DIR / package.name
        # The local split holds out some students. `flags.predict` makes the training script leave
        # them out. `flags.score` makes the evaluation examine them.
        flags = script_flags.flags_of(package.parent)
        train = (show(trained_copy / script.name), *flags.predict)
        evaluation = show(package / "local_evaluation.py")
        path_flags = ("--submission", show(trained_copy), "--output_dir", show(output_dir))
        score = (evaluation, *flags.score, *path_flags)
        commands = (train, score)
        steps.append(Step("task 4", package.name, commands, output_dir, package=package))
    return steps


def find_related_steps(folder: Path) -> list[Step]:
    """Return the steps of a related challenge: its local split if it has one, then its models."""
    data_dir = folder / layout.DATA_DIR.name
    train_dir = data_dir / layout.TRAIN_DIR.name
    split_dir = data_dir / layout.TEST_INPUT_DIR.name
    steps = []
    split = folder / "local_data_split.py"
    if split.exists():
        steps.append(Step(folder.name, LOCAL_SPLIT, ((show(split),),), split_dir, (train_dir,)))
    output_dir = data_dir / OUTPUT_DIR.name
    return steps + find_scripts(folder, folder.name, output_dir, (train_dir, split_dir))


def find_scripts(
    folder: Path, title: str, output_parent: Path, data: tuple[Path, ...]
) -> list[Step]:
    """Return a step for every sample model of a folder, except for blends of other models.

    A step predicts with the model and scores the predictions. Each model writes into a folder with
    its name in `output_parent`. All steps get the same `title` and the same `data`, the folders of
    the files that they read.
    """
    steps = []
    # `flags.predict` makes a model predict answers that are known, and `flags.score` makes the
    # evaluation score these predictions.
    flags = script_flags.flags_of(folder)
    for script in sorted(folder.glob("sample_model_*.py")):
        if is_blend(script):
            continue
        name = script.stem.removeprefix("sample_model_")
        output_dir = output_parent / name
        predict = (show(script), *flags.predict, "--output_dir", show(output_dir))
        evaluation = show(folder / "local_evaluation.py")
        path_flags = ("--submission_dir", show(output_dir), "--output_dir", show(output_dir))
        score = (evaluation, *flags.score, *path_flags)
        steps.append(Step(title, name, (predict, score), output_dir, data))
    return steps


def is_blend(script: Path) -> bool:
    """Return whether a sample model blends the other ones.

    The quickstart leaves blends out. A blend fits several models, which takes about five times as
    long as gradient boosting.
    """
    return script.name == "sample_model_blend.py"


def show(path: Path) -> str:
    """Return a path as seen from the kit's folder, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
