"""The modules of the map of misconceptions, which tests import."""

import sys

from run_scripts import ROOT

# Add the folder task_2 to the search path for modules only during this import. The sample models of
# all tasks have the same names, so a test could otherwise import a model of the wrong task.
sys.path.append(str(ROOT / "task_2"))
import misconceptions  # noqa: F401

sys.path.remove(str(ROOT / "task_2"))
