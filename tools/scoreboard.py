"""Show the record of all scores: a table here, and a page with charts to open in a browser.

    python -m tools.scoreboard
    python -m tools.scoreboard --results my_scores/results.jsonl

Reads data/test_output/results.jsonl, to which every evaluation appends, and writes scoreboard.html
beside it. Only scores on the same answers, by the same rules, are compared. Published scores of
2020 are shown beside real answers of the same phase, marked as such, and in their own table.
"""

import sys
from pathlib import Path

from common import cli, io, layout
from common.scores.results import read_results
from tools import scoreboard_page, scoreboard_tables


def main() -> None:
    """Read the record, print the tables, write the page."""
    p = cli.parser(__doc__)
    p.prog = "python -m tools.scoreboard"
    default = layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME
    p.add_argument(
        "--results", type=Path, metavar="FILE", default=default, help=f"default {cli.show(default)}"
    )
    path = p.parse_args().results
    io.require_file(path)
    results, n_unreadable = read_results(path)
    tables = scoreboard_tables.make_tables(results)
    print(scoreboard_tables.as_text(tables))
    page = path.with_name(layout.SCOREBOARD_NAME)
    io.write_text(page, scoreboard_page.as_page(tables))
    if n_unreadable:
        print(f"{cli.show(path)}: ignored {n_unreadable} invalid lines", file=sys.stderr)
    print(f"written: {cli.show(page)}")


if __name__ == "__main__":
    cli.run(main)
