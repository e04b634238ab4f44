"""The modules of the map of misconceptions, which tests import."""

import sys

from run_scripts import ROOT

# Add the folder task_2 to the search path only for this import. Its sample models have the same
# names as those of other folders, so a test could otherwise import the model of the wrong folder.
sys.path.append(str(ROOT / "task_2"))
import misconceptions  # noqa: F401

sys.path.remove(str(ROOT / "task_2"))
