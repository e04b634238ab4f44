"""The plan of a competition, and the competition.yaml and pages that describe it."""

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from common import pages, schema, writing
from common.tasks import TASK_4, TASKS

import yaml

HERE = Path(__file__).resolve().parent
TITLE = "Education challenge: diagnostic questions"
# Longest title that the platform's database stores, in characters.
MAX_TITLE = 255
# Default length of the private phase, in days.
FINAL_DAYS = 7
# A folder with files for the organiser only. It is written into BUNDLE_private.zip, the zip that
# the organiser does not upload.
ORGANISER_DIR = "organiser"
YAML_NAME = "competition.yaml"
PUBLIC_DATA = "public_data.zip"
STARTING_KIT = "starting_kit.zip"
LOGO = "logo.png"
# Number of masks of task 4. A mask hides some answers of each student, which are to be predicted.
# An entry is scored once with each mask, and the leaderboard shows the accuracy with each mask.
N_MASKS = 10
# Pages of the competition, each a Markdown template in hosting/pages/.
PAGES = ("overview", "data", "evaluation", "rules", "terms")


class AnswerCounts(NamedTuple):
    """How much a file of answers holds."""

    n_answers: int
    n_students: int
    n_questions: int
    # Largest number of options of a question.
    n_options: int


# Maps the name of each file that participants get to its counts, or to None if the file holds
# metadata, not answers.
PublicFiles = dict[str, AnswerCounts | None]


class Days(NamedTuple):
    """First and last day of a phase."""

    first: date
    last: date


@dataclass(frozen=True)
class Plan:
    """A competition as the organiser wants it."""

    # Numbers of the tasks.
    tasks: tuple[int, ...]
    title: str
    # The days of each phase. The keys are "public" and "private".
    days: dict[str, Days]
    # Source of the answers: "simulated", "own" or "official".
    origin: str
    # E-mail address of the organisers; may be empty.
    contact: str
    # Whether the answers of the private phase are uploaded too.
    private_on_server: bool

    @property
    def dates(self) -> str:
        """The dates of both phases in words."""
        public = self.days["public"]
        end = self.days["private"].last
        return f"public phase from {public.first} to {public.last}, private phase to {end}"


def write(bundle: Path, plan: Plan, public: PublicFiles) -> None:
    """Write competition.yaml, the logo and the pages into the folder of a bundle.

    `public` maps the name of each file that participants get to its numbers of answers, students,
    questions and options, or to None if the file holds metadata.
    """
    description = describe(plan)
    writing.write_files({bundle / YAML_NAME: description})
    (bundle / LOGO).write_bytes((HERE / LOGO).read_bytes())
    # Only the template of competition.yaml states how many submissions a team may make. The pages
    # get these numbers from the finished competition.yaml.
    limits = {}
    for phase in yaml.safe_load(description)["phases"]:
        n_per_day = phase["max_submissions_per_day"]
        n_in_all = phase["max_submissions"]
        limits[phase["name"].lower()] = f"{n_per_day} a day, {n_in_all} in all"
    # The pages state the largest number of options of a question.
    counted = [counts.n_options for counts in public.values() if counts]
    n_options = max(counted, default=schema.N_OPTIONS)
    facts = {"plan": plan, "public": public, "limits": limits, "n_options": n_options}
    for name in PAGES:
        text = _render(f"{name}.md", **facts)
        writing.write_files({bundle / "pages" / f"{name}.md": text})


def describe(plan: Plan) -> str:
    """Return the content of competition.yaml."""
    # Key, title and sorting of each column of the leaderboard: "desc" if larger values are better.
    columns = [("score", "Score", "desc"), ("standard_error", "Standard error", "asc")]
    if plan.tasks == (TASK_4.number,):
        # A mask says which answers are hidden and to be predicted. The accuracy with each mask has
        # a column of its own.
        columns += [(f"mask_{mask}", f"Mask {mask}", "desc") for mask in range(N_MASKS)]
    return _render(
        YAML_NAME,
        plan=plan,
        pages=PAGES,
        titles={number: task.title for number, task in TASKS.items()},
        columns=columns,
        files={"logo": LOGO, "public_data": PUBLIC_DATA, "starting_kit": STARTING_KIT},
    )


def _render(name: str, **facts: Any) -> str:
    """Fill in a template of hosting/pages/: a page in Markdown, or competition.yaml."""
    environment = pages.environment(HERE / "pages", autoescape=False, keep_trailing_newline=True)
    # The template of competition.yaml quotes texts with this filter, which writes them as JSON.
    # This is also valid YAML, whatever characters the text holds.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment.get_template(name).render(facts)
