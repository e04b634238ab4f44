"""The quickstart's command line: sets up, then runs the sample models or the tests."""

import argparse
import sys

from common import streams
from tools.quickstart.checks import run_checks
from tools.quickstart.environment import set_up
from tools.quickstart.processes import CommandError
from tools.quickstart.samples import run_related, run_tasks


def main(description: str | None) -> int:
    """Set up, then run everything or the tests; return the exit code."""
    options = build_parser(description).parse_args()
    try:
        with streams.safe_printing():
            python = set_up(for_tests=options.test)
            if options.test:
                return run_checks(python)
            if options.related:
                return run_related(python)
            return run_tasks(python, options.size)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        file = error.filename or "reading or writing a file"
        print(f"error: {file}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the next run resumes here", file=sys.stderr)
        # By convention, a program that Control-C stops ends with this exit code.
        return 130


def build_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    raw_text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw_text)
    parser.add_argument("--test", action="store_true", help="run the kit's checks and tests")
    parser.add_argument("--related", action="store_true", help="run the related challenges")
    parser.add_argument(
        "--size",
        choices=("tiny", "small", "full"),
        help="size of the simulated data (default small); never touches official data",
    )
    return parser
