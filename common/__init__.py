"""What the four tasks share: paths, columns, reading, writing, metrics, submissions, scores."""

import os

# Before a library that reads it is imported: threads that wait for others then sleep. Those that
# turn round and round slow whatever else runs, and a fit beside other work takes several times as
# long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from common import requirements as requirements
