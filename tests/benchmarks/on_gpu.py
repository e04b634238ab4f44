"""Run the partial VAE at full size, and an isolated entry of task 4, on a GPU.

Run:     python tests/benchmarks/on_gpu.py                     on a machine with a CUDA device
         … --data_dir FULL      full simulated data that are there already
         … --size small         a quick try
Writes:  tables in Markdown to the terminal, for full_size.md; ten minutes in all on one H100

The tables answer three questions. How long do the partial VAEs of tasks 1 and 2 take with --device
cuda, and what do they score on the public phase? Can an entry of task 4 compute on CUDA while the
evaluation isolates it? Do weights that were saved on CUDA play on a processor, with the same score?
Without a CUDA device the script says so and runs nothing.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import cli, layout
from common.answers import read_answers
from common.errors import InputError

import torch
from sample_models_at_full_size import measure

ENTRY = Path(__file__).parent / "gpu_entry"
# Limit of the entry's address space, in GiB. CUDA reserves far more address space than it uses.
MEMORY_LIMIT = 512


def main() -> None:
    """Simulate data if none are given; measure the partial VAE, then an entry of task 4."""
    p = cli.parser(__doc__)
    p.add_argument("--data_dir", type=Path, help="where full simulated data lie")
    p.add_argument("--size", choices=("tiny", "small", "full"), default="full")
    options = p.parse_args()
    if not torch.cuda.is_available():
        raise InputError(
            "PyTorch finds no CUDA device: nothing was run; expected a machine with a GPU"
        )
    print(f"GPU: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    with tempfile.TemporaryDirectory() as folder:
        data_dir = options.data_dir or Path(folder) / "data"
        if options.data_dir is None:
            simulate(data_dir, options.size)
        print_partial_vae(data_dir)
        print_entry(data_dir, Path(folder) / "entry")


def simulate(data_dir: Path, size: str) -> None:
    """Write simulated data into a folder."""
    script = layout.ROOT / "data/generate_sample.py"
    subprocess.run([sys.executable, script, "--size", size, "--output_dir", data_dir], check=True)


def print_partial_vae(data_dir: Path) -> None:
    """Run the partial VAEs of tasks 1 and 2 on the GPU; print accuracy, time and memory."""
    print("| model | accuracy | wall | processor | peak memory |\n|---|---|---|---|---|")
    for task in (1, 2):
        script = layout.ROOT / f"task_{task}/sample_model_partial_vae.py"
        train = data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2
        accuracy, cost = measure(script, train, data_dir, percent=100, flags=["--device", "cuda"])
        print(
            f"| partial VAE, task {task}, CUDA | {accuracy:.4f} | {cost.seconds:.0f} s "
            f"| {cost.processor_seconds:.0f} s | {cost.peak_gb:.1f} GB |",
            flush=True,
        )


def print_entry(data_dir: Path, entry: Path) -> None:
    """Train an entry of task 4 on the GPU; print its scores on the GPU and on the processor.

    The entry predicts the more frequent outcome of each question, so its training only counts
    answers. It plays twice with the same weights. The file model_task_4_device.txt tells it whether
    to predict on the GPU or on the processor.
    """
    train = data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_3_4
    shutil.copytree(ENTRY, entry)
    save_answer_counts(train, entry)
    print(
        "\n| entry of task 4, weights saved on CUDA, computes on | result | wall |\n|---|---|---|"
    )
    for device in ("cuda", "cpu"):
        (entry / "model_task_4_device.txt").write_text(device, encoding="utf-8")
        started = time.perf_counter()
        score = play(entry, data_dir)
        print(f"| {device} | {score} | {time.perf_counter() - started:.0f} s |", flush=True)


def save_answer_counts(train: Path, entry: Path) -> None:
    """Count the answers and right answers of every question on the GPU; save the counts from there.

    The saved tensors say that they belong on a GPU. So an entry must move them to a processor.
    """
    answers = read_answers(train)
    question = torch.tensor(answers["QuestionId"].to_numpy(), device="cuda").long()
    is_right = torch.tensor(answers["IsCorrect"].to_numpy(), device="cuda").float()
    n_answers = torch.bincount(question)
    n_right = torch.bincount(question, is_right).long()
    torch.save({"n_answers": n_answers, "n_right": n_right}, entry / "model_task_4_counts.pt")


def play(entry: Path, data_dir: Path) -> str:
    """Score an entry on the students of the public phase; return the line with its score."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, str(layout.ROOT / "task_4/local_evaluation.py"), str(entry)]
        command += ["--phase", "public", "--input_dir", str(data_dir / layout.TEST_DIR.name)]
        command += ["--memory_limit", str(MEMORY_LIMIT), "--output_dir", output]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{' '.join(command)}: {done.stderr.strip()}")
    (score,) = [line for line in done.stdout.splitlines() if line.startswith("score ")]
    return score


if __name__ == "__main__":
    cli.run(main)
