"""Play the game of task 4 with an entry, a fresh process for each mask, and score it.

`evaluate` is everything that an entry's `local_evaluation.py` does.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from common import (
    charts,
    cli,
    layout,
    metadata,
    metrics,
    probabilities,
    provenance,
    reading,
    schema,
    writing,
)
from common.adaptive import entry_files, game
from common.adaptive.entry_process import EntryProcess, Limits
from common.adaptive.game import N_ROUNDS, EntryError, Game, Reference, Rules
from common.adaptive.training import count_questions, for_local_split
from common.adaptive.weights import TRAINING, describe_origin
from common.answers import read_answers
from common.arrays import FloatArray
from common.errors import InputError
from common.evaluation import outcomes, score_files
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.provenance import Provenance
from common.tasks import LOCAL, TASK_4

import numpy as np
import pandas as pd
from tqdm import tqdm

N_DRY_RUN_STUDENTS = 30
# What an entry is given of the metadata.
_METADATA = (*TASK_4.data.metadata, layout.SUBJECT_METADATA)
# Entries that take 0 for unobserved use what they find as an index or a count.
_NEEDS_0 = re.compile(r"raised IndexError|raised .*\b(out of (bounds|range)|negative)\b")
# Of how many students the questions chosen are printed, and shown on the page.
_N_SHOWN = 3
_OUTCOMES = np.array(TASK_4.value_names)


# ---- What is played, and how ---------------------------------------------------------------------


class Setting(NamedTuple):
    """What an entry, a folder or zip, is scored on and how; it may be given no training file."""

    submission: Path
    reference: Path
    train: Path | None
    metadata_dir: Path
    rules: Rules = Rules()
    limits: Limits = Limits()


def add_data_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags that name the students examined."""
    phases = (LOCAL, *layout.PHASES)
    told = "public, private: the released students in data/test_data (default local)"
    p.add_argument("--phase", choices=phases, default=LOCAL, help=told)
    cli.add_optional_folder(p, "--input_dir", "data/test_input")
    students = f"students and masks (default {TASK_4.local_answers})"
    p.add_argument("--ref_data", metavar="FILE", help=students)


def examined(options: argparse.Namespace) -> tuple[Path, Path | None, Path]:
    """Return the students' file, the training file for entries, if there, and metadata's folder."""
    reference = TASK_4.answers_path(options.phase)
    input_dir = options.input_dir or reference.parent
    train = input_dir.parent / layout.TRAIN_DIR.name / TASK_4.data.train
    if options.phase == LOCAL:
        # Never the full training file: it holds the hidden answers of the local split.
        train = input_dir / TASK_4.local_train
    reference = input_dir / (options.ref_data or reference.name)
    given = train if reading.is_there(train) else None
    return reference, given, input_dir.parent / layout.METADATA_DIR.name


