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

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from common import cli, io, layout
from common.errors import InputError

from exploration_charts import draw_pictures
from exploration_page import page
from exploration_reading import STEPS, Files, Part, find_files, read_part
from tqdm import tqdm

TASKS = ("1/2", "3/4")
PAGE_NAME, SIMULATED_PAGE_NAME = "explore.html", "explore_simulated.html"


def main() -> None:
    """Read what is there, count it, write the pages."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--data_dir",
        type=Path,
        metavar="DIR",
        default=layout.DATA_DIR,
        help="a folder laid out like data/ (default data)",
    )
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    p.add_argument(
        "--pictures",
        type=Path,
        metavar="DIR",
        help="also write some of the charts as SVG files of their own; only of simulated data",
    )
    options = p.parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    found = {tasks: find_files(options.data_dir, tasks) for tasks in TASKS}
    files = [each for each in found.values() if each is not None]
    if not files:
        raise InputError(
            f"{options.data_dir / layout.TRAIN_DIR.name}: holds neither {layout.TRAIN_TASK_1_2} nor"
            f" {layout.TRAIN_TASK_3_4}; `python data/download.py` fetches the official files, "
            "`python data/generate_sample.py` simulates some"
        )
    if options.pictures and not any(each.simulated for each in files):
        raise InputError(
            f"--pictures: {files[0].train} is not simulated, and no pictures of real answers are "
            "made"
        )
    # The last step draws the pages.
    n_steps = len(files) * len(STEPS) + 1
    with tqdm(total=n_steps, unit="step", disable=None, leave=False) as progress:
        parts = read_parts(files, progress)
        progress.set_description("charts")
        texts = make_pages(found, parts, options.output_dir)
        progress.update()
    if options.pictures:
        simulated = next(part for part in parts if part.files.simulated)
        drawn = draw_pictures(simulated)
        texts |= {options.pictures / name: text for name, text in drawn.items()}
    with io.atomic_write(*texts) as opened:
        for file, text in zip(opened, texts.values(), strict=True):
            file.write(text.encode())
    for path in texts:
        print(f"written: {cli.show(path)}")


def read_parts(files: Sequence[Files], progress: "tqdm[NoReturn]") -> list[Part]:
    """Read and count groups of tasks; move a progress bar by `STEPS` for each."""
    parts: list[Part] = []

    def begin(tasks: str, step: str) -> None:
        progress.update(len(parts) * len(STEPS) + STEPS.index(step) - progress.n)
        progress.set_description(f"tasks {tasks}: {step}")

    for each in files:
        parts.append(read_part(each, partial(begin, each.tasks)))
    progress.update(len(files) * len(STEPS) - progress.n)
    return parts


def make_pages(
    found: Mapping[str, Files | None], parts: Sequence[Part], output_dir: Path
) -> dict[Path, str]:
    """Return the pages to be written: real answers, then simulated ones."""
    kinds = [
        [part for part in parts if part.files.simulated == simulated] for simulated in (False, True)
    ]
    texts = {}
    for own, others in (kinds, kinds[::-1]):
        if not own:
            continue
        simulated = own[0].files.simulated
        other_name = PAGE_NAME if simulated else SIMULATED_PAGE_NAME
        notes = [
            f"Tasks {part.files.tasks} are not on this page, being "
            f"{'' if part.files.simulated else 'not '}simulated: see {other_name}."
            for part in others
        ]
        notes += [
            f"Tasks {tasks} are not on this page: "
            f"train_data/train_task_{tasks.replace('/', '_')}.csv is not there."
            for tasks, files in found.items()
            if files is None
        ]
        name = SIMULATED_PAGE_NAME if simulated and others else PAGE_NAME
        texts[output_dir / name] = page(own, notes)
    return texts


if __name__ == "__main__":
    cli.run(main)
