"""Progress bars on a terminal of 80 columns: each ends at 100 % or says that it stopped early."""

import os
from pathlib import Path

import pytest
from terminal import COLUMNS, run_on_terminal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a terminal as on Unix")

SCRIPTS = {
    "data/generate_sample.py --size tiny": {"simulate": "100%"},
    "task_1/sample_model_item_response.py": {"item response": "stopped early"},
    "task_2/sample_model_matrix_factorization.py --iterations 3": {"fitting": "100%"},
    "task_3/sample_model_partial_vae.py": {"training": "100%"},
    # With a bar inside the bar, which goes when it is done.
    "task_3/question_report.py --question 1 --submission_dir {out}": {},
}


@pytest.mark.parametrize("command", SCRIPTS)
def test_a_bar_ends_honestly_and_fits(command: str, simulated_kit: Path, tmp_path: Path) -> None:
    script, *flags = command.format(out=tmp_path).split()
    environment = {"PYTHONPATH": str(simulated_kit)}
    if "--submission_dir" in flags:
        first = [simulated_kit / "task_3/sample_model_random.py", "--output_dir", tmp_path]
        assert run_on_terminal(first, simulated_kit, environment)[0] == 0
    arguments = [simulated_kit / script, *flags, "--output_dir", tmp_path]
    code, stays, states = run_on_terminal(arguments, simulated_kit, environment)
    assert code == 0, stays
    bars = [state for state in states if "%|" in state]
    assert bars
    assert max(map(len, bars)) <= COLUMNS
    final = {line.split(":")[0]: line for line in stays if "%|" in line}
    assert list(final) == list(SCRIPTS[command])
    for name, said in SCRIPTS[command].items():
        assert said in final[name]
        # Not cut off at the right edge.
        assert final[name].endswith("]")
