"""Fit and predict with cmfrec in an environment of its own; print time, memory, accuracy as JSON.

pip install cmfrec pandas threadpoolctl     (into another environment)
THAT_PYTHON tests/benchmarks/peer_cmfrec.py arrays.npz '{"k": 5, "lambda_": 10}'
"""

import json
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from cmfrec import CMF


def predict(arrays: Mapping[str, Any], settings: Mapping[str, Any]) -> np.ndarray:
    """Fit a collective matrix factorisation (CMF) to right and wrong answers, and predict others.

    `arrays` holds students, questions and outcomes for training, and the students and questions to
    predict. The predictions approximate P(right), but may be below 0 or above 1.
    """
    student, question = arrays["student"], arrays["question"]
    answers = scipy.sparse.coo_matrix(
        (arrays["is_correct"].astype(np.float32), (student, question)),
        shape=(student.max() + 1, question.max() + 1),
    )
    model = CMF(use_float=True, verbose=False, nthreads=2, **settings)
    model.fit(answers)
    return np.asarray(model.predict(arrays["test_student"], arrays["test_question"]))


def main() -> None:
    """Fit and predict; print time, memory and accuracy as JSON.

    The arguments of the program are a file of arrays (students, questions and outcomes, for
    training and for the test) and the settings of the collective matrix factorisation (CMF), as
    JSON.
    """
    arrays_path, settings = sys.argv[1:]
    arrays = dict(np.load(arrays_path))
    wall_start = time.perf_counter()
    processor_start = time.process_time()
    p_right = predict(arrays, json.loads(settings))
    result = {
        "seconds": time.perf_counter() - wall_start,
        "processor_seconds": time.process_time() - processor_start,
        "accuracy": float(np.mean((p_right > 0.5) == arrays["test_is_correct"])),
        # `ru_maxrss` is in kilobytes.
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
