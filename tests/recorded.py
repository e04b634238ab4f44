"""Lines of the record, for the tests of the scoreboard."""

from dataclasses import replace

from common.scores.results import Result

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
    made_by="python task_1/sample_model_majority.py --local",
    command="python task_1/local_evaluation.py",
    submission="data/test_output/test_submission_task_1.csv",
    revision=None,
    data="a" * 12,
    simulated=True,
)
STRICT = "targets may not be asked, unobserved = -1"
LENIENT = "targets may be asked, unobserved = -1"
RANDOM = {"random rankings, mean": 0.59, "random rankings, 95th percentile": 0.72}


def seeded(model: str, seed: int, score: float, time: str = RESULT.time) -> Result:
    made_by = f"python task_1/{model}.py --local --seed {seed} --n_dimensions 8"
    return replace(
        RESULT, model=model, seed=seed, score=score, made_by=made_by, time=time, seconds=seed + 1.0
    )
