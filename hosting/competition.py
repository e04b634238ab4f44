"""The competition itself: phases, tasks, leaderboard and pages, as Codabench reads them.

Source of the format: codalab/codabench, src/apps/competitions/unpackers/v2.py, and the serializers
of the leaderboard.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from string import Template
from typing import Any

from common import io, layout
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
# Submissions a day, and in all, of each phase: the private one decides, and is no place to try.
_LIMITS = {"public": (5, 100), "private": (1, 3)}
_DIGITS = 4

PAGES = ("overview", "data", "evaluation", "rules", "terms")


@dataclass(frozen=True)
class Plan:
    """What the organiser wants.

    The last `final_days` are the private phase; the answers are of an `origin`: ``simulated``,
    ``own`` or ``official``. The platform gets those of the private phase only if asked for.
    """

    tasks: tuple[int, ...]
    title: str
    start: date
    end: date
    final_days: int
    origin: str
    contact: str
    private_on_server: bool

    def days(self, phase: str) -> tuple[date, date]:
        """Return the first and the last day of a phase."""
        last_public = self.end - timedelta(days=self.final_days)
        if phase == "public":
            return self.start, last_public
        return last_public + timedelta(days=1), self.end

    def describe_dates(self) -> str:
        """Return both phases in words."""
        first, last = self.days("public")
        return f"public phase from {first} to {last}, private phase to {self.end}"


def write(bundle: Path, plan: Plan, facts: Mapping[str, str]) -> None:
    """Write competition.yaml, the logo and the pages, with facts for the places in them."""
    text = yaml.safe_dump(describe(plan), sort_keys=False, allow_unicode=True, width=100)
    io.write_text(bundle / "competition.yaml", text)
    (bundle / LOGO).write_bytes((HERE / LOGO).read_bytes())
    # How the tasks share the answers.
    parts = ["parts_pairs"] if {1, 2} & set(plan.tasks) else []
    if parts and {3, 4} & set(plan.tasks):
        parts.append("parts_own" if plan.origin == "own" else "parts_separate")
    known = {
        **facts,
        "title": plan.title,
        "dates": plan.describe_dates(),
        "tasks": "\n".join(_read_page(f"task_{task}") for task in plan.tasks),
        "scores": "\n".join(_read_page(f"score_{task}") for task in plan.tasks).rstrip(),
        "parts": "\n".join(map(_read_page, parts)).rstrip(),
        "one_zip": _read_page("one_zip") if len(plan.tasks) > 1 else "",
        # What makes a first submission, and checks it.
        "sample": _read_page(f"sample_{plan.tasks[0]}").rstrip("\n"),
        "origin": _read_page(f"origin_{plan.origin}"),
        "contact": f"\nQuestions: {plan.contact}\n" if plan.contact else "",
        "public_limits": "{} a day, {} in all".format(*_LIMITS["public"]),
        "private_limits": "{} a day, {} in all".format(*_LIMITS["private"]),
    }
    for name in PAGES:
        page = Template(_read_page(name)).substitute(known)
        io.write_text(bundle / "pages" / f"{name}.md", page)


def _read_page(name: str) -> str:
    return (HERE / "pages" / f"{name}.md").read_text(encoding="utf-8")


def describe(plan: Plan) -> dict[str, Any]:
    """Return what competition.yaml says; every value that has a default is set."""
    same = yaml.safe_load((HERE / "defaults.yaml").read_text(encoding="utf-8"))
    parts = [(task, phase) for phase in layout.PHASES for task in plan.tasks]
    n = len(plan.tasks)
    phases = [
        {
            "index": number,
            "name": phase.capitalize(),
            "description": _PHASES[phase],
            # As text: a time without quotes is cut to midnight.
            "start": f"{plan.days(phase)[0]} 00:00:00",
            "end": f"{plan.days(phase)[1]} 23:59:59",
            "tasks": list(range(number * n, (number + 1) * n)),
            "max_submissions_per_day": _LIMITS[phase][0],
            "max_submissions": _LIMITS[phase][1],
            **same["phase"],
        }
        for number, phase in enumerate(layout.PHASES)
    ]
    return {
        **same["competition"],
        "title": plan.title,
        **({"contact_email": plan.contact} if plan.contact else {}),
        "pages": [
            {"title": name.capitalize(), "file": f"pages/{name}.md"}
            for name in PAGES
            if name != "terms"
        ],
        "tasks": [_task(index, *part) for index, part in enumerate(parts)],
        "phases": phases,
        "leaderboards": [same["leaderboard"] | _leaderboard(plan)],
    }


_PHASES = {
    "public": "Try your ideas: every score is shown at once, on the public part of the answers.",
    "private": "The final result, on answers that no score has been computed on before: hand in "
    "your best. The scores are published after the end.",
}


def _task(index: int, task: int, phase: str) -> dict[str, Any]:
    ingestion = {"ingestion_program": f"ingestion_program/{phase}"}
    ingestion["input_data"] = "input_data/task_4"
    return {
        "index": index,
        "name": f"Task {task}, {phase}",
        "description": f"{TASK_TITLES[task]}, {phase} part",
        "scoring_program": "scoring_program",
        "reference_data": f"reference_data/task_{task}_{phase}",
        "ingestion_only_during_scoring": False,
        **(ingestion if task == 4 else {}),
    }


def _leaderboard(plan: Plan) -> dict[str, Any]:
    columns = [("score", "Score", "desc"), ("standard_error", "Standard error", "asc")]
    if plan.tasks == (4,):
        columns += [(f"mask_{k}", f"Mask {k}", "desc") for k in range(N_MASKS)]
    same = {"precision": _DIGITS, "hidden": False}
    return {
        # Where a phase has several tasks, the platform would keep a participant's best submission
        # of all tasks together, and drop those of the others.
        "submission_rule": "Force_Best" if len(plan.tasks) == 1 else "Force_Latest_Multiple",
        "columns": [
            {"index": index, "key": key, "title": title, "sorting": sorting, **same}
            for index, (key, title, sorting) in enumerate(columns)
        ],
    }
