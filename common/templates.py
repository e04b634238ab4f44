"""Build the CSV templates that a submission fills in from the files in data/.

    python -m common.templates

`submission_task_1_2.csv` holds the pairs of the public and the private test of tasks 1 and 2
together; `submission_task_3.csv` every question of tasks 3 and 4 with an empty rank. Official and
simulated files need the same.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from common import cli, layout, schema
from common.io import read_columns, write_csv


def build_templates(
    data_dir: Path = layout.DATA_DIR, template_dir: Path = layout.TEMPLATE_DIR
) -> None:
    """Build both CSV templates.

    Parameters
    ----------
    data_dir
        A folder laid out like `data/`, official or simulated.
    template_dir
        Where the templates go; made if missing.

    Raises
    ------
    InputError
        If a file that a template is built from is missing or faulty.
    """
    build_pair_template(data_dir, template_dir)
    build_ranking_template(data_dir, template_dir)


def build_pair_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of tasks 1 and 2, as `build_templates`.

    Columns: an unnamed index that counts rows from 0, QuestionId, UserId, AnswerId. Rows are sorted
    by AnswerId, so that nothing tells public from private pairs.
    """
    wanted = (schema.QUESTION_ID, schema.USER_ID, schema.ANSWER_ID)
    phases = [
        read_columns(data_dir / layout.TEST_DIR.name / layout.test_answers_name(1, phase), wanted)
        for phase in layout.PHASES
    ]
    pairs = {
        column.name: np.concatenate([phase[column.name] for phase in phases]) for column in wanted
    }
    order = np.argsort(pairs[schema.ANSWER_ID.name], kind="stable")
    index = np.arange(len(order), dtype=np.int32)
    columns = {"": index, **{name: values[order] for name, values in pairs.items()}}
    write_csv(template_dir / layout.TEMPLATE_TASK_1_2, columns)


def build_ranking_template(data_dir: Path, template_dir: Path) -> None:
    """Build the template of task 3, sorted by QuestionId, as `build_templates`."""
    name = "question_metadata_task_3_4.csv"
    questions = read_columns(data_dir / layout.METADATA_DIR.name / name, (schema.QUESTION_ID,))
    ids = np.sort(questions[schema.QUESTION_ID.name])
    columns = {schema.QUESTION_ID.name: ids, schema.RANKING.name: pa.nulls(len(ids))}
    write_csv(template_dir / layout.TEMPLATE_TASK_3, columns)


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
    build_templates(options.input_dir, options.output_dir)
    print(f"templates in {cli.show(options.output_dir)}")


if __name__ == "__main__":
    cli.run(main)
