"""Recognise simulated answers by their rows.

The fingerprint of a file changes if the file is written by another program, sorted, or cut down to
a sample. A sketch of the file's rows recognises these copies too: every row gets a hash, and the
sketch keeps the smallest hashes (Broder 1997, "On the resemblance and containment of documents").
To recognise a copy, take the rows of the copy whose hash is at most the largest hash that the
sketch keeps. If the copy holds rows of the sketched file only, the hashes of all these rows are in
the sketch. SIMULATED.json holds the sketches of all simulated files of answers.

A row is a student, a question and one outcome: IsCorrect or AnswerValue. Each outcome has a sketch
of its own, so that a file may lack the other. In a panel of task 3, a row is a pair of questions,
an expert and the expert's judgement.

Whoever has a sketch can test a guessed row. Sketches of hidden answers are never given away.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from zlib import crc32

from common import file_formats, fingerprints, reading, schema
from common.errors import InputError

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
# The sketch of a file: the smallest of the hashes of the file's rows, as base64 text. There is one
# such text for each outcome in the file. The key is the outcome: IsCorrect, AnswerValue or
# judgement.
Sketch = Mapping[str, str]

# The sketch of a file keeps `_N_KEPT` hashes of rows, 5 bytes each, or the hashes of the share
# `_KEPT_SHARE` of the rows if that is more. Only these rows can be found again in another file,
# such as a copy of a part of the file. The simulator makes 400,000 training answers by default. On
# average, 400 of these answers have 400 · 8192 / 400,000 = 8 hashes in the sketch. With 16 million
# answers, 1,024 of these have 1,024 / 128 = 8 hashes in the sketch.
_N_KEPT = 8192
_KEPT_SHARE = 1 / 128
# A file is recognised if at least `_MIN_ROWS` of its rows can be compared, and if the sketch holds
# most of these rows; a tenth may have been edited. A file of another simulation with the same
# numbers of students and questions should not be recognised. Each of its rows is in the sketch by
# chance with probability 1/6: in tasks 3 and 4, a third of all pairs are answered, and half of
# these answers have the same outcome. By the binomial distribution, the sketch holds 8 of 8 rows by
# chance in 6e-7 of such files, and 9 of 10 rows in 8.4e-7. Larger numbers are rarer.
_MIN_ROWS = 8
_MIN_SHARE = 0.9
# A hash is cut to its upper 40 bits. So two different rows may have the same hash: among 16 million
# rows, one row in 70,000 shares its hash with another row.
_N_BYTES = 5
_DROPPED_BITS = 64 - 8 * _N_BYTES
# A file of more than 256 KiB is not read as a whole, but in 64 samples of 4 KiB. The samples hold
# about 10,000 rows. A sketch keeps only the smallest hashes of a file. At least about 75 of the
# 10,000 rows (`_KEPT_SHARE`) have a hash that is small enough to be compared with a sketch.
_N_SAMPLES = 64
_SAMPLE_SIZE = 1 << 12
# At most this many rows are hashed at once, to limit the memory in use.
_ROWS_AT_ONCE = 1 << 20
# The key in a sketch for the hashes of judgements. In task 3, a panel of experts judges pairs of
# questions. The sketch of a file with their judgements has no other key.
_JUDGEMENT = "judgement"
# The columns in a file of answers that are outcomes. Their names are keys in the sketch of the
# file.
_OUTCOMES = (schema.IS_CORRECT, schema.ANSWER_VALUE)


# ---- Sketches ------------------------------------------------------------------------------------


def sketch(path: Path) -> dict[str, str]:
    """Return the sketch of a file of answers or judgements; it is empty for any other file.

    The sketch holds the smallest hashes of the file's rows, as a text for each outcome.
    """
    # `unnoticed_source` reads the file without recording that this process has read it.
    by_outcome = _hash_rows(path, reading.unnoticed_source(path))
    return {outcome: _encode(_keep(hashes)) for outcome, hashes in by_outcome.items()}


def is_known(path: Path, sketches: Iterable[object]) -> bool:
    """Return whether the rows of a file come from simulated files, which `sketches` describe.

    The sketch of a file holds the smallest hashes of the file's rows.

    Parameters
    ----------
    path
        A file of any kind. False is returned if it holds neither answers nor judgements.
    sketches
        For each simulation, a mapping from the names of its files to their sketches. The rows in
        `path` may come from several files of one simulation. Sketches are read from SIMULATED.json,
        which anybody may edit: a damaged sketch recognises no rows.
    """
    valid_sketches = [by_file for by_file in sketches if isinstance(by_file, Mapping)]
    if not valid_sketches:
        return False
    sample = _read_sample(path)
    # The hashes of the sampled rows. A row of answers may have two hashes: one with the outcome
    # IsCorrect, one with the outcome AnswerValue.
    hashes_by_outcome = _hash_rows(path, reading.Source(str(path), lambda: BytesIO(sample)))
    for outcome, hashes in hashes_by_outcome.items():
        for sketches_by_file in valid_sketches:
            for kept in _decode_all(sketches_by_file, outcome):
                if _are_rows_of_sketched_file(hashes, kept):
                    return True
    return False


def _keep(hashes: Hashes) -> Hashes:
    """Return the smallest hashes, sorted: those that the sketch of a file keeps."""
    n_kept = max(_N_KEPT, int(len(hashes) * _KEPT_SHARE))
    return np.sort(hashes)[:n_kept]


def _are_rows_of_sketched_file(hashes: Hashes, kept: Hashes) -> bool:
    """Return whether the rows with these `hashes` are rows of a sketched file.

    `kept` holds the hashes in the sketch: the smallest hashes of the file's rows, sorted.
    """
    # The sketch keeps all hashes of the file up to the largest kept hash. So a row whose hash is in
    # this range is a row of the file only if its hash is kept. The sketch says nothing about larger
    # hashes.
    compared = hashes[hashes <= kept[-1]]
    # For each compared hash, find the smallest kept hash that is at least as large. There is one,
    # since no compared hash is above the largest kept hash. The two are equal if the hash is kept.
    next_kept = kept[np.searchsorted(kept, compared)]
    is_kept = next_kept == compared
    return len(compared) >= _MIN_ROWS and bool(is_kept.mean() >= _MIN_SHARE)


def _decode_all(sketches: Mapping[str, Sketch], outcome: str) -> Iterator[Hashes]:
    """Yield an array of hashes for each file in `sketches`, then one for all files together.

    `sketches` maps the name of each file to its sketch. The sketch has a text for each outcome,
    such as IsCorrect, which encodes the smallest hashes of the file's rows. Only the text for
    `outcome` is decoded. The last array, with the hashes of all files, recognises a file whose rows
    come from several of these files.
    """
    kept_by_file = []
    for sketch_of_file in sketches.values():
        text = sketch_of_file.get(outcome) if isinstance(sketch_of_file, Mapping) else None
        kept = _decode(text) if isinstance(text, str) else None
        if kept is not None:
            kept_by_file.append(kept)
    yield from kept_by_file
    if len(kept_by_file) > 1:
        # A sketch holds all hashes of its file up to the largest hash in the sketch, kept[-1]. The
        # smallest kept[-1] of all sketches is the limit up to which no sketch lacks a hash of its
        # file. Yield only hashes up to this limit.
        complete_up_to = min(kept[-1] for kept in kept_by_file)
        together = np.unique(np.concatenate(kept_by_file))
        yield together[together <= complete_up_to]


def _encode(hashes: Hashes) -> str:
    """Return hashes as base64: the lowest `_N_BYTES` bytes of each hash."""
    # In big-endian order (">u8"), the lowest bytes of a number come last.
    as_bytes = hashes.astype(">u8").view(np.uint8).reshape(-1, 8)
    return base64.b64encode(as_bytes[:, -_N_BYTES:].tobytes()).decode()


def _decode(text: str) -> Hashes | None:
    """Return the hashes of a text from `_encode`, sorted; None if the text is damaged."""
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    # A valid text has `_N_BYTES` bytes for each hash.
    if not content or len(content) % _N_BYTES:
        return None
    as_bytes = np.frombuffer(content, np.uint8).reshape(-1, _N_BYTES)
    # Fill each hash up to the 8 bytes of a uint64. In big-endian order, the zeros come first.
    padded = np.zeros((len(as_bytes), 8), np.uint8)
    padded[:, -_N_BYTES:] = as_bytes
    return np.sort(padded.view(">u8").ravel().astype(np.uint64))


# ---- Rows ----------------------------------------------------------------------------------------


def _hash_rows(path: Path, source: reading.Source) -> dict[str, Hashes]:
    """Return the hashes of the rows of `source`, by outcome.

    A row of answers has a hash for each outcome that the file has: IsCorrect, AnswerValue or both.
    The only outcome of judgements is their value. `source` holds all rows of the file `path`, or a
    sample of these rows. Faulty rows are left out. The result is empty for a file that holds
    neither answers nor judgements.
    """
    try:
        # The header tells what the file holds. A process usually records the files that it reads,
        # as files that its model may have learned from. `unnoticed_source` reads without this
        # record.
        header = reading.read_header(reading.unnoticed_source(path))
        if {schema.USER_ID.name, schema.QUESTION_ID.name}.issubset(header):
            return _hash_answers(source, header)
        if {schema.LEFT.name, schema.RIGHT.name}.issubset(header):
            return _hash_judgements(source, header)
    except (InputError, UnicodeError):
        # The file is no CSV file that can be read, so it holds neither answers nor judgements.
        pass
    return {}


def _hash_answers(source: reading.Source, header: list[str]) -> dict[str, Hashes]:
    """Return the hashes of the answers: an array for each outcome, IsCorrect and AnswerValue.

    The keys are the outcomes that the file has. Each hash is computed from the student, the
    question and the outcome of one answer.
    """
    outcomes = [column for column in _OUTCOMES if column.name in header]
    if not outcomes:
        return {}
    columns = [schema.USER_ID, schema.QUESTION_ID, *outcomes]
    table = reading.read_valid_rows(source, columns)
    student = table[schema.USER_ID.name]
    question = table[schema.QUESTION_ID.name]
    hashes = {}
    for column in outcomes:
        hashes[column.name] = _hash(column.name, student, question, table[column.name])
    return hashes


def _hash_judgements(source: reading.Source, header: list[str]) -> dict[str, Hashes]:
    """Return the hashes of the judgements of a panel; empty judgements are left out.

    A judgement consists of the expert's name, the two questions and the value.
    """
    # All columns but the two questions and row numbers hold the judgements of an expert. The name
    # of the column is the name of the expert.
    others = [name for name in header if name not in (schema.LEFT.name, schema.RIGHT.name)]
    experts = [name for name in others if not schema.ROW_NUMBERS.fullmatch(name)]
    columns = [schema.LEFT, schema.RIGHT, *map(schema.expert_judgement, experts)]
    table = reading.read_valid_rows(source, columns)
    left = table[schema.LEFT.name].to_numpy()
    right = table[schema.RIGHT.name].to_numpy()
    parts = []
    for expert in experts:
        judgement = table[expert].to_numpy()
        is_judged = ~np.isnan(judgement)
        value = judgement[is_judged].astype(np.int64)
        # `kind` names the expert, so that the same judgement by two experts gets two different
        # hashes.
        kind = f"{_JUDGEMENT} {expert}"
        parts.append(_hash(kind, left[is_judged], right[is_judged], value))
    return {_JUDGEMENT: np.concatenate(parts)} if parts else {}


def _read_sample(path: Path) -> bytes:
    """Return a CSV file; of a large file, return its header and whole lines from all its parts."""
    size = path.stat().st_size
    # A process usually records the files that it reads, as files that its model may have learned
    # from. `open_unnoticed` opens the file without this record.
    with fingerprints.open_unnoticed(path) as file:
        if file_formats.needs_conversion(file.read(_SAMPLE_SIZE)):
            # Text in UTF-16 or packed by gzip can only be read from its start.
            return _read_start(path)
        file.seek(0)
        if size <= _N_SAMPLES * _SAMPLE_SIZE:
            return file.read()
        # The first sample begins with the header. Its last line may be incomplete: leave it out.
        start = file.read(_SAMPLE_SIZE)
        # In old files of the Macintosh, lines end with "\r".
        line_end = b"\n" if b"\n" in start else b"\r"
        samples = [start[: start.rfind(line_end)]]
        # The samples begin at equal distances: sample 0 at the start of the file, and the last
        # sample where it ends at the end of the file.
        last_sample = _N_SAMPLES - 1
        begin_of_last = size - _SAMPLE_SIZE
        for number in range(1, _N_SAMPLES):
            file.seek(number * begin_of_last // last_sample)
            block = file.read(_SAMPLE_SIZE)
            # The first and the last line of the block may be incomplete: leave them out.
            samples.append(block[block.find(line_end) + 1 : block.rfind(line_end)])
    return line_end.join(samples) + line_end


def _read_start(path: Path) -> bytes:
    """Return the first whole lines of a CSV in UTF-16 or packed by gzip, as UTF-8."""
    try:
        with reading.unnoticed_source(path).open() as file:
            start = file.read(_N_SAMPLES * _SAMPLE_SIZE)
    except InputError:
        # The file is damaged. The function that reads its answers will report the damage.
        return b""
    return start[: start.rfind(b"\n") + 1]


# ---- Hashes --------------------------------------------------------------------------------------


def _hash(kind: str, *columns: npt.ArrayLike) -> Hashes:
    """Return a hash of 40 bits for each row of some columns of whole numbers.

    The hash also depends on the text `kind`: equal rows of two kinds have different hashes.
    """
    arrays = [np.asarray(column) for column in columns]
    hashes = np.empty(len(arrays[0]), np.uint64)
    for start in range(0, len(hashes), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        # Begin each row with a number that stands for the kind. Then take one column after the
        # other: combine its values with the numbers so far by XOR, and replace the results by their
        # hashes.
        mixed = np.full(len(hashes[rows]), crc32(kind.encode(errors="replace")), np.uint64)
        for array in arrays:
            mixed ^= array[rows].astype(np.uint64)
            _mix(mixed)
        # Keep the upper 40 bits of the 64 bits.
        hashes[rows] = mixed >> np.uint64(_DROPPED_BITS)
    return hashes


def _mix(values: Hashes) -> None:
    """Replace 64-bit numbers in place by hashes: one step of SplitMix64 (Steele et al. 2014)."""
    values += np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