def add_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags of the rules and of the limits."""
    queryable = "targets may be asked, as in the published scorer (the guide forbids it)"
    p.add_argument("--targets_queryable", action="store_true", help=queryable)
    told = "value for an answer not revealed: -1 as documented (default), "
    told += "0 as in the published evaluator"
    p.add_argument("--unobserved", type=int, choices=(0, -1), default=-1, help=told)
    seconds, gib = Limits().seconds, Limits().memory / 2**30
    time = f"seconds for one mask (default {seconds:g})"
    p.add_argument("--time_limit", type=_positive, default=seconds, help=time)
    memory = f"GiB of address space (default {gib:g}; only Linux limits it)"
    p.add_argument("--memory_limit", type=_positive, default=gib, help=memory)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def rules_and_limits(options: argparse.Namespace) -> tuple[Rules, Limits]:
    """Return the rules and the limits that the flags name."""
    limits = Limits(options.time_limit, int(options.memory_limit * 2**30))
    return Rules(options.targets_queryable, options.unobserved), limits


def read_students(setting: Setting) -> Reference:
    """Read the students to be examined; none may be in the training file, or known to the model."""
    provenance.require_current([setting.reference, *([setting.train] if setting.train else [])])
    n_questions = count_questions(setting.train, setting.metadata_dir)
    reference = game.read_reference(setting.reference, n_questions)
    if setting.train is not None:
        given = reading.read_table(setting.train, [schema.USER_ID])["UserId"].to_numpy()
        reference.require_others(given, f"{setting.train}: holds", "are both of one split?")
    if (trained := entry_files.read_trained_students(setting.submission)) is not None:
        holder = f"{setting.submission}: its model is trained on"
        hint = "`train_model.py --local` trains for the local split"
        reference.require_others(trained, holder, hint)
    return reference


def _entry_of(setting: Setting) -> EntryProcess:
    """Return an entry whose folder will hold what the challenge gives to every entry."""
    files = {name: setting.metadata_dir / name for name in _METADATA}
    files = {name: path for name, path in files.items() if path.is_file()}
    if setting.train is not None:
        # Whatever it is called here: that of the local split, say.
        files[TASK_4.data.train] = setting.train
    return EntryProcess(setting.submission, files, setting.limits, setting.reference)


def play_all(
    setting: Setting,
    reference: Reference,
    output_path: Path | None = None,
    with_probability: bool = False,
) -> tuple[dict[str, Game], EntryProcess]:
    """Play with every mask; a fault is an `InputError`, what it printed goes to `output_path`."""
    games, entry = dict[str, Game](), _entry_of(setting)
    n_rounds = N_ROUNDS * len(reference.targets)
    with tqdm(total=n_rounds, desc="Rounds", unit="round", leave=None, disable=None) as progress:
        how = setting.rules, progress.update, with_probability
        for mask in reference.targets:
            try:
                with entry:
                    games[mask] = game.play(entry, reference, mask, *how)
            except EntryError as fault:
                message = f"{setting.submission}: {mask}, {fault}"
                if setting.rules.unobserved == -1 and _NEEDS_0.search(str(fault)):
                    message += "; an entry written for 0 as unobserved needs --unobserved 0"
                if output_path is not None and entry.output:
                    writing.write_files({output_path: entry.output})
                    message += f"; what it printed is in {cli.show(output_path)}"
                raise InputError(message) from None
    return games, entry


def dry_run(setting: Setting) -> None:
    """Play the ten rounds with some students of the reference, a training file, without a score."""
    train = setting.reference
    answers = read_answers(train)
    n_answers = answers["UserId"].value_counts(sort=False).sort_index()
    # A fifth of the answers become targets; the others must be enough for the rounds.
    least = 2 * N_ROUNDS
    enough = n_answers.index[n_answers >= least]
    if not len(enough):
        raise InputError(f"{train}: no student has {least} answers, expected some for the dry run")
    answers = answers[answers["UserId"].isin(enough[:N_DRY_RUN_STUDENTS])]
    answers = answers.sort_values("UserId", kind="stable")
    masks = {"dry run": np.arange(len(answers)) % 5 == 0}
    n_questions = count_questions(train, setting.metadata_dir)
    play_all(setting, game.make_reference(str(train), answers, masks, n_questions))


def measure_curves(
    setting: Setting, reference: Reference, games: Mapping[str, Game]
) -> FloatArray | str:
    """Replay games for accuracies after 0 to N_ROUNDS questions, own choices and random ones,
    (masks, 2, N_ROUNDS + 1), or say why not: an entry may rely on `select_questions`.
    """
    scores, n_games = [], 2 * len(games)
    progress = tqdm(total=n_games, desc="Curve", unit="game", disable=None)
    try:
        with progress, _entry_of(setting) as entry:
            for seed, (mask, played) in enumerate(games.items()):
                at_random = game.choose_at_random(reference, mask, setting.rules, seed)
                for chosen in (played.chosen, at_random):
                    entry.restart()
                    scores.append(game.replay(entry, reference, mask, chosen, setting.rules))
                    progress.update()
    except EntryError as fault:
        return f"replaying the games without select_questions, {fault}"
    return np.array(scores).reshape(len(games), 2, -1)


# ---- The evaluation ------------------------------------------------------------------------------


def evaluate(options: argparse.Namespace, package: Path | None = None) -> None:
    """Play and score the entry that the flags name; `package` is the folder of the script."""
    setting = Setting(options.submission, *examined(options), *rules_and_limits(options))
    inputs = [setting.submission, setting.reference, setting.train]
    text_path, _ = score_files.score_paths(options.output_dir, TASK_4.number, options.phase)
    asked_path = text_path.with_name(f"sequence{text_path.stem.removeprefix('scores')}.csv")
    output_path = options.output_dir / "entry_output_task_4.txt"
    cli.require_outputs([asked_path, output_path, options.probabilities], inputs)
    inputs.append(options.probabilities)
    score_files.remove_scores(options.output_dir, TASK_4.number, options.phase, inputs)
    for path in (asked_path, output_path):
        path.unlink(missing_ok=True)
    submission, is_own = setting.submission, options.submission == package
    # The package as it is, on the kit's own local split: its weights may be of all students.
    trains = is_own and setting.reference == TASK_4.answers_path(LOCAL)
    local = for_local_split(submission, setting.reference) if trains else nullcontext(submission)
    with local as played:
        started, how = time.perf_counter(), setting._replace(submission=played)
        reference = read_students(how)
        entry_files.warn_of_names(submission)
        games, entry = play_all(how, reference, output_path, bool(options.probabilities))
        seconds = time.perf_counter() - started
        curves: FloatArray | str = "not asked for"
        if not options.skip_curve:
            curves = measure_curves(how, reference, games)
        training = provenance.parse(entry_files.read_entry_file(played, TRAINING) or b"")
        code = entry_files.fingerprint_code(played, training.code if training else "")
    if entry.output:
        writing.write_files({output_path: entry.output})

    asked, targets = _list_asked(reference, games), list_targets(reference, games)
    figures = figures_of(setting, reference, targets, entry, curves, seconds, training)
    known = {"training": training, "code": code, "outcomes": outcomes.of_predictions(targets)}
    evaluation, shown = describe(setting, figures, options.phase, asked, **known)
    around, masks = "", "one mask"
    if len(games) > 1:
        around, masks = f" ± {_deviation(figures)}", f"mean of {len(games)} masks"
    lines = [f"score {evaluation.score.value:.4f}{around} ({masks}, {setting.rules})"]
    if path := options.probabilities:
        p_right = targets["PRight"].to_numpy(float)
        probabilities.write_probabilities(targets, TASK_4.number, p_right, path)
        believed = np.stack([1 - p_right, p_right], axis=1)
        truth, predicted = (targets[name].to_numpy() for name in ("truth", "predicted"))
        beliefs = metrics.score_probabilities(truth, believed, predicted)
        shown["calibration"] = score_files.calibration(beliefs, TASK_4.event)
        lines += score_files.probability_lines(beliefs)
    lines += [f"note: {note}" for title, note in figures["facts"] if title == "Note"]
    if not isinstance(curves, str):
        lines.append(f"with questions chosen at random {figures['curves'][1][-1]:.4f}")
    elif not options.skip_curve:
        lines.append(f"no curve: {curves}")
    of_some = asked[asked["UserId"].isin(reference.student[: options.show_sequences])]
    by_student = of_some.sort_values("UserId", kind="stable")
    for (user, mask), rows in by_student.groupby(["UserId", "Mask"], sort=False):
        answers = zip(rows["QuestionId"], _OUTCOMES[rows["IsCorrect"]], strict=True)
        lines.append(f"UserId {user}, {mask}: {', '.join(f'{q} {a}' for q, a in answers)}")
    if 0 < options.show_sequences < len(reference.student):
        rest = f"and so on, of all {len(reference.student):,} students"
        lines.append(f"{rest}: {cli.show(asked_path)}")
    writing.write_files({asked_path: asked})
    written = [asked_path, *([output_path] if entry.output else [])]
    shown["template"] = "games.html"
    score_files.publish(options.output_dir, evaluation, lines, written, **shown)


def build_parser(doc: str | None, package: Path | None = None) -> argparse.ArgumentParser:
    """Return the parser of a `local_evaluation.py`: of a package's, or of one for any entry."""
    p = cli.parser(doc)
    if package is None:
        p.add_argument("submission", type=Path, metavar="SUBMISSION", help="folder or zip")
    else:
        named = "folder or zip (default: this folder)"
        p.add_argument("--submission", type=Path, default=package, help=named)
    add_data_flags(p)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    add_flags(p)
    asks = "ask the entry for its probabilities too: write them to FILE (Parquet), score them"
    p.add_argument("--probabilities", type=Path, metavar="FILE", help=asks)
    skips = "do not measure the accuracy after each question, which takes further predictions"
    p.add_argument("--skip_curve", action="store_true", help=skips)
    shows = "print what the first N students were asked, in order; 0: none"
    cli.add_number(p, "--show_sequences", _N_SHOWN, shows, cli.seed)
    return p


