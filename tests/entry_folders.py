"""For tests of task 4: a valid entry, changes that make it invalid, and four students."""

import textwrap
from dataclasses import replace
from pathlib import Path

from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import Rules
from common.adaptive.setting import Setting
from common.sandbox import Limits

import numpy as np
import toy_bundle
from task_4_models import as_reference

# The code of a valid entry.
WELL_BEHAVED = f"import numpy as np\n{toy_bundle.entry()[ENTRY_FILE]}"
# Four students who answered all of 20 questions. Their answers to questions with odd numbers are
# right. Their answers to the last three questions are targets: an entry must predict them.
QUESTION = np.tile(np.arange(20), (4, 1))
STUDENTS = as_reference(QUESTION % 2, QUESTION >= 17)
# The same students with two masks, "a" and "b", so that an entry plays two games. A mask says which
# answers are targets. Here both masks have the same targets.
TWO_MASKS = replace(STUDENTS, targets=dict.fromkeys("ab", STUDENTS.targets["mask"]))


def make_setting(folder: Path) -> Setting:
    """Write `WELL_BEHAVED` and a file of answers; return the setting of a game with this entry."""
    reference = folder / "answers/valid_task_4.csv"
    package = folder / "package"
    for path, text in ((reference, "hidden"), (package / ENTRY_FILE, WELL_BEHAVED)):
        path.parent.mkdir()
        path.write_text(text)
    return Setting(package, reference, None, folder, Rules(), Limits(60, 1 << 30))


def with_entry(setting: Setting, **methods: str) -> Setting:
    """Write the entry `WELL_BEHAVED`, with some of its methods replaced.

    `methods` maps the name of each replaced method to the code of its new body. The code may use
    the arguments `masked_data`, `masked_binary_data` and, except in `predict`, `can_query`.
    """
    code = WELL_BEHAVED
    for name, body in methods.items():
        code += "\nclass Submission(Submission):\n"
        code += f"    def {name}(self, masked_data=0, masked_binary_data=0, can_query=0):\n"
        code += textwrap.indent(body.strip() + "\n", " " * 8)
    (setting.submission / ENTRY_FILE).write_text(code)
    return setting
