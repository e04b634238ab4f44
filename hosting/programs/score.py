"""The scoring program of the platform: score one submission of one task and phase.

    python3 /app/program/score.py /app/input /app/output

Reads the reference data in /app/input/ref and the submission in /app/input/res; writes scores.json
and detailed_results.html. A submission that is incomplete or wrong gets a page that says why, one
line on stderr and exit code 2, never a score.
"""

import sys
from pathlib import Path

import stand_ins


def main() -> int:
    """Score the submission; return the exit code."""
    stand_ins.install()
    # The kit can only be imported now.
    import scoring

    input_dir, output_dir = (Path(argument).resolve() for argument in sys.argv[1:3])
    return scoring.score(input_dir / "ref", input_dir / "res", output_dir)


if __name__ == "__main__":
    sys.exit(main())
