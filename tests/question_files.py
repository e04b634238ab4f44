"""For tests of the related challenges: write questions, make commands, and read scores."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from page_reading import Page, read_page

# The type of the fixture `challenge_kit`.
Kits = Callable[[str], Path]

# The flags with which `local_data_split.py` splits the sample of each challenge. The script of
# debiasing needs no flags, since it makes no folds.
SPLITS = {
    "cloze": ["--folds", "3"],
    "debiasing": [],
    "science_exam": ["--folds", "3"],
    "student_response": ["--folds", "3", "--by_question"],
}


def question_file(
    name: object, labels: dict[Any, str], texts: Sequence[str] = ("it is", ""), module: str = "M"
) -> str:
    """Return the XML of a question and of the students' answers to it.

    The keys of `labels` are ids of answers. If the label is empty, the answer has no attribute
    `accuracy`. `texts` holds the wording of the answers, in the same order. Answers without a text
    are left out.
    """
    answers = []
    # `strict=False`, because there may be fewer texts than labels, or more.
    for (answer_id, label), text in zip(labels.items(), texts, strict=False):
        accuracy = f' accuracy="{label}"' if label else ""
        answers.append(f'<studentAnswer id="{answer_id}"{accuracy}>{text}</studentAnswer>\n')
    module_attribute = f' module="{module}"' if module else ""
    return f"""<question id="{name}"{module_attribute}><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers>{"".join(answers)}</studentAnswers></question>"""


def evaluation(challenge: str, folder: Path, *flags: object) -> list[object]:
    """Return the command that scores a submission; all its files lie in the same folder."""
    folders = ("--input_dir", folder, "--submission_dir", folder, "--output_dir", folder)
    return [f"related_challenges/{challenge}/local_evaluation.py", *folders, *flags]


def scores_in(folder: Path) -> dict[str, float]:
    """Return the figures by name from the text file of scores in a folder."""
    (path,) = folder.glob("scores_*.txt")
    pairs = (line.split(":") for line in path.read_text().splitlines())
    return {name: float(value) for name, value in pairs}


def page_in(folder: Path) -> Page:
    """Return the page of scores in a folder."""
    (path,) = folder.glob("scores_*.html")
    return read_page(path.read_text())


def last_record(folder: Path) -> Any:
    """Return the last line of the record of scores in a folder."""
    return json.loads((folder / "results.jsonl").read_text().splitlines()[-1])
