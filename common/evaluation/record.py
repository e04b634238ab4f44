"""The record of all scores: one line of JSON for each. `tools.scoreboard` makes a page of it."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from common import fingerprints, layout, provenance, run_log
from common.evaluation import outcomes
from common.evaluation.doubt import Doubt
from common.evaluation.outcomes import Outcomes
from common.metrics import Score
from common.origin import Origin
from common.provenance import Provenance, show_path
from common.tasks import TASK_4, TASKS

# Options that are left out of a result's name, since they do not tell one model from another.
# Results that differ only in these options have the same name. (`provenance.settings` leaves out
# options that name folders and files.)
_NOT_IN_NAME = ("local", "seed", "device", "checkpoint")
# Names of the submission templates of all tasks. Templates hold no answers, so no model learns from
# them.
_TEMPLATES = {name for task in TASKS.values() for name in task.template_names}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A score and where it comes from, for its files and the record."""

    # Number of the task. For a related challenge it is the challenge's name, and `phase` is "".
    task: int | str
    # Title of the page; "" for the title of the task.
    title: str = ""
    metric: str
    # The score's value is from 0 to 1, or from -1 to 1 for a correlation (task 3). In a related
    # challenge it is at least 0.
    score: Score
    # The file or folder that is scored.
    submission: Path
    # The true answers, a file or a folder of files.
    reference: Path
    phase: str = ""
    # Settings as text, such as the folds, the set of labels, or how unclear rules of the challenge
    # were interpreted (task 4). Two scores can be compared only if their settings are equal.
    rules: str = ""
    # Further scores by their names. Tasks 1 and 2: for each true value, the share of its answers
    # that were predicted right. Task 3: the agreement with each expert. Task 4: the accuracy with
    # each mask. In a cross-validation: the score on each fold. In a related challenge: its other
    # measures.
    parts: Mapping[str, float] = field(default_factory=dict)
    # Seconds that the model took to fit and predict; in task 4, to ask and predict. None if the
    # record beside the submission says it.
    seconds: float | None = None
    # Titles and texts that the page shows at its top.
    facts: Sequence[tuple[str, str]] = ()
    # Reasons to doubt the score.
    doubts: Sequence[Doubt] = ()
    # The files that the true answers were made from. They help to decide whether the answers are
    # official or simulated (`origin`), which the file `reference` may not show.
    made_from: Sequence[Path] = ()
    # How the model was trained: in task 4, the record of the entry's weights; in a
    # cross-validation, one record for the fits on all folds. If it is None, the record that lies
    # beside the submission is read.
    training: Provenance | None = None
    # Fingerprint of the code of an entry of task 4, or of a cross-validated model. If it is "", the
    # record of the training gives the fingerprint.
    code: str = ""
    outcomes: Outcomes | None = None
    # Short name of the metric, such as "token F1", if it differs from the task's metric.
    metric_name: str = ""

    @cached_property
    def origin(self) -> Origin:
        """Whether the true answers are official, simulated, or of unknown origin."""
        return provenance.origin_of(self.reference, *self.made_from)


@dataclass(frozen=True)
class Result:
    """A line of the record. A field is empty or None if it is not known."""

    # In UTC: "2020-10-31T23:59:00+00:00".
    time: str
    task: int | str
    phase: str
    rules: str
    # Name of the model; for an entry of task 4, the name of its folder or zip.
    model: str
    score: float
    parts: Mapping[str, float | None]
    seconds: float | None
    # Seed, script and options that made the submission. The seed is None if no --seed was given.
    seed: int | None
    script: str
    options: dict[str, Any]
    # The command that made this score.
    command: str
    submission: str
    # The kit's revision, as `git describe` names it.
    revision: str | None
    # Fingerprint of the true answers. Two scores can be compared only if it is the same.
    data: str
    # Whether the true answers are official, simulated, or of unknown origin.
    origin: Origin
    # The fields below are missing in lines that earlier versions of the kit have written.
    # Fingerprint of the model's code. Only scores of the same code are averaged over seeds.
    code: str = ""
    # Peak memory in bytes until the submission was made.
    memory: int | None = None
    # Name of the file that says which answers were predicted right, see `outcomes.write`.
    outcomes: str = ""
    # Short name of the metric; "" for the task's metric.
    metric_name: str = ""
    # Reasons to doubt the score, each in a few words.
    doubts: list[str] = field(default_factory=list)
    # The files that the submission was made from. The keys are the names of the files, such as
    # "train_data/train_task_1_2.csv"; the values are the first digits of the files' fingerprints.
    # Submission templates are left out, since nothing can be learned from them. None if the files
    # are not known.
    learned_from: dict[str, str] | None = None

    @property
    def name(self) -> str:
        """The model's name and the options that change what it computes."""
        shown = {}
        for name, value in provenance.settings(self.options).items():
            if name not in _NOT_IN_NAME:
                shown[name] = value
        words = [self.model]
        # `flags_of` returns the options as words of a command line: ["--n_dimensions", "4"].
        for word in provenance.flags_of(shown):
            # A blend's options name the files that it blends. Show such a file without its folder
            # and suffix.
            is_file = word.endswith(".parquet")
            words.append(Path(word).stem if is_file else word)
        return " ".join(words)


