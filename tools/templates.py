"""Build the CSV templates of submissions from the files in data/.

    python -m tools.templates

Builds what can be built and reports what it left out. `submission_task_1_2.csv` holds the pairs of
the public and the private test of tasks 1 and 2 together; `submission_task_3.csv` holds every
question of tasks 3 and 4 with an empty rank. It works alike for official and simulated files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from common import cli, io, layout, made, schema
from common.errors import InputError
from common.made import Made

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def build_templates(
    data_dir: Path = layout.DATA_DIR, template_dir: Path = layout.TEMPLATE_DIR
) -> list[str]:
    """Build the templates whose files are in a folder laid out like `data/`.

    Returns for each template that was left out which one and why; none at all is an `InputError`.
    """
    left_out = []
    plans = (
        (layout.TEMPLATE_TASK_1_2, _answers(data_dir), build_pair_template),
        (layout.TEMPLATE_TASK_3, [_questions(data_dir)], build_ranking_template),
    )
    for name, needed, build in plans:
        missing = [path for path in needed if not io.is_there(path)]
        if missing:
            left_out.append(f"{name}, because there is no {cli.show(missing[0])}")
        else:
            build(data_dir, template_dir)
    if len(left_out) == len(plans):
        raise InputError(f"no template can be built: {'; '.join(left_out)}")
    return left_out


def _answers(data_dir: Path) -> list[Path]:
    names = (layout.test_answers_name(1, phase) for phase in layout.PHASES)
    return [data_dir / layout.TEST_DIR.name / name for name in names]


def _questions(data_dir: Path) -> Path:
    return data_dir / layout.METADATA_DIR.name / layout.QUESTION_METADATA_TASK_3_4


def build_pair_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of tasks 1 and 2, as `build_templates`.

    Columns: an unnamed index that counts rows from 0, QuestionId, UserId, AnswerId. Rows are sorted
    by AnswerId, so that nothing separates public from private pairs.
    """
    import pandas as pd

    wanted = (schema.QUESTION_ID, schema.USER_ID, schema.ANSWER_ID)
    paths = _answers(data_dir)
    pairs = pd.concat([io.read_table(path, wanted) for path in paths])
    pairs = pairs.sort_values(schema.ANSWER_ID.name, kind="stable")
    pairs.insert(0, "", np.arange(len(pairs), dtype=np.int32))
    _write(template_dir / layout.TEMPLATE_TASK_1_2, pairs, paths)


def build_ranking_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of task 3, sorted by QuestionId, as `build_templates`."""
    path = _questions(data_dir)
    questions = io.read_table(path, (schema.QUESTION_ID,)).sort_values(schema.QUESTION_ID.name)
    columns = questions.assign(**{schema.RANKING.name: None})
    _write(template_dir / layout.TEMPLATE_TASK_3, columns, [path])


def _write(path: Path, columns: pd.DataFrame, made_from: Sequence[Path]) -> None:
    """Write a template and the record that says what it was built from."""
    place = path.with_name(layout.STAMP_OF_FILE[path.name])
    with io.atomic_write(place, path) as (record, file):
        io.write_csv_to(file, columns)
        # Also where data/generate_sample.py builds them; the same data give the same bytes.
        own = made.this_process(path.parent, {path.name: file}, made_from)
        template = Made("tools/templates.py", {}, 0.0, simulated=own.simulated)
        record.write(replace(template, files=own.files, made_from=own.made_from).as_json())


def main() -> None:
    """Read the command line and build the templates."""
    parser = cli.parser(__doc__)
    cli.add_folder(parser, "--input_dir", layout.DATA_DIR)
    cli.add_folder(parser, "--output_dir", layout.TEMPLATE_DIR)
    options = parser.parse_args()
    left_out = build_templates(options.input_dir, options.output_dir)
    print(f"templates in {cli.show(options.output_dir)}")
    for text in left_out:
        print(f"left out: {text}")


if __name__ == "__main__":
    cli.run(main)