def _list_asked(reference: Reference, games: Mapping[str, Game]) -> pd.DataFrame:
    """Return every selection: Mask, UserId, Round (from 1), QuestionId and IsCorrect, in order."""
    chosen = np.stack([game.chosen for game in games.values()])
    part, row, number = np.indices(chosen.shape).reshape(3, -1)
    asked = pd.DataFrame({"Mask": np.array([*games])[part], "UserId": reference.student[row]})
    asked = asked.assign(Round=number + 1, QuestionId=chosen.ravel())
    return asked.assign(IsCorrect=reference.is_correct[row, chosen.ravel()])


def list_targets(reference: Reference, games: Mapping[str, Game]) -> pd.DataFrame:
    """Return every target: Mask, part, its number, UserId, QuestionId, truth, predicted, PRight."""
    parts = []
    for number, (mask, played) in enumerate(games.items()):
        row, question = np.nonzero(reference.targets[mask])
        keys = {"Mask": mask, "UserId": reference.student[row], "QuestionId": question}
        said = {"predicted": played.prediction, "PRight": played.probability}
        parts.append(pd.DataFrame({**keys, "part": number, "truth": played.truth, **said}))
    return pd.concat(parts, ignore_index=True)


def figures_of(
    setting: Setting,
    reference: Reference,
    targets: pd.DataFrame,
    entry: EntryProcess,
    curves: FloatArray | str,
    seconds: float,
    training: Provenance | None,
) -> dict[str, Any]:
    """Return what the page tells of games that have been played, in types that JSON has."""
    truth, predicted = targets["truth"].to_numpy(), targets["predicted"].to_numpy()
    by_mask = targets.groupby("Mask", sort=False)
    figures: dict[str, Any] = {
        "masks": {
            mask: metrics.accuracy(rows["truth"].to_numpy(), rows["predicted"].to_numpy()).value
            for mask, rows in by_mask
        },
        "confusion": metrics.confusion_matrix(truth, predicted, (0, 1)).tolist(),
        "curves": curves if isinstance(curves, str) else curves.mean(axis=0).tolist(),
        "seconds": seconds,
    }
    enforced = "" if entry.memory_limited else " (not enforced: this system cannot)"
    memory = f"{setting.limits.memory / 2**30:g} GiB of memory{enforced}"
    facts = [
        ("Weights trained by", describe_origin(training)),
        ("Training file given", cli.show(setting.train) if setting.train else "none"),
        ("Students", f"{len(reference.student):,}"),
        ("Questions (columns)", f"{reference.is_correct.shape[1]:,}"),
        ("Targets scored", f"{len(truth):,}"),
        ("Rules", f"{setting.rules}"),
        ("Limits", f"{setting.limits.seconds:g} s for one mask, {memory}"),
        ("Isolation", entry.isolation),
        ("Time", f"{seconds:.1f} s"),
    ]
    if len(figures["masks"]) > 1:
        facts.append(("Deviation over masks", _deviation(figures)))
    for method, names in entry.changed.items():
        note = f"{method} changes {', '.join(sorted(names))}: it got a copy, so that has no effect"
        facts.append(("Note", note))
    return {**figures, "facts": facts}


