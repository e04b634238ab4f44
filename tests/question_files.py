"""What tests of the related challenges share: types, scores, small files of questions."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from page_reading import Page, read_page

# Of the fixture `challenge_kit`.
Kits = Callable[[str], Path]

# How the shared samples are split into folds.
SPLITS = {
    "cloze": ["--folds", "3"], "debiasing": [], "science_exam": ["--folds", "3"],
    "student_response": ["--folds", "3", "--by_question"],
}  # fmt: skip


def question_file(
    name: object, labels: dict[Any, str], texts: Sequence[str] = ("it is", ""), module: str = "M"
) -> str:
    """Return a file with a question and answers to it, with these labels by their ids, or none."""
    answers = []
    for (answer, label), text in zip(labels.items(), texts, strict=False):
        accuracy = f' accuracy="{label}"' if label else ""
        answers.append(f'<studentAnswer id="{answer}"{accuracy}>{text}</studentAnswer>\n')
    own = f' module="{module}"' if module else ""
    return f"""<question id="{name}"{own}><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers>{"".join(answers)}</studentAnswers></question>"""


def evaluation(challenge: str, folder: Path, *flags: object) -> list[object]:
    """Return the command that scores a folder's submission by the files that lie there as well."""
    where = ("--input_dir", folder, "--submission_dir", folder, "--output_dir", folder)
    return [f"related_challenges/{challenge}/local_evaluation.py", *where, *flags]


def scores_in(folder: Path) -> dict[str, float]:
    """Return the figures of the text file in which a score lies, `score` first."""
    (path,) = folder.glob("scores_*.txt")
    pairs = (line.split(":") for line in path.read_text().splitlines())
    return {name: float(value) for name, value in pairs}


def page_in(folder: Path) -> Page:
    """Return the page with the score."""
    (path,) = folder.glob("scores_*.html")
    return read_page(path.read_text())


def last_record(folder: Path) -> Any:
    """Return the last line of the record of scores."""
    return json.loads((folder / "results.jsonl").read_text().splitlines()[-1])
