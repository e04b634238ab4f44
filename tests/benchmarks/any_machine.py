"""Score every sample model with the linear algebra of other processors, and with other seeds.

Run:     python tests/benchmarks/any_machine.py --results any_machine.csv
         … --samples debiasing partial_vae      only samples with one of these words in their name
Writes:  every score into the file of results as soon as it is there, so that a stopped run goes on
         where it ended. Prints the table of any_machine.md.

Libraries choose their instructions by the processor. Environment variables make them choose the
instructions of an older processor: OPENBLAS_CORETYPE for the linear algebra of NumPy and SciPy,
NPY_DISABLE_CPU_FEATURES for NumPy's loops, ATEN_CPU_CAPABILITY, MKL_ENABLE_INSTRUCTIONS and
ONEDNN_MAX_CPU_ISA for PyTorch. All samples run on small simulated data in a copy of the kit. A
sample passes if the spread of its scores over all machines is at most the standard deviation of its
score over seeds. A sample without a seed must have the same score everywhere. The script runs only
on Linux on x86-64.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common import cli, layout
from common.errors import InputError
from tools.quickstart.steps import is_blend

import numpy as np
from running import short_name
from tqdm import tqdm

SEEDS = range(1, 6)
THREADS = (1, 2)
# A run imitates a processor, and OpenBLAS's name of this processor is the run's kernel. Runs that
# try other seeds imitate no processor; their kernel is THIS_MACHINE.
THIS_MACHINE = "this machine"
FIELDS = ("sample", "kernel", "threads", "seed", "score")


@dataclass(frozen=True)
class Processor:
    """Settings that make libraries compute as on an older processor.

    Attributes
    ----------
    kernel
        OpenBLAS's name of the processor.
    numpy_features
        The groups of instructions that NumPy may use besides those that it always uses.
    torch, mkl, onednn
        The newest instructions that PyTorch, Intel's MKL and oneDNN may use.
    """

    kernel: str
    numpy_features: frozenset[str]
    torch: str
    mkl: str
    onednn: str

    def environment(self) -> dict[str, str]:
        """Return the environment variables."""
        found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
        disabled = [name for name in found if name not in self.numpy_features]
        return {
            "OPENBLAS_CORETYPE": self.kernel,
            "NPY_DISABLE_CPU_FEATURES": " ".join(disabled),
            "ATEN_CPU_CAPABILITY": self.torch,
            "MKL_ENABLE_INSTRUCTIONS": self.mkl,
            "ONEDNN_MAX_CPU_ISA": self.onednn,
        }


OLD = frozenset[str]()
PROCESSORS = (
    Processor("Prescott", OLD, "default", "SSE4_2", "SSE41"),
    Processor("Nehalem", OLD, "default", "SSE4_2", "SSE41"),
    Processor("Sandybridge", OLD, "default", "AVX", "AVX"),
    Processor("Haswell", frozenset({"X86_V3"}), "avx2", "AVX2", "AVX2"),
    Processor("SkylakeX", frozenset({"X86_V3", "X86_V4"}), "avx512", "AVX512", "AVX512_CORE"),
)


PROCESSOR_BY_KERNEL = {processor.kernel: processor for processor in PROCESSORS}


@dataclass(frozen=True)
class Sample:
    """A sample model: its name, and the commands of the model and of its evaluation."""

    name: str
    model: tuple[str, ...]
    evaluation: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One run of a sample model, as in a row of the file of results."""

    sample: str
    kernel: str
    threads: str
    # The seed as text, or the empty text for the default seed.
    seed: str


def main() -> None:
    """Run the sample models wherever a score is missing in the file of results; print the table."""
    p = cli.parser(__doc__)
    p.add_argument("--results", type=Path, required=True, metavar="FILE", help="CSV of all scores")
    p.add_argument("--samples", nargs="+", default=[""], metavar="NAME", help="default: all")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kit = copy_kit(Path(folder) / "kit")
        # The default of --samples is an empty word, which every name contains.
        samples = [
            sample
            for sample in find_samples(kit)
            if any(word in sample.name for word in options.samples)
        ]
        prepare_data(kit)
        scores = read_scores(options.results)
        missing = []
        for sample in samples:
            all_runs = runs_of(sample, is_seeded=has_seed(kit, sample))
            missing += [(sample, run) for run in all_runs if run not in scores]
        for sample, run in tqdm(missing, "runs", disable=None):
            scores[run] = score(kit, sample, run)
            append_score(options.results, run, scores[run])
    print_table([sample.name for sample in samples], scores)


