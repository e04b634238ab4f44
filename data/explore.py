"""Look at the data: write one page about whatever lies in data/, official or simulated.

Answers per student and question, difficulty, options and distractors, when answers were given,
quizzes and groups, confidence, the tree of subjects, students, and what is missing: each chart
with a sentence on how to read it. Only training answers are counted. What is not there is left out.

Run:     python data/explore.py
         python data/explore.py --data_dir DIR --output_dir DIR
Writes:  data/test_output/explore.html. Real and simulated answers never share a page: where tasks
         1/2 are real and tasks 3/4 simulated, or the other way round, explore.html has the real
         ones and explore_simulated.html the others.
"""

from pathlib import Path
from typing import Any

from common import charts, cli, io, layout, made, metadata, pages
from common.errors import InputError

from exploration import FEW_ANSWERS, N_STEPS, read_part
from tqdm import tqdm

TASKS = ("1/2", "3/4")
PAGE_NAMES = ("explore.html", "explore_simulated.html")


def main() -> None:
    """Read what is there, count it, write the pages."""
    p = cli.parser(__doc__)
    cli.add_folder(p, "--data_dir", layout.DATA_DIR, "a folder laid out like data/")
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    options = p.parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    parts = [part for tasks in TASKS if (part := find_part(options.data_dir, tasks))]
    if not parts:
        raise InputError(
            f"{options.data_dir / layout.TRAIN_DIR.name}: holds neither {layout.TRAIN_TASK_1_2} nor"
            f" {layout.TRAIN_TASK_3_4}; `python data/download.py` fetches the official files, "
            "`python data/generate_sample.py` simulates some"
        )
    texts = {}
    # The last step draws the charts.
    with tqdm(total=len(parts) * N_STEPS + 1, unit="step", disable=None, leave=False) as bar:
        for part in parts:
            part |= read_part(part["tasks"], part["paths"], bar)
        bar.set_description("charts")
        # Real answers, then simulated ones.
        for simulated in sorted({part["simulated"] for part in parts}):
            others = [part for part in parts if part["simulated"] != simulated]
            name = PAGE_NAMES[simulated and bool(others)]
            texts[options.output_dir / name] = pages.render(
                "explore.html",
                title="A look at the simulated data" if simulated else "A look at the data",
                tab="",
                simulated=simulated,
                others=others,
                other_name=PAGE_NAMES[not simulated],
                without=[tasks for tasks in TASKS if tasks not in [p["tasks"] for p in parts]],
                parts=[part for part in parts if part["simulated"] == simulated],
                few=FEW_ANSWERS,
                compact=charts.compact,
            )
        bar.update()
    with io.atomic_write(*texts) as opened:
        for file, text in zip(opened, texts.values(), strict=True):
            file.write(text.encode())
    for path in texts:
        print(f"written: {cli.show(path)}")


def find_part(folder: Path, tasks: str) -> dict[str, Any] | None:
    """Find the files of tasks ``1/2`` or ``3/4``, and say which metadata are not there, or foreign.

    Foreign are simulated ones of real answers, and the other way round. None if there are no
    training answers.
    """
    ending = f"task_{tasks.replace('/', '_')}.csv"
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not io.is_there(train):
        return None
    io.require_file(train)
    simulated = made.is_simulated(train)
    paths: dict[str, Path] = {"train": train}
    absent, foreign = [], []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif made.is_simulated(path) != simulated:
            foreign.append(name)
        else:
            paths[kind] = path
    facts = {"tasks": tasks, "simulated": simulated, "absent": absent, "foreign": foreign}
    return {**facts, "paths": paths}


if __name__ == "__main__":
    cli.run(main)
