"""The competition itself: what the organiser wants, and competition.yaml and pages that say so."""

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from common import pages, writing
from common.tasks import TASK_4, TASKS

import yaml

HERE = Path(__file__).resolve().parent
TITLE = "Education challenge: diagnostic questions"
# As long as the platform's database takes.
MAX_TITLE = 255
FINAL_DAYS = 7
ORGANISER_DIR = "organiser"
YAML_NAME = "competition.yaml"
PUBLIC_DATA, STARTING_KIT, LOGO = "public_data.zip", "starting_kit.zip", "logo.png"
N_MASKS = 10

# Of each file of the public data the numbers of answers, students and questions; None of metadata.
PublicFiles = dict[str, tuple[int, int, int] | None]
PAGES = ("overview", "data", "evaluation", "rules", "terms")


@dataclass(frozen=True)
class Plan:
    """What the organiser wants; `days` are first and last; `origin` simulated, own or official."""

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


def write(bundle: Path, plan: Plan, public: PublicFiles) -> None:
    """Write competition.yaml, the logo and the pages, which describe the public files."""
    described = describe(plan)
    writing.write_files({bundle / YAML_NAME: described})
    (bundle / LOGO).write_bytes((HERE / LOGO).read_bytes())
    limits = {}
    for phase in yaml.safe_load(described)["phases"]:
        a_day, in_all = phase["max_submissions_per_day"], phase["max_submissions"]
        limits[phase["name"].lower()] = f"{a_day} a day, {in_all} in all"
    for name in PAGES:
        text = _render(f"{name}.md", plan=plan, public=public, limits=limits)
        writing.write_files({bundle / "pages" / f"{name}.md": text})


def describe(plan: Plan) -> str:
    """Return what competition.yaml says."""
    columns = [("score", "Score", "desc"), ("standard_error", "Standard error", "asc")]
    if plan.tasks == (TASK_4.number,):
        columns += [(f"mask_{k}", f"Mask {k}", "desc") for k in range(N_MASKS)]
    files = {"logo": LOGO, "public_data": PUBLIC_DATA, "starting_kit": STARTING_KIT}
    titles = {number: task.title for number, task in TASKS.items()}
    return _render(YAML_NAME, plan=plan, pages=PAGES, titles=titles, columns=columns, files=files)


def _render(name: str, **facts: Any) -> str:
    environment = pages.environment(HERE / "pages", autoescape=False, keep_trailing_newline=True)
    # JSON is YAML.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment.get_template(name).render(facts)
