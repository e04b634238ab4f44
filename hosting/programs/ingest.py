"""The ingestion program of the platform, for task 4: play the ten rounds with an entry.

    python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output

The students' answers lie beside this program, not in /app/input_data, which the platform shows to a
submission that brings a program of its own. What is written says what was asked and predicted, and
holds no answer.
"""

import sys
from pathlib import Path

import stand_ins


def main() -> int:
    """Play the rounds; return the exit code."""
    stand_ins.install()
    # The kit can only be imported now.
    import ingestion

    paths = (Path(argument).resolve() for argument in sys.argv[1:4])
    return ingestion.ingest(Path(__file__).resolve().parent, *paths)


if __name__ == "__main__":
    sys.exit(main())
