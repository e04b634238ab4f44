"""The modules of the map of misconceptions, which tests import."""

import sys

from run_scripts import ROOT

# Task 2 leaves the search path again: its sample models have the names of those of other folders.
sys.path.append(str(ROOT / "task_2"))
import misconceptions  # noqa: F401

sys.path.remove(str(ROOT / "task_2"))