# ---- The samples -----------------------------------------------------------------------------


def copy_kit(destination: Path) -> Path:
    """Copy the kit without data, results, weights and environments."""
    ignored = shutil.ignore_patterns(
        *(".*", "__pycache__", "*.egg-info", "train_data", "metadata", "test_data", "test_input"),
        *("test_output", "images", "submissions", "submission_*.csv", "model_task_4*", "tests"),
        "SIMULATED.json",
    )
    shutil.copytree(layout.ROOT, destination, ignore=ignored)
    return destination


def find_samples(kit: Path) -> list[Sample]:
    """Return the sample models of all tasks and related challenges that are to be compared."""
    samples = []
    for script in sorted(kit.glob("task_[12]/sample_model_*.py")):
        # Leave out the blend: it averages the predictions of other samples of this list, and takes
        # several times as long.
        if is_blend(script):
            continue
        samples.append(describe_script(kit, script, model_flags=("--local",)))
    for script in sorted(kit.glob("task_3/sample_model_*.py")):
        # Task 3 is scored by the experts' judgements of the public phase, not on its local split.
        samples.append(describe_script(kit, script, evaluation_flags=("--phase", "public")))
    for script in sorted(kit.glob("task_4/*/train_model.py")):
        package = script.parent.relative_to(kit).as_posix()
        sample = Sample(
            name=package,
            model=(f"{package}/train_model.py", "--local"),
            evaluation=(f"{package}/local_evaluation.py", "--skip_curve"),
        )
        samples.append(sample)
    for script in sorted(kit.glob("related_challenges/*/sample_model_*.py")):
        # A script without the flag --local needs no flag: it always predicts folds of the training
        # answers.
        model_flags = ("--local",) if "--local" in help_of(script) else ()
        samples.append(describe_script(kit, script, model_flags=model_flags))
    return samples


def describe_script(
    kit: Path,
    script: Path,
    *,
    model_flags: tuple[str, ...] = (),
    evaluation_flags: tuple[str, ...] = (),
) -> Sample:
    """Return the name and the commands of a sample model.

    The model is a single script. The script local_evaluation.py in the same folder evaluates it.
    """
    folder = script.parent.relative_to(kit).as_posix()
    name = f"{script.parent.name}/{short_name(script)}"
    return Sample(
        name=name,
        model=(f"{folder}/{script.name}", *model_flags),
        evaluation=(f"{folder}/local_evaluation.py", *evaluation_flags),
    )


def help_of(script: Path) -> str:
    """Return the output of a script with --help."""
    done = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


def has_seed(kit: Path, sample: Sample) -> bool:
    """Return whether a sample model has a flag --seed."""
    return "--seed" in help_of(kit / sample.model[0])


def prepare_data(kit: Path) -> None:
    """Simulate small data for all tasks and challenges, and split them."""
    for script in ("data/generate_sample.py", "task_1/local_data_split.py"):
        run_in(kit, (script,), {})
    run_in(kit, ("task_4/local_data_split.py",), {})
    for folder in sorted(kit.glob("related_challenges/*/")):
        for name in ("generate_sample.py", "local_data_split.py"):
            if (folder / name).is_file():
                run_in(kit, (f"related_challenges/{folder.name}/{name}",), {})


# ---- The runs --------------------------------------------------------------------------------


def runs_of(sample: Sample, is_seeded: bool) -> Iterator[Run]:
    """Yield the runs of a sample: for each kernel and number of threads, then for each seed.

    The kernel names the processor that a run imitates. `is_seeded` says whether the sample has a
    flag --seed.
    """
    for kernel in kernels_here():
        for threads in THREADS:
            yield Run(sample.name, kernel, str(threads), seed="")
    if is_seeded:
        for seed in SEEDS:
            yield Run(sample.name, THIS_MACHINE, threads="1", seed=str(seed))