def append_result(output_dir: Path, evaluation: Evaluation) -> None:
    """Append a score to the record for the folder `output_dir`.

    The outcomes (which answers were predicted right) go into a file of their own near the record.
    """
    path = results_path(output_dir)
    outcomes_name = ""
    if evaluation.outcomes is not None:
        folder = path.with_name(layout.OUTCOMES_NAME)
        outcomes_name = outcomes.write(folder, evaluation.outcomes)
    path.parent.mkdir(parents=True, exist_ok=True)
    run_log.append_line(path, asdict(_make_result(evaluation, outcomes_name)))


def _make_result(evaluation: Evaluation, outcomes_name: str) -> Result:
    """Turn an evaluation into a line of the record of all scores.

    `outcomes_name` is the name of the file with the evaluation's outcomes.
    """
    submission = evaluation.submission
    # How the submission was made; None if there is no record.
    training = evaluation.training or provenance.read(submission)
    # `training` or, if it is None, a record with empty fields in its place.
    training_or_empty = training or Provenance(script="", options={}, seconds=0)

    # In task 4, the record names the script that trained the weights, not the entry that uses them.
    # So there the model gets the name of the entry's folder or zip.
    is_named_after_script = training is not None and evaluation.task != TASK_4.number
    if is_named_after_script:
        model = training_or_empty.model
    elif submission.is_dir():
        # The folder of an entry of task 4.
        model = submission.resolve().name
    else:
        # The zip of an entry of task 4, or a submission without a record.
        model = show_path(submission)

    seconds = evaluation.seconds
    if seconds is None and training is not None:
        seconds = training.seconds
    # How unclear rules were interpreted (task 4), and the folds of a cross-validation; each is ""
    # if there is none.
    rules_and_split = (evaluation.rules, training_or_empty.split)
    return Result(
        time=provenance.now(),
        task=evaluation.task,
        phase=evaluation.phase,
        rules=", ".join(text for text in rules_and_split if text),
        model=model,
        score=evaluation.score.value,
        parts=dict(evaluation.parts),
        seconds=seconds,
        seed=training_or_empty.seed,
        script=training_or_empty.script,
        options=training_or_empty.options,
        command=provenance.this_command(),
        submission=show_path(submission),
        revision=_revision(training),
        data=fingerprint_of(evaluation.reference),
        origin=evaluation.origin,
        code=evaluation.code or training_or_empty.code,
        memory=training_or_empty.memory,
        outcomes=outcomes_name,
        metric_name=evaluation.metric_name,
        doubts=[doubt.mark for doubt in evaluation.doubts],
        learned_from=None if training is None else _short_fingerprints(training),
    )


def _short_fingerprints(training: Provenance) -> dict[str, str]:
    """Return the first 12 digits of the fingerprints of the files that a submission was made from.

    The keys are the files' names with their folders, such as "train_data/train_task_1_2.csv".
    Submission templates are left out.
    """
    short = {}
    for source, fingerprint in training.made_from.items():
        if Path(source).name in _TEMPLATES:
            continue
        # The names of the folder and of the file, such as "train_data/train_task_1_2.csv".
        name = "/".join(Path(source).parts[-2:])
        # In a damaged record, values may be of any type.
        digests = fingerprint if isinstance(fingerprint, Mapping) else {}
        # A small file has the digest "sha256" of its content; a large file has only the digest of
        # samples of its content.
        digest = digests.get("sha256", digests.get("sha256_of_samples", ""))
        short[name] = str(digest)[:12]
    return short


def fingerprint_of(reference: Path) -> str:
    """Return the fingerprint of true answers, a file or a folder of files."""
    return fingerprints.digest(reference)[:12]


def results_path(output_dir: Path) -> Path:
    """Return the path of the record for scores in a folder.

    The kit and each related challenge have a folder data/test_output. All these folders, and the
    folders inside them, share the record in the kit's data/test_output. Every other folder has a
    record of its own.
    """
    folder = output_dir.resolve()
    test_output = layout.TEST_OUTPUT_DIR.relative_to(layout.ROOT)
    roots = [layout.ROOT, *layout.RELATED_DIR.glob("*")]
    if any(folder.is_relative_to(root / test_output) for root in roots):
        return layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME
    return output_dir / layout.RESULTS_NAME


def _revision(training: Provenance | None) -> str | None:
    """Return the kit's revision by `git describe`, "…-dirty" if files have changed.

    Returns None if the kit is no git repository. Also returns None if git does not track the script
    that made the submission, since the revision does not determine the code of such a script. If
    `training` is None, the script is not known, and the kit's revision is returned.
    """
    if not (layout.ROOT / ".git").exists():
        return None
    options: dict[str, Any] = {"cwd": layout.ROOT, "stderr": subprocess.DEVNULL, "timeout": 10}
    try:
        if training:
            # This command fails if git does not track the script.
            require_tracked = ["git", "ls-files", "--error-unmatch", "--", training.script]
            subprocess.check_output(require_tracked, **options)
        describe = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        return str(subprocess.check_output(describe, encoding="utf-8", **options)).strip()
    except (OSError, subprocess.SubprocessError):
        return None
