"""Compare time and memory of the majority script of task 2 with the same job in plain pandas.

Run:     python data/generate_sample.py --size full --output_dir /somewhere
         python tests/benchmarks/majority_against_pandas.py --data_dir /somewhere [--pairs 5]

The script and the job in pandas both read the training file of tasks 1 and 2, predict every pair of
the official template and write the submission. The script also checks every row and writes the zip.
Script and pandas run in turn, each in a process of its own; the ratios are medians over these pairs
of runs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A program in pandas that predicts the most frequent option of each question, as the kit's script
# does.
PANDAS = """
import sys
import pandas as pd
train, template, output = sys.argv[1:]
answers = pd.read_csv(train)
majority = answers.groupby("QuestionId")["AnswerValue"].agg(lambda x: x.value_counts().index[0])
submission = pd.read_csv(template, index_col=0)
submission["AnswerValue"] = submission["QuestionId"].map(majority)
submission.to_csv(output)
"""


def measure(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time in seconds and its peak memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"failed: {' '.join(command[:2])}")
    # `ru_maxrss` is in kilobytes on Linux and in bytes on macOS.
    units_per_mb = 1024 if sys.platform != "darwin" else 1024**2
    return time.perf_counter() - started, usage.ru_maxrss / units_per_mb


def main() -> None:
    """Run the kit's script and pandas in turn; print each pair of runs, then the median ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data_dir", type=Path, default=ROOT / "data", metavar="DIR")
    parser.add_argument("--pairs", type=int, default=5, metavar="N")
    options = parser.parse_args()
    train, template = find_files(options.data_dir)
    # For each pair of runs: time and memory of the kit's script, divided by those of pandas.
    time_ratios = []
    memory_ratios = []
    print(f"{'pair':>6} {'kit s':>8} {'pandas s':>9} {'ratio':>6} "
          f"{'kit MB':>8} {'pandas MB':>10} {'ratio':>6}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        kit_command = [
            sys.executable, str(ROOT / "task_2/sample_model_majority.py"),
            "--input_dir", str(train.parent), "--output_dir", folder,
            "--submission_template_dir", str(template.parent),
        ]  # fmt: skip
        pandas_command = [
            *(sys.executable, "-c", PANDAS),
            *(str(train), str(template), f"{folder}/pandas.csv"),
        ]
        for number in range(1, options.pairs + 1):
            kit_seconds, kit_megabytes = measure(kit_command)
            pandas_seconds, pandas_megabytes = measure(pandas_command)
            time_ratios.append(kit_seconds / pandas_seconds)
            memory_ratios.append(kit_megabytes / pandas_megabytes)
            print(
                f"{number:6} {kit_seconds:8.1f} {pandas_seconds:9.1f} {time_ratios[-1]:6.2f} "
                f"{kit_megabytes:8.0f} {pandas_megabytes:10.0f} {memory_ratios[-1]:6.2f}",
                flush=True,
            )
    time_ratio = statistics.median(time_ratios)
    memory_ratio = statistics.median(memory_ratios)
    print(f"median ratio: {time_ratio:.2f} of the time, {memory_ratio:.2f} of the memory")


def find_files(data_dir: Path) -> tuple[Path, Path]:
    """Return the training file and the template of tasks 1 and 2; exit if one is missing.

    If `data_dir` has no folder of templates, the template is the one in the kit.
    """
    train = data_dir / "train_data/train_task_1_2.csv"
    templates = data_dir / "submission_templates"
    if not templates.exists():
        templates = ROOT / "submission_templates"
    template = templates / "submission_task_1_2.csv"
    for path in (train, template):
        if not path.exists():
            sys.exit(f"{path}: file not found; `python data/generate_sample.py` simulates it")
    return train, template


if __name__ == "__main__":
    main()