def kernels_here() -> list[str]:
    """Return OpenBLAS's names of the processors that this processor can imitate."""
    has_avx512 = "X86_V4" in np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return [p.kernel for p in PROCESSORS if has_avx512 or p.kernel != "SkylakeX"]


def score(kit: Path, sample: Sample, run: Run) -> float:
    """Run a sample model and its evaluation as on the processor `run.kernel`; return the score."""
    environment = {"OMP_NUM_THREADS": run.threads}
    if run.kernel != THIS_MACHINE:
        environment |= PROCESSOR_BY_KERNEL[run.kernel].environment()
    seed_flags = ("--seed", run.seed) if run.seed else ()
    with tempfile.TemporaryDirectory() as folder:
        if sample.name.startswith("task_4/"):
            # The training saves the weights in the folder of the package, and the evaluation finds
            # them there. So there is no flag --submission_dir.
            run_in(kit, (*sample.model, *seed_flags), environment)
            run_in(kit, (*sample.evaluation, "--output_dir", folder), environment)
        else:
            run_in(kit, (*sample.model, *seed_flags, "--output_dir", folder), environment)
            folders = ("--submission_dir", folder, "--output_dir", folder)
            run_in(kit, (*sample.evaluation, *folders), environment)
        (path,) = Path(folder).glob("scores_*.txt")
        first_line = path.read_text(encoding="utf-8").splitlines()[0]
    return float(first_line.removeprefix("score:"))


def run_in(kit: Path, command: tuple[str, ...], environment: dict[str, str]) -> None:
    """Run a script in a copy of the kit, with these environment variables set in addition.

    Raises `InputError` if the script fails.
    """
    done = subprocess.run(
        [sys.executable, *command],
        cwd=kit,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise InputError(f"{' '.join(command)}: ended with exit code {done.returncode}: {reason}")


# ---- The results -----------------------------------------------------------------------------


def read_scores(path: Path) -> dict[Run, float]:
    """Read the scores of earlier runs, if there are any."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        Run(row["sample"], row["kernel"], row["threads"], row["seed"]): float(row["score"])
        for row in rows
    }


def append_score(path: Path, run: Run, value: float) -> None:
    """Append a score to the file of results."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(FIELDS)
        writer.writerow([run.sample, run.kernel, run.threads, run.seed, value])


def print_table(names: list[str], scores: dict[Run, float]) -> None:
    """Print a row for each sample model, with a column for each kernel."""
    columns = ["sample", *kernels_here(), "spread", "deviation over seeds"]
    print(f"| {' | '.join(columns)} | |")
    # The verdict is in a last column, which has no title.
    print("|---" * (len(columns) + 1) + "|")
    for name in names:
        print_row(name, scores)


def print_row(name: str, scores: dict[Run, float]) -> None:
    """Print the scores of a sample model with each kernel, their spread, and a verdict.

    The spread is the largest minus the smallest score over kernels and numbers of threads. The
    verdict is "apart" if the spread exceeds the standard deviation of the score over seeds. For a
    sample without a seed, the verdict is "apart" if the spread is not 0.
    """
    cells = []
    scores_of_machines = []
    for kernel in kernels_here():
        scores_by_threads = [
            scores[Run(name, kernel, str(threads), seed="")] for threads in THREADS
        ]
        cells.append(threads_cell(*scores_by_threads))
        scores_of_machines += scores_by_threads
    spread = max(scores_of_machines) - min(scores_of_machines)
    scores_of_seeds = [value for run, value in scores.items() if run.sample == name and run.seed]
    deviation = float(np.std(scores_of_seeds, ddof=1)) if scores_of_seeds else 0.0
    deviation_cell = f"{deviation:.4f}" if scores_of_seeds else "no seed"
    verdict = "" if spread <= deviation else "**apart**"
    print(f"| {name} | {' | '.join(cells)} | {spread:.4f} | {deviation_cell} | {verdict} |")


def threads_cell(score_of_one_thread: float, score_of_two_threads: float) -> str:
    """Return the score with one thread, and the score with two threads if it differs."""
    one = f"{score_of_one_thread:.4f}"
    two = f"{score_of_two_threads:.4f}"
    return one if one == two else f"{one} / {two}"


if __name__ == "__main__":
    cli.run(main)
