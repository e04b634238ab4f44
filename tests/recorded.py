"""Lines of the record of scores, for the tests of the scoreboard."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from common.evaluation.record import Result
from common.origin import Origin
from common.provenance import Provenance
from tools.results import read_results

RESULT = Result(
    time="2026-01-01T10:00:00+00:00",
    task=1,
    phase="local",
    rules="",
    model="majority",
    score=0.6,
    parts={},
    seconds=2.0,
    seed=None,
    script="task_1/sample_model_majority.py",
    options={"local": True},
    command="python task_1/local_evaluation.py",
    submission="data/test_output/test_submission_task_1.csv",
    revision=None,
    data="a" * 12,
    origin=Origin.SIMULATED,
)
# Values of `Result.rules` for a game of task 4. "unobserved = -1" means: if an entry has not asked
# for an answer, the entry sees -1 instead of the answer.
STRICT = "targets may not be asked, unobserved = -1"
LENIENT = "targets may be asked, unobserved = -1"
# A record of a score of task 3 holds these scores of random rankings.
RANDOM = {"random rankings, mean": 0.59, "random rankings, 95th percentile": 0.72}


def seeded(model: str, seed: int | None, score: float, time: str = RESULT.time) -> Result:
    """Return a result of a model of task 1 that was run with this seed, or without a seed (None).

    The model's flags were --local, --n_dimensions 8 and, if there is a seed, --seed. The run took
    1 s with the seed 0 or without a seed, 2 s with the seed 1, and so on.
    """
    options: dict[str, Any] = {"local": True, "n_dimensions": "8"}
    if seed is not None:
        options["seed"] = str(seed)
    seconds = 1.0 if seed is None else seed + 1.0
    return replace(
        RESULT,
        model=model,
        seed=seed,
        options=options,
        time=time,
        score=score,
        seconds=seconds,
    )


def made_by(result: Result) -> str:
    """Return the command that made the scored submission; "" if the command is unknown."""
    return Provenance(result.script, result.options, 0).command if result.script else ""


def recorded_doubts(kit: Path) -> list[str]:
    """Return the doubts about a kit's recorded scores, i.e. reasons why a score may be wrong.

    The kit must have recorded at least one score.
    """
    results = read_results(kit / "data/test_output/results.jsonl")
    assert results
    return [doubt for result in results for doubt in result.doubts]


def write_record(path: Path, *results: Result) -> Path:
    path.write_text("".join(json.dumps(asdict(result)) + "\n" for result in results))
    return path