def score_of(figures: Mapping[str, Any]) -> Score:
    """Return the mean accuracy over the masks, with the standard error where it was computed."""
    accuracies = [*figures["masks"].values()]
    mean = metrics.combine_parts(accuracies, takes_best=TASK_4.scores_best_part)
    return Score(float(mean), figures.get("standard_error"), int(np.sum(figures["confusion"])))


def _deviation(figures: Mapping[str, Any]) -> str:
    return f"{np.std([*figures['masks'].values()], ddof=1):.4f}"


def describe(
    setting: Setting,
    figures: Mapping[str, Any],
    phase: str,
    asked: pd.DataFrame | None = None,
    **known: Any,
) -> tuple[Evaluation, dict[str, Any]]:
    """Return an evaluation, with what else is known, and what `games.html` shows of it."""
    accuracies, curves = figures["masks"], figures["curves"]
    evaluation = Evaluation(
        task=TASK_4.number,
        metric=TASK_4.metric_sentence,
        score=score_of(figures),
        submission=setting.submission,
        reference=setting.reference,
        phase=phase,
        rules=f"{setting.rules}",
        parts=accuracies,
        seconds=figures["seconds"],
        facts=figures["facts"],
        **known,
    )
    masks = curve = ""
    if len(accuracies) > 1:
        dots = [charts.Dot(mask, accuracy) for mask, accuracy in accuracies.items()]
        label, axis = "Accuracy with each mask", "accuracy, mean dashed"
        masks = charts.dot_chart(
            dots, label=label, digits=4, chance=evaluation.score.value, axis=axis
        )
    names = ["entry's choice", "random choice"]
    if not isinstance(curves, str):
        label, axis = "Accuracy after each question", "questions asked"
        steps = range(N_ROUNDS + 1)
        drawn = [charts.Curve(name, steps, curves[k], k) for k, name in enumerate(names)]
        curve = charts.curve_chart(drawn, label=label, axis=axis)
    confusion = np.array(figures["confusion"])
    return evaluation, {
        "masks": masks,
        "curve": curve,
        "curves": curves,
        "curve_names": names,
        "asked": {} if asked is None else _choose_some(asked, setting.metadata_dir),
        "confusion": score_files.confusion_table(confusion, TASK_4.value_names),
        "calibration": "",
    }


def _choose_some(asked: pd.DataFrame, metadata_dir: Path) -> dict[int, Any]:
    """Return what some students were asked with the first mask: rows of texts by UserId."""
    asked = asked[asked["Mask"] == asked["Mask"].iloc[0]]
    questions = np.arange(asked["QuestionId"].max() + 1)
    subject = np.array(metadata.name_subjects(metadata_dir, questions))[asked["QuestionId"]]
    answer = _OUTCOMES[asked["IsCorrect"]]
    rows = asked.assign(Subject=subject, Answer=answer).astype(str).set_index(asked["UserId"])
    students = asked["UserId"].unique()
    places = np.unique(np.linspace(0, len(students) - 1, _N_SHOWN).astype(int))
    columns = ["Round", "QuestionId", "Subject", "Answer"]
    return {student: rows.loc[[student], columns].to_numpy() for student in students[places]}
