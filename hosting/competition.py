"""The competition itself: phases, tasks, leaderboard and pages, as Codabench reads them.

Source of the format: codalab/codabench, src/apps/competitions/unpackers/v2.py, and the serializers
of the leaderboard.
"""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from common import io
from common.evaluation.record import TASK_TITLES

import yaml

HERE = Path(__file__).resolve().parent
TITLE = "Education challenge: diagnostic questions"
# As long as the platform's database takes.
MAX_TITLE = 255
FINAL_DAYS = 7
ORGANISER_DIR = "organiser"
# Named in defaults.yaml too.
PUBLIC_DATA, STARTING_KIT, LOGO = "public_data.zip", "starting_kit.zip", "logo.png"
N_MASKS = 10

PAGES = ("overview", "data", "evaluation", "rules", "terms")


@dataclass(frozen=True)
class Plan:
    """What the organiser wants: `days` are the first and the last one of each phase; answers are of
    an `origin`: ``simulated``, ``own`` or ``official``.
    """

    tasks: tuple[int, ...]
    title: str
    days: dict[str, tuple[date, date]]
    origin: str
    contact: str
    private_on_server: bool

    @property
    def dates(self) -> str:
        """Both phases in words."""
        first, last = self.days["public"]
        return f"public phase from {first} to {last}, private phase to {self.days['private'][1]}"


def write(bundle: Path, plan: Plan, public_files: str) -> None:
    """Write competition.yaml, the logo and the pages, which describe the public files."""
    # `--help` does without this import.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    described = describe(plan)
    text = yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=100)
    io.write_text(bundle / "competition.yaml", text)
    (bundle / LOGO).write_bytes((HERE / LOGO).read_bytes())
    environment = Environment(
        loader=FileSystemLoader(HERE / "pages"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    limits = {}
    for phase in described["phases"]:
        a_day, in_all = phase["max_submissions_per_day"], phase["max_submissions"]
        limits[phase["name"].lower()] = f"{a_day} a day, {in_all} in all"
    for name in PAGES:
        page = environment.get_template(f"{name}.md")
        text = page.render(plan=plan, files=public_files, limits=limits)
        io.write_text(bundle / "pages" / f"{name}.md", text)


def describe(plan: Plan) -> dict[str, Any]:
    """Return what competition.yaml says; every value that has a default is set."""
    same = yaml.safe_load((HERE / "defaults.yaml").read_text(encoding="utf-8"))
    tasks: list[dict[str, Any]] = []
    phases: list[dict[str, Any]] = []
    for phase, (start, end) in plan.days.items():
        first = len(tasks)
        for task in plan.tasks:
            about = {
                "index": len(tasks),
                "name": f"Task {task}, {phase}",
                "description": f"{TASK_TITLES[task]}, {phase} part",
                "scoring_program": "scoring_program",
                "reference_data": f"reference_data/task_{task}_{phase}",
                "ingestion_only_during_scoring": False,
            }
            if task == 4:
                about["ingestion_program"] = f"ingestion_program/{phase}"
                about["input_data"] = "input_data/task_4"
            tasks.append(about)
        phases.append({
            "index": len(phases),
            "name": phase.capitalize(),
            # As text: a time without quotes is cut to midnight.
            "start": f"{start} 00:00:00",
            "end": f"{end} 23:59:59",
            "tasks": list(range(first, len(tasks))),
            **same["phases"][phase],
            **same["phase"],
        })  # fmt: skip
    columns = [("score", "Score", "desc"), ("standard_error", "Standard error", "asc")]
    if plan.tasks == (4,):
        columns += [(f"mask_{k}", f"Mask {k}", "desc") for k in range(N_MASKS)]
    names = "index", "key", "title", "sorting", "precision", "hidden"
    board = {
        # Where a phase has several tasks, the platform would keep a participant's best submission
        # of all tasks together, and drop those of the others.
        "submission_rule": "Force_Best" if len(plan.tasks) == 1 else "Force_Latest_Multiple",
        "columns": [
            dict(zip(names, (index, *column, 4, False), strict=True))
            for index, column in enumerate(columns)
        ],
    }
    return {
        **same["competition"],
        "title": plan.title,
        **({"contact_email": plan.contact} if plan.contact else {}),
        "pages": [
            {"title": name.capitalize(), "file": f"pages/{name}.md"}
            for name in PAGES
            if name != "terms"
        ],
        "tasks": tasks,
        "phases": phases,
        "leaderboards": [same["leaderboard"] | board],
    }
