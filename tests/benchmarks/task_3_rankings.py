"""Measure time and memory of the sample models of task 3 on data of official size.

    python data/generate_sample.py --size full --output_dir FOLDER
    python tests/benchmarks/task_3_rankings.py --data_dir FOLDER

Prints wall seconds, processor seconds and peak memory of every script, and of the rank average over
all features. Reading and writing are included. The script runs on Linux and macOS only.
"""

import tempfile
from pathlib import Path

from common import cli, layout

from running import load_module, run_script, short_name


def main() -> None:
    """Run every sample model of task 3 once; print a table of time and memory."""
    p = cli.parser(__doc__)
    p.add_argument("--data_dir", type=Path, default=layout.DATA_DIR, help="default data")
    data_dir = p.parse_args().data_dir
    template_dir = layout.template_dir_of(data_dir)
    # The name and the command of each run.
    scripts = sorted((layout.ROOT / "task_3").glob("sample_model_*.py"))
    runs = [(short_name(script), [str(script)]) for script in scripts]
    rank_average = layout.ROOT / "task_3/sample_model_rank_average.py"
    all_features = load_module(layout.ROOT / "task_3/question_features.py").FEATURES
    command = [str(rank_average), "--features", *all_features]
    runs.append(("rank_average, all features", command))
    print("| model | seconds | processor seconds | peak MB |\n|---|---|---|---|")
    for name, command in runs:
        flags = ["--submission_template_dir", str(template_dir)]
        # The random ranking reads no answers.
        if name != "random":
            flags += ["--input_dir", str(data_dir / layout.TRAIN_DIR.name)]
        # Only the rank averages and the ranking by confidence read metadata.
        if name.startswith(("rank_average", "confidence")):
            flags += ["--metadata_dir", str(data_dir / layout.METADATA_DIR.name)]
        with tempfile.TemporaryDirectory() as output_dir:
            flags += ["--output_dir", output_dir]
            cost = run_script([*command, *flags])
        print(
            f"| {name} | {cost.seconds:.1f} | {cost.processor_seconds:.1f} "
            f"| {1000 * cost.peak_gb:.0f} |"
        )


if __name__ == "__main__":
    cli.run(main)
