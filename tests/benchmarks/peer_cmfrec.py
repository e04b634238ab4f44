"""Fit and predict with cmfrec in an environment of its own; print time, memory, accuracy as JSON.

pip install cmfrec pandas threadpoolctl     (into another environment)
THAT_PYTHON tests/benchmarks/peer_cmfrec.py arrays.npz '{"k": 5, "lambda_": 10}'
"""

import json
import resource
import sys
import time

import numpy as np
import scipy.sparse
from cmfrec import CMF


def main() -> None:
    """Fit, predict, print."""
    arrays = dict(np.load(sys.argv[1]))
    student, question = arrays["student"], arrays["question"]
    wall, processor = time.perf_counter(), time.process_time()
    answers = scipy.sparse.coo_matrix(
        (arrays["is_correct"].astype(np.float32), (student, question)),
        shape=(student.max() + 1, question.max() + 1),
    )
    model = CMF(use_float=True, verbose=False, nthreads=2, **json.loads(sys.argv[2]))
    model.fit(answers)
    p = model.predict(arrays["test_student"], arrays["test_question"])
    result = {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "accuracy": float(np.mean((p > 0.5) == arrays["test_is_correct"])),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
