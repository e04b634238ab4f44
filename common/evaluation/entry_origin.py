"""What is known of how an entry was made: may it be scored, and what makes its score doubtful?

A score means what people think only if the entry has not learned from the answers that it is scored
on, if it was made from the data that are there now, and if its code is the code that made it. The
record of an entry's command, see `common.provenance`, tells all of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import cli, fingerprints, layout, provenance, source_code
from common.errors import InputError, printable
from common.evaluation import joined_metadata
from common.evaluation.doubt import Doubt
from common.fingerprints import Fingerprint, fingerprint
from common.provenance import Provenance
from common.tasks import Task


@dataclass(frozen=True)
class EntryOrigin:
    """How an entry was made, as far as it is known."""

    # None if it is not recorded.
    record: Provenance | None
    doubts: tuple[Doubt, ...] = ()


UNKNOWN_SOURCES = Doubt(
    mark="may have seen these answers",
    sentence="may have seen these answers: no record says what it has learned from",
)


def find_origin(
    submission: Path,
    references: Sequence[Path],
    templates: Iterable[Path] = (),
    train: Path | None = None,
) -> EntryOrigin:
    """Return how the submission at a path was made.

    Parameters
    ----------
    submission
        The file, beside which its record lies if there is one.
    references
        The files of true answers that it is scored on.
    templates
        Files without answers. If an entry has read no other file, then nobody knows which answers
        it has learned from.
    train
        The training answers that belong to the references. If an entry has learned from other
        answers, these may hold the true ones. None: nothing is said about other answers.

    Raises
    ------
    InputError
        If the entry has learned from the answers that it is scored on, or one of the files that it
        was made from has changed since.
    """
    record = provenance.read(submission)
    origin = judge(submission, record, submission.parent, references, templates)
    if record is None or train is None or not train.is_file():
        return origin
    others = find_other_answers(record, submission.parent, templates, train)
    if not others:
        return origin
    doubt = Doubt(
        mark=UNKNOWN_SOURCES.mark,
        sentence=f"may have seen these answers: has learned from {', '.join(others)}, expected "
        f"{cli.show(train.resolve())}",
    )
    return replace(origin, doubts=(doubt, *origin.doubts))


def templates_of(task: Task) -> list[Path]:
    """Return the names of a task's templates."""
    return [Path(name) for name in (task.template, task.local_template) if name is not None]


def find_other_answers(
    record: Provenance, folder: Path, templates: Iterable[Path], train: Path
) -> list[str]:
    """Return the source files of an entry that are not `train`, nor split from it.

    Templates and metadata hold no answers and are left out.
    """
    template_names = {path.name for path in templates}
    expected = fingerprint(train)
    others = []
    for name, known in record.made_from.items():
        source = folder / name
        if source.name in template_names or "_metadata" in source.name or known == expected:
            continue
        split = provenance.read(source) if source.is_file() else None
        if split is None or expected not in split.made_from.values():
            others.append(cli.show(source.resolve()))
    return others


def judge(
    entry: Path,
    record: Provenance | None,
    folder: Path,
    references: Sequence[Path],
    templates: Iterable[Path] = (),
) -> EntryOrigin:
    """Return what the record of an entry means for its score; see `find_origin`.

    The source files in the record are relative to `folder`.
    """
    if record is None:
        return EntryOrigin(None, (UNKNOWN_SOURCES,))
    # With folds, each prediction is that of a model that has not learned from its fold.
    if not record.split:
        require_unseen(entry, record, references)
    require_same_sources(entry, record, folder)
    doubts = []
    template_names = {path.name for path in templates}
    names = [Path(source).name for source in record.made_from]
    if record.unknown_sources or template_names.issuperset(names):
        doubts.append(UNKNOWN_SOURCES)
    sources = [folder / name for name in record.made_from]
    doubts += joined_metadata.find_doubts(
        [*references, *sources], sources, "what the entry has learned from them may mean nothing"
    )
    return EntryOrigin(record, (*doubts, *find_doubts(record)))


def require_unseen(entry: Path, record: Provenance, references: Sequence[Path]) -> None:
    """Raise `InputError` if an entry has learned from the answers that it is scored on.

    These are in the reference itself, and in the file that the reference was split from.
    """
    scored_on: list[Fingerprint] = []
    for reference in references:
        scored_on.append(fingerprint(reference))
        split = provenance.read(reference)
        if split is not None:
            scored_on += split.made_from.values()
    for source, known in record.made_from.items():
        if known in scored_on:
            raise InputError(
                f"{entry}: was made from {Path(source).name}, which holds the answers that it is "
                f"scored on (`{printable(record.command)}`); expected an entry that has not seen "
                "them, for the local split one made with --local"
            )


def require_same_sources(entry: Path, record: Provenance, folder: Path) -> None:
    """Raise `InputError` if a file that an entry was made from has changed since."""
    for name, known in record.made_from.items():
        source = folder / name
        if source.is_file() and not fingerprints.matches(source, known):
            raise InputError(
                f"{entry}: was made from other data than now lie in {cli.show(source.resolve())}; "
                f"`{printable(record.command)}` makes it again"
            )


def find_doubts(record: Provenance) -> list[Doubt]:
    """Return the doubts about an entry's score that its record raises by itself."""
    doubts = []
    script = layout.ROOT / record.script
    if record.code_changed:
        doubts.append(
            Doubt(
                mark="its code changed while it ran",
                sentence=f"{record.script} or a file that it imports changed while it ran: run it "
                "again to score the code as it is",
            )
        )
    elif script.is_file() and record.code and source_code.fingerprint(script) != record.code:
        doubts.append(
            Doubt(
                mark="made by earlier code",
                sentence=f"{record.script} or a file that it imports has changed since: this is "
                "the score of the earlier code, run it again to score the code as it is",
            )
        )
    if record.interrupted:
        doubts.append(
            Doubt(
                mark="fit interrupted",
                sentence="the fit was interrupted: it has learned less than its options say",
            )
        )
    return doubts


def require_same_run(path: Path, record: Provenance | None, submission: Path) -> None:
    """Raise `InputError` if a file was made in another way than the submission that it belongs to.

    Where one of the two has no record, nothing can be said. `record` is that of the file `path`.
    """
    of_submission = provenance.read(submission)
    if record is None or of_submission is None:
        return
    if _what_determines(record) != _what_determines(of_submission):
        raise InputError(
            f"{path}: was made by `{printable(record.command)}`, but {cli.show(submission)} by "
            f"`{printable(of_submission.command)}`; expected both of the same run"
        )


def _what_determines(record: Provenance) -> tuple[object, ...]:
    """Return what determines the predictions of a run: script, code, options, contents of files."""
    sources = sorted(map(repr, record.made_from.values()))
    return record.script, record.code, provenance.settings(record.options), sources
