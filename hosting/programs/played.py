"""What the ingestion program of task 4 hands to the scoring program, signed.

The platform lets a submission that brings its own metadata.yaml run beside the ingestion program,
with the same output folder. So what is written there holds no answer, and is signed with a key that
only the two programs have: nothing else is scored.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from common import io
from common.adaptive.entry_process import Limits
from common.adaptive.game import N_ROUNDS, Game, Reference, Rules
from common.adaptive.playing import Curves, Setting
from common.errors import InputError

import numpy as np

NAME, SIGNATURE_NAME, KEY_NAME = "played_task_4.npz", "played_task_4.signature", "key.txt"
# The default queue of the platform ends a run after ten minutes: ten masks and the curve.
LIMITS = Limits(seconds=45.0, memory=4 << 30)


@dataclass(frozen=True)
class Played:
    """What an entry did.

    Attributes
    ----------
    games
        One for each mask, by its name.
    curves
        Accuracy after each question, or the reason why there are none.
    facts
        What the page says of the run.
    seconds
        How long it took.
    """

    games: Mapping[str, Game]
    curves: Curves | str
    facts: list[tuple[str, str]]
    seconds: float


def setting_of(
    submission: Path, reference: Path, train: Path | None, metadata_dir: Path
) -> Setting:
    """Return how entries are played and scored here: as the guide of 2020 says."""
    return Setting(submission, reference, train, metadata_dir, Rules(), LIMITS)


def read_key(folder: Path) -> bytes:
    """Read the key of a phase, which lies beside the students in both programs' files."""
    return bytes.fromhex((folder / KEY_NAME).read_text(encoding="utf-8").strip())


def write(folder: Path, played: Played, key: bytes) -> None:
    """Write what was played, and sign it."""
    arrays: dict[str, Any] = {}
    for number, game in enumerate(played.games.values()):
        arrays[f"chosen_{number}"] = game.chosen.astype(np.int32)
        arrays[f"prediction_{number}"] = game.prediction.astype(np.int8)
    told: dict[str, object] = {"facts": played.facts, "seconds": played.seconds}
    if isinstance(played.curves, Curves):
        arrays["curve_of_entry"], arrays["curve_of_random"] = vars(played.curves).values()
    else:
        told["no_curve"] = played.curves
    content = BytesIO()
    np.savez_compressed(content, told=np.array(json.dumps(told)), **arrays)
    _write_signed(folder, content.getvalue(), key)


def write_fault(folder: Path, fault: str, key: bytes) -> None:
    """Write why an entry was not played, and sign it."""
    content = BytesIO()
    np.savez_compressed(content, told=np.array(json.dumps({"fault": fault})))
    _write_signed(folder, content.getvalue(), key)


def _write_signed(folder: Path, content: bytes, key: bytes) -> None:
    with io.atomic_write(folder / NAME, folder / SIGNATURE_NAME) as (file, signature_file):
        file.write(content)
        signature_file.write(_sign(content, key).encode())


def _sign(content: bytes, key: bytes) -> str:
    return hmac.new(key, content, "sha256").hexdigest()


def read(folder: Path, reference: Reference, key: bytes) -> Played:
    """Read what was played.

    Parameters
    ----------
    folder
        Where the ingestion program wrote it.
    reference
        The students, with the true answers.
    key
        The key that it was signed with.

    Raises
    ------
    InputError
        If the entry was not played, or it was not the ingestion program that wrote this.
    """
    try:
        content = (folder / NAME).read_bytes()
        signature = (folder / SIGNATURE_NAME).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InputError(
            "the entry was not played to its end: the log of the ingestion program says why"
        ) from None
    if not hmac.compare_digest(_sign(content, key).encode(), signature.strip().encode()):
        raise InputError("what was played is not signed by the ingestion program of this phase")
    with np.load(BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    told = json.loads(str(arrays["told"]))
    if "fault" in told:
        raise InputError(told["fault"])
    games = {}
    for number, (mask, targets) in enumerate(reference.targets.items()):
        truth = reference.is_correct.ravel()[np.flatnonzero(targets)]
        chosen, prediction = arrays[f"chosen_{number}"], arrays[f"prediction_{number}"]
        assert chosen.shape == (len(reference.student), N_ROUNDS)
        assert prediction.shape == truth.shape
        games[mask] = Game(chosen.astype(np.int64), truth, prediction)
    curves: Curves | str = told.get("no_curve", "")
    if "curve_of_entry" in arrays:
        curves = Curves(arrays["curve_of_entry"], arrays["curve_of_random"])
    return Played(games, curves, [(name, text) for name, text in told["facts"]], told["seconds"])
