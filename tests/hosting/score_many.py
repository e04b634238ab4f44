"""Score many unpacked submissions with a bundle's scoring program, in one process.

    python tests/hosting/score_many.py SCORING_PROGRAM REFERENCE_DATA SUBMISSIONS

prints for every folder in SUBMISSIONS the exit code, what stderr said and the files written, as
JSON.
"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    program, reference, submissions = (Path(name).resolve() for name in sys.argv[1:])
    sys.path[0] = str(program)
    import stand_ins

    stand_ins.install()
    import scoring

    found = {}
    for folder in sorted(submissions.iterdir()):
        with tempfile.TemporaryDirectory() as temporary:
            output, errors = Path(temporary) / "output", io.StringIO()
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                code = scoring.score(reference, folder, output)
            written = {path.name: path.read_text() for path in output.iterdir()}
        found[folder.name] = [code, errors.getvalue(), written]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
