"""Build the CSV templates of submissions from the files in data/.

    python -m tools.templates

Builds what can be built and reports what it left out. `submission_task_1_2.csv` holds the pairs of
the public and the private test of tasks 1 and 2 together; `submission_task_3.csv` holds every
question of tasks 3 and 4 with an empty rank. It works alike for official and simulated files.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from common import cli, layout, provenance, reading, schema, writing
from common.errors import InputError
from common.provenance import Provenance
from common.tasks import TASK_1

# The files in data/ that each template is built from.
_SOURCES = {
    layout.TEMPLATE_TASK_1_2: [
        f"{layout.TEST_DIR.name}/{TASK_1.answers_name(phase)}" for phase in layout.PHASES
    ],
    layout.TEMPLATE_TASK_3: [f"{layout.METADATA_DIR.name}/{layout.QUESTION_METADATA_TASK_3_4}"],
}


def build_templates(data_dir: Path, template_dir: Path) -> list[str]:
    """Build the templates whose files are there; return which others are left out, and why."""
    left_out = []
    for name, sources in _SOURCES.items():
        missing = [
            data_dir / source for source in sources if not reading.is_there(data_dir / source)
        ]
        if missing:
            left_out.append(f"{name}, because there is no {cli.show(missing[0])}")
        else:
            build_template(name, data_dir, template_dir)
    if len(left_out) == len(_SOURCES):
        raise InputError(f"no template can be built: {'; '.join(left_out)}")
    return left_out


def build_template(name: str, data_dir: Path, template_dir: Path) -> None:
    """Build one template and its record; the order by AnswerId mixes public and private pairs."""
    import pandas as pd

    sources = [data_dir / source for source in _SOURCES[name]]
    is_ranking = name == layout.TEMPLATE_TASK_3
    columns = [schema.QUESTION_ID]
    columns += [] if is_ranking else [schema.USER_ID, schema.ANSWER_ID]
    rows = pd.concat([reading.read_table(source, columns) for source in sources])
    rows = rows.sort_values(columns[-1].name, kind="stable")
    if is_ranking:
        rows[schema.RANKING.name] = None
    else:
        rows.insert(0, "", range(len(rows)))
    path = template_dir / name
    with writing.atomic_write(path.with_name(layout.STAMP_OF_FILE[name]), path) as (record, file):
        writing.write_csv_to(file, rows)
        # Also where data/generate_sample.py builds them; the same data give the same bytes.
        own = provenance.this_process(template_dir, {path: file}, sources)
        template = Provenance("tools/templates.py", {}, 0.0, simulated=own.simulated)
        record.write(replace(template, files=own.files, made_from=own.made_from).as_json())


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
