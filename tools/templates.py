"""Build the CSV templates of submissions from the files in data/.

    python -m tools.templates

Builds what can be built and reports what it left out. `submission_task_1_2.csv` holds the pairs of
the public and the private test of tasks 1 and 2 together; `submission_task_3.csv` holds every
question of tasks 3 and 4 with an empty rank. It works alike for official and simulated files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import cli, io, layout, made, schema
from common.errors import InputError
from common.io import read_columns
from common.made import Made

import numpy as np


def build_templates(
    data_dir: Path = layout.DATA_DIR, template_dir: Path = layout.TEMPLATE_DIR
) -> list[str]:
    """Build the templates whose files are there.

    Parameters
    ----------
    data_dir
        A folder laid out like `data/`, official or simulated.
    template_dir
        Where the templates go; made if missing.

    Returns
    -------
    list of str
        For each template that was left out, which one and why.

    Raises
    ------
    InputError
        If there is no file to build any template from, or a file is faulty.
    """
    test_dir, metadata_dir = data_dir / layout.TEST_DIR.name, data_dir / layout.METADATA_DIR.name
    left_out = []
    plans: tuple[tuple[str, list[Path], Callable[[Path, Path], None]], ...] = (
        (
            layout.TEMPLATE_TASK_1_2,
            [test_dir / layout.test_answers_name(1, phase) for phase in layout.PHASES],
            build_pair_template,
        ),
        (
            layout.TEMPLATE_TASK_3,
            [metadata_dir / layout.QUESTION_METADATA_TASK_3_4],
            build_ranking_template,
        ),
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


def build_pair_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of tasks 1 and 2, as `build_templates`.

    Columns: an unnamed index that counts rows from 0, QuestionId, UserId, AnswerId. Rows are sorted
    by AnswerId, so that nothing separates public from private pairs.
    """
    wanted = (schema.QUESTION_ID, schema.USER_ID, schema.ANSWER_ID)
    test_dir = data_dir / layout.TEST_DIR.name
    files = [test_dir / layout.test_answers_name(1, phase) for phase in layout.PHASES]
    phases = [read_columns(path, wanted) for path in files]
    pairs = {
        column.name: np.concatenate([phase[column.name] for phase in phases]) for column in wanted
    }
    order = np.argsort(pairs[schema.ANSWER_ID.name], kind="stable")
    index = np.arange(len(order), dtype=np.int32)
    columns = {"": index, **{name: values[order] for name, values in pairs.items()}}
    _write(template_dir / layout.TEMPLATE_TASK_1_2, columns, files)


def build_ranking_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of task 3, sorted by QuestionId, as `build_templates`."""
    path = data_dir / layout.METADATA_DIR.name / layout.QUESTION_METADATA_TASK_3_4
    questions = read_columns(path, (schema.QUESTION_ID,))
    ids = np.sort(questions[schema.QUESTION_ID.name])
    columns = {schema.QUESTION_ID.name: ids, schema.RANKING.name: None}
    _write(template_dir / layout.TEMPLATE_TASK_3, columns, [path])


def _write(path: Path, columns: Mapping[str, Any], made_from: Sequence[Path]) -> None:
    """Write a template and the stamp that says what it was built from."""
    stamp = path.with_name(layout.STAMP_OF_FILE[path.name])
    with io.atomic_write(stamp, path) as (stamp_file, file):
        io.write_csv_to(file, columns)
        # Also where data/generate_sample.py builds them; the same data give the same bytes.
        files = made.this_process(path.parent, {path.name: file}, made_from)
        own = Made("tools/templates.py", {}, 0.0, simulated=files.simulated)
        stamp_file.write(replace(own, files=files.files, made_from=files.made_from).as_json())


def main() -> None:
    """Read the command line and build the templates."""
    parser = cli.parser(__doc__)
    parser.add_argument("--input_dir", type=Path, default=layout.DATA_DIR, help="default: data/")
    parser.add_argument(
        "--output_dir",
        type=Path,
        default=layout.TEMPLATE_DIR,
        help="default: submission_templates/",
    )
    options = parser.parse_args()
    left_out = build_templates(options.input_dir, options.output_dir)
    print(f"templates in {cli.show(options.output_dir)}")
    for text in left_out:
        print(f"left out: {text}")


if __name__ == "__main__":
    cli.run(main)
