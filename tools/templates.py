"""Build the CSV templates of submissions from the files in data/.

    python -m tools.templates

`submission_task_1_2.csv` holds the pairs of the public and the private test of tasks 1 and 2
together. `submission_task_3.csv` holds every question of tasks 3 and 4 with an empty rank. The
files in data/ may be official or simulated. A template whose files are missing is left out, and the
command says so.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common import cli, layout, provenance, reading, schema, writing
from common.errors import InputError
from common.provenance import Provenance

import pandas as pd


def build_templates(data_dir: Path, template_dir: Path) -> list[str]:
    """Build the submission templates whose source files exist.

    Returns the names of the other templates, each with the reason why it is left out. Raises
    `InputError` if no template can be built.
    """
    left_out = []
    for name in layout.SOURCES_OF_TEMPLATE:
        missing = layout.missing_sources(name, data_dir)
        if missing:
            left_out.append(f"{name}, because there is no {cli.show(missing[0])}")
        else:
            build_template(name, data_dir, template_dir)
    if len(left_out) == len(layout.SOURCES_OF_TEMPLATE):
        raise InputError(f"no template can be built: {'; '.join(left_out)}")
    return left_out


def build_template(name: str, data_dir: Path, template_dir: Path) -> None:
    """Build one template and, beside it, a record that names the files it was made from."""
    sources = [data_dir / source for source in layout.SOURCES_OF_TEMPLATE[name]]
    is_ranking = name == layout.TEMPLATE_TASK_3
    rows = ranking_rows(sources) if is_ranking else pair_rows(sources)
    path = template_dir / name
    record_path = path.with_name(layout.RECORD_OF_FILE[name])
    with writing.atomic_write(record_path, path) as (record_file, file):
        writing.write_csv_to(file, rows)
        # The record holds fingerprints of the template and of the files it was made from. The
        # template is moved to `path` only at the end of this block, so take its fingerprint from
        # the open `file`.
        this_process = provenance.this_process(
            folder=template_dir, files={path: file}, made_from=sources
        )
        # data/generate_sample.py builds the templates too, and then `this_process` names that
        # script. The record of a template shall not depend on which script has built it, so it
        # always names this script.
        record_of_template = Provenance(
            script="tools/templates.py",
            options={},
            seconds=0.0,
            origin=this_process.origin,
            files=this_process.files,
            made_from=this_process.made_from,
        )
        record_file.write(record_of_template.as_json())


def ranking_rows(sources: Sequence[Path]) -> pd.DataFrame:
    """Return the rows of the template of task 3: every question, with an empty rank."""
    rows = pd.concat([reading.read_table(source, [schema.QUESTION_ID]) for source in sources])
    rows = rows.sort_values("QuestionId", kind="stable")
    rows[schema.RANKING.name] = None
    return rows


def pair_rows(sources: Sequence[Path]) -> pd.DataFrame:
    """Return the rows of the template of tasks 1 and 2: a row number, then the ids of a pair.

    `sources` are the files of the public and of the private test answers. The pairs of both are
    sorted by AnswerId, which mixes them: nobody can tell which pairs are public.
    """
    columns = [schema.QUESTION_ID, schema.USER_ID, schema.ANSWER_ID]
    headers = [reading.read_header(reading.file_source(source)) for source in sources]
    if all(schema.NUMBER_OF_OPTIONS.name in header for header in headers):
        columns.append(schema.NUMBER_OF_OPTIONS)
    rows = pd.concat([reading.read_table(source, columns) for source in sources])
    rows = rows.sort_values("AnswerId", kind="stable")
    # As in the official template, the column of row numbers has no name.
    rows.insert(0, "", range(len(rows)))
    return rows


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_folder(parser, "--input_dir", layout.DATA_DIR)
    cli.add_folder(parser, "--output_dir", layout.TEMPLATE_DIR)
    return parser


def main() -> None:
    """Read the command line and build the templates."""
    options = build_parser().parse_args()
    left_out = build_templates(options.input_dir, options.output_dir)
    print(f"templates in {cli.show(options.output_dir)}")
    for text in left_out:
        print(f"left out: {text}")


if __name__ == "__main__":
    cli.run(main)
