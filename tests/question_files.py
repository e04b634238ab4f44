"""Small files of questions with answers of students, for tests of student responses."""

from collections.abc import Callable
from pathlib import Path

Write = Callable[[str, str | bytes], Path]

FOLDER = "related_challenges/student_response"

# To be filled with the id and the two labels.
TWO_ANSWERS = """<question id="{0}"><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers><studentAnswer id="{0}.1" accuracy="{1}">it is</studentAnswer>
<studentAnswer id="{0}.2" accuracy="{2}"></studentAnswer></studentAnswers></question>"""

GOOD = TWO_ANSWERS.format("a", "correct", "irrelevant")

# To be filled with the question's id, its module, the answer's id and further attributes.
ONE_ANSWER = """<question id="{0}" module="{1}"><questionText>Why?</questionText>
<referenceAnswers><referenceAnswer id="r">Because.</referenceAnswer></referenceAnswers>
<studentAnswers><studentAnswer id="{2}"{3}>it is</studentAnswer></studentAnswers></question>"""
