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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common import charts, cli, io, layout, made, metadata, pages
from common.errors import InputError

from tqdm import tqdm

if TYPE_CHECKING:
    from exploration import Part
    from exploration_charts import Figure

TASKS = ("1/2", "3/4")
PAGE_NAME, SIMULATED_PAGE_NAME = "explore.html", "explore_simulated.html"
# Charts that may be files of their own, and what is written above them.
PICTURES = {
    "difficulty.svg": ("How difficult the questions are", "how difficult the questions are"),
    "confidence.svg": (
        "Confidence and correctness",
        "share right (dot) for each confidence stated (diamond)",
    ),
}


@dataclass(frozen=True)
class Files:
    """The files of a group of tasks, and which metadata are not there, or left out and why."""

    tasks: str
    train: Path
    simulated: bool
    metadata: dict[str, Path]
    absent: list[str]
    foreign: list[str]


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
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
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
    # Importing it takes a while, which faults and `--help` do without.
    from exploration import N_STEPS, read_part

    # The last step draws the charts.
    with tqdm(total=len(files) * N_STEPS + 1, unit="step", disable=None, leave=False) as bar:
        parts = [read_part(each, bar) for each in files]
        bar.set_description("charts")
        texts = make_pages(found, parts, options.output_dir)
        bar.update()
    if options.pictures:
        simulated = next(part for part in parts if part.files.simulated)
        drawn = draw_pictures(simulated)
        texts |= {options.pictures / name: text for name, text in drawn.items()}
    with io.atomic_write(*texts) as opened:
        for file, text in zip(opened, texts.values(), strict=True):
            file.write(text.encode())
    for path in texts:
        print(f"written: {cli.show(path)}")


def find_files(folder: Path, tasks: str) -> Files | None:
    """Find the files of tasks ``1/2`` or ``3/4``; None if there are no training answers."""
    ending = f"task_{tasks.replace('/', '_')}.csv"
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not io.is_there(train):
        return None
    io.require_file(train)
    simulated = made.is_simulated(train)
    found, absent, foreign = {}, [], []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif made.is_simulated(path) != simulated:
            foreign.append(name)
        else:
            found[kind] = path
    return Files(tasks, train, simulated, found, absent, foreign)


def make_pages(
    found: Mapping[str, Files | None], parts: "Sequence[Part]", output_dir: Path
) -> dict[Path, str]:
    """Return the pages to be written: real answers, then simulated ones."""
    texts = {}
    for simulated in (False, True):
        own = [part for part in parts if part.files.simulated == simulated]
        if not own:
            continue
        other_name = PAGE_NAME if simulated else SIMULATED_PAGE_NAME
        notes = [
            f"Tasks {part.files.tasks} are not on this page, being "
            f"{'not ' * simulated}simulated: see {other_name}."
            for part in parts
            if part not in own
        ]
        name = SIMULATED_PAGE_NAME if simulated and notes else PAGE_NAME
        notes += [
            f"Tasks {tasks} are not on this page: "
            f"train_data/train_task_{tasks.replace('/', '_')}.csv is not there."
            for tasks, files in found.items()
            if files is None
        ]
        texts[output_dir / name] = pages.render(
            "explore.html",
            title="A look at the simulated data" if simulated else "A look at the data",
            tab="",
            simulated=simulated,
            notes=notes,
            parts=own,
            draw=draw,
        )
    return texts


def draw(figure: "Figure", tasks: str) -> str:
    """Return a figure's chart as HTML; its label is unique on the page."""
    title, chart, _ = figure
    return pages.Html(chart(label=f"Tasks {tasks}: {title}"))


def draw_pictures(part: "Part") -> dict[str, str]:
    """Return a few charts of simulated answers as SVG files, by name."""
    figures = {figure[0]: figure for each in part.sections.values() for figure in each.figures}
    return {
        name: charts.picture(figures[title][1](label=""), f"Simulated data: {heading}")
        for name, (title, heading) in PICTURES.items()
        if title in figures
    }


if __name__ == "__main__":
    cli.run(main)
