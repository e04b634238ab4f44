"""Find out how an entry was made: may it be scored, and is there reason to doubt its score?

A score means what people think only if the entry has not learned from the answers that it is scored
on, if it was made from the data that are there now, and if its code is the code that made it. The
record of an entry's command, see `common.provenance`, tells all of that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from common import cli, fingerprints, layout, provenance, reading, schema, source_code
from common.answers import pair_keys
from common.errors import InputError, printable
from common.evaluation import joined_metadata
from common.evaluation.doubt import EARLIER_CODE, INTERRUPTED, Doubt
from common.fingerprints import Fingerprint, fingerprint
from common.provenance import NOTEBOOK, Provenance
from common.schema import Column

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

UNKNOWN_SOURCES = Doubt(
    mark="may have seen these answers",
    sentence="may have seen these answers: no record says what it has learned from",
)


def judge_submission(
    submission: Path,
    references: Sequence[Path],
    template_names: Collection[str] = (),
    train: Path | None = None,
) -> list[Doubt]:
    """Return the doubts that the record of a submission raises about its score.

    A doubt is a reason why the score may be wrong. The record names the files that the submission
    was made from, and the code that made it.

    Parameters
    ----------
    submission
        The file, beside which its record lies if there is one.
    references
        The files of true answers that the submission is scored on.
    template_names
        Names of submission templates, which hold no answers. If the record names only templates,
        nobody knows which answers the entry has learned from, which raises a doubt.
    train
        Training answers that hold none of the true answers. If the entry was made from other files,
        the rows of these files are compared with the rows of the references.

    Raises
    ------
    InputError
        If the entry has learned from the answers that it is scored on, or if a file that the entry
        was made from has changed since.
    """
    record = provenance.read(submission)
    if record is None:
        return [UNKNOWN_SOURCES]
    folder = submission.parent
    # If `record.split` names folds, the entry comes from a cross-validation. Then it may be made
    # from the files of the true answers, since each fold was predicted by a model that has learned
    # from the other folds only.
    if not record.split:
        require_unseen(submission, record, references)
    require_same_sources(submission, record, folder)
    for reference in references:
        require_no_shared_rows(submission, record, folder, reference, train)
    sources = [folder / name for name in record.made_from]
    doubts_of_metadata = joined_metadata.find_doubts(
        [*references, *sources], sources, "what the entry has learned from them may mean nothing"
    )
    return [*doubt_sources(record, template_names), *doubts_of_metadata, *find_doubts(record)]


def doubt_sources(record: Provenance, template_names: Collection[str]) -> list[Doubt]:
    """Return a doubt if a record does not say which answers an entry has learned from.

    A record lists the files that an entry has read by functions of the kit. If these are only
    templates, which hold no answers, nobody knows which answers the entry has learned from.
    """
    source_names = {Path(source).name for source in record.made_from}
    if record.unknown_sources or source_names.issubset(template_names):
        return [UNKNOWN_SOURCES]
    return []


def require_no_shared_rows(
    entry: Path, record: Provenance, folder: Path, reference: Path, train: Path | None = None
) -> None:
    """Raise `InputError` if a source file of an entry holds rows of the file it is scored on.

    Two rows are the same if they have the same student and question (in task 3, the same pair of
    questions). This finds every copy of the true answers, even if another program wrote the copy,
    or if the copy holds only some of the rows.

    Parameters
    ----------
    entry
        The entry, for the message.
    record
        The entry's record. Its source files are relative to `folder`.
    folder
        The folder of the record.
    reference
        The file that the entry is scored on.
    train
        Training answers that are known to hold no row of the reference. Neither this file nor a
        file that was split from it is compared with the reference. None if no such file is known.
    """
    train_fingerprint = fingerprint(train) if train is not None and train.is_file() else None
    scored_rows: Rows | None = None
    for name, source_fingerprint in record.made_from.items():
        source = folder / name
        columns = key_columns(source)
        # Only files of the same kind can share rows: two files of answers, or two files of
        # judgements (task 3). Files of the same kind have the same key columns.
        if columns is None or columns != key_columns(reference):
            continue
        is_train = source_fingerprint == train_fingerprint
        if is_train or was_split_from(source, train_fingerprint):
            continue
        if scored_rows is None:
            scored_rows = read_rows(reference, columns)
        n_shared = int(np.isin(scored_rows, read_rows(source, columns)).sum())
        if n_shared:
            raise InputError(
                f"{entry}: was made from {cli.show(source.resolve())}, which holds {n_shared:,} of "
                f"the {len(scored_rows):,} answers that it is scored on; expected an entry that "
                "has not seen them"
            )


def key_columns(path: Path) -> tuple[Column, Column] | None:
    """Return the two columns that identify a row of answers or of judgements.

    Returns None for a file that holds neither answers nor judgements, such as a template or
    metadata, and for a missing file. Reading the file does not make it a source of the files that
    this process writes (`reading.unnoticed_source`).
    """
    if path.suffix.lower() != ".csv" or not path.is_file():
        return None
    try:
        names = set(reading.read_header(reading.unnoticed_source(path)))
    except InputError:
        return None
    if names & {schema.IS_CORRECT.name, schema.ANSWER_VALUE.name}:
        return schema.USER_ID, schema.QUESTION_ID
    if {schema.LEFT.name, schema.RIGHT.name} <= names:
        return schema.LEFT, schema.RIGHT
    return None


def read_rows(path: Path, columns: tuple[Column, Column]) -> Rows:
    """Read the two columns that identify a row, and encode each row as one number.

    Faulty rows are left out. The result is empty for a file that is no CSV file. Reading the file
    does not make it a source of the files that this process writes (`reading.unnoticed_source`).
    """
    try:
        table = reading.read_valid_rows(reading.unnoticed_source(path), columns)
    except InputError:
        return np.empty(0, np.int64)
    first_column, second_column = columns
    first = table[first_column.name].to_numpy(np.int64)
    second = table[second_column.name].to_numpy(np.int64)
    is_pair_of_questions = first_column is schema.LEFT
    if is_pair_of_questions:
        # The pairs (left, right) and (right, left) count as the same pair. Put the smaller
        # QuestionId first, so that both get the same number.
        return pair_keys(np.minimum(first, second), np.maximum(first, second))
    return pair_keys(first, second)


def are_of_one_split(train: Path, reference: Path) -> bool:
    """Return whether two files were written by one split, so that they share no rows."""
    split = provenance.read(reference)
    return split is not None and split == provenance.read(train)


def was_split_from(path: Path, expected: Fingerprint | None) -> bool:
    """Return whether a file is a part of a split of the file whose fingerprint is `expected`.

    Returns False if `expected` is None.
    """
    if expected is None:
        return False
    split = provenance.read(path)
    return split is not None and expected in split.made_from.values()


def require_unseen(entry: Path, record: Provenance, references: Sequence[Path]) -> None:
    """Raise `InputError` if an entry was made from a file with the answers that it is scored on.

    Such files are the references themselves, and the files that the references were split from.
    """
    files_with_answers: list[Fingerprint] = []
    for reference in references:
        files_with_answers.append(fingerprint(reference))
        # If the reference was split from other files, its record names these files.
        split = provenance.read(reference)
        if split is not None:
            files_with_answers += split.made_from.values()
    for source, source_fingerprint in record.made_from.items():
        if source_fingerprint in files_with_answers:
            raise InputError(
                f"{entry}: was made from {Path(source).name}, which holds the answers that it is "
                f"scored on (`{printable(record.command)}`); expected an entry that has not seen "
                "them, for the local split one made with --local"
            )


def require_same_sources(entry: Path, record: Provenance, folder: Path) -> None:
    """Raise `InputError` if a file that an entry was made from has changed since."""
    for name, source_fingerprint in record.made_from.items():
        source = folder / name
        if source.is_file() and not fingerprints.matches(source, source_fingerprint):
            raise InputError(
                f"{entry}: was made from other data than now lie in {cli.show(source.resolve())}; "
                f"{_how_to_repeat(record)}"
            )


def _how_to_repeat(record: Provenance) -> str:
    """Say how an entry is made again."""
    if record.script == NOTEBOOK:
        return "run the cells of the notebook again"
    return f"`{printable(record.command)}` makes it again"


def find_doubts(record: Provenance) -> list[Doubt]:
    """Return the reasons to doubt an entry's score that its record and the kit's code show."""
    doubts = doubts_of_run(record)
    if not record.code_changed:
        doubts += earlier_code_doubts(record)
    return doubts


def doubts_of_run(record: Provenance) -> list[Doubt]:
    """Return reasons to doubt a score that come from the run: changed code, an interrupted fit."""
    doubts = []
    if record.code_changed:
        doubts.append(code_changed_doubt(record.script))
    if record.interrupted:
        doubts.append(
            Doubt(
                mark=INTERRUPTED,
                sentence="the fit was interrupted: it has learned less than its options say",
            )
        )
    return doubts


def code_changed_doubt(script: str) -> Doubt:
    """Return the doubt about an entry whose code changed while its script ran."""
    return Doubt(
        mark="its code changed while it ran",
        sentence=f"{printable(script)} or a file that it imports changed while it ran: run it "
        "again to score the code as it is",
    )


def earlier_code_doubts(record: Provenance) -> list[Doubt]:
    """Return a list with one doubt if the code of an entry has changed since the entry was made.

    Without such a change, the list is empty. An entry may be a blend, which averages the
    predictions of several submissions. Then a change of the code that made one of these submissions
    counts too.
    """
    # `record.code` is the fingerprint of the code that made the entry; "" if it is not known.
    if record.code and has_code_changed(record.script, record.code):
        return [
            Doubt(
                mark=EARLIER_CODE,
                sentence=f"{printable(record.script)} or a file that it imports has changed since: "
                "this is the score of the earlier code, run it again to score the code as it is",
            )
        ]
    # A part of a blend is one of the submissions that the blend averages. A script may have made
    # several parts, each with another version of its code: then there are several fingerprints.
    for script, fingerprints_of_code in record.code_of_parts.items():
        if any(has_code_changed(script, code) for code in fingerprints_of_code):
            return [
                Doubt(
                    mark=EARLIER_CODE,
                    sentence=f"{printable(script)} or a file that it imports has changed since it "
                    "made a part of the blend: run it and the blend again to score the code as it "
                    "is",
                )
            ]
    return []


def has_code_changed(script: str, code: str) -> bool:
    """Return whether a script, or a file of the kit that it imports, has changed.

    `code` is the earlier fingerprint. A script that is not there any more counts as unchanged.
    """
    path = layout.ROOT / script
    return path.is_file() and source_code.fingerprint(path) != code


def require_same_run(path: Path, record: Provenance | None, submission: Path) -> None:
    """Raise `InputError` if different runs made a file, such as probabilities, and the submission.

    Two runs of scripts count as the same run if they must make equal predictions (see
    `_predictions_key`). All runs of notebooks count as the same run.

    `record` is the record of the file `path`. If this file or the submission has no record, the two
    are not compared.
    """
    submission_record = provenance.read(submission)
    if record is None or submission_record is None:
        return
    if _predictions_key(record) != _predictions_key(submission_record):
        raise InputError(
            f"{path}: was made by `{printable(record.command)}`, but {cli.show(submission)} by "
            f"`{printable(submission_record.command)}`; expected both of the same run"
        )


def _predictions_key(record: Provenance) -> tuple[object, ...]:
    """Return what determines a run's predictions: script, code, options and contents of files.

    Runs of scripts with the same key make the same predictions. The record of a notebook does not
    hold these facts, so all notebooks have the same key.
    """
    if record.script == NOTEBOOK:
        return (NOTEBOOK,)
    sources = sorted(map(repr, record.made_from.values()))
    return record.script, record.code, provenance.settings(record.options), sources
