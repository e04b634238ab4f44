"""Measure time and memory of reading and joining all metadata of tasks 1 and 2 at official size.

Run:     python data/generate_sample.py --size full --output_dir FULL
         python tests/benchmarks/answer_metadata_at_full_size.py --data_dir FULL
         … --repeats 3
Writes:  a table to the terminal

Reads the training answers, then the metadata of each answer, its student and its question. Every
run is a process of its own; medians are printed. Linux and macOS only.
"""

from pathlib import Path

from common import cli, layout, metadata
from common.answers import read_answers

import numpy as np
from running import median_cost, run_script

STEPS = ("training answers", "and answer metadata", "and metadata of students and questions")


def main() -> None:
    """Print time and memory of the first step, the first two and all three of `STEPS`.

    Each measurement runs in a child process, which is this script with the flag --steps.
    """
    p = cli.parser(__doc__)
    p.add_argument("--data_dir", type=Path, required=True, help="where the full data lie")
    p.add_argument("--repeats", type=int, default=1, metavar="N")
    p.add_argument("--steps", type=int, choices=(1, 2, 3), help="only take the first N steps")
    options = p.parse_args()
    if options.steps:
        read(options.data_dir, options.steps)
        return
    print("| what is read | wall | processor | peak memory |\n|---|---|---|---|")
    for number, step in enumerate(STEPS, start=1):
        child_command = [__file__, "--data_dir", options.data_dir, "--steps", number]
        cost = median_cost([run_script(child_command) for _ in range(options.repeats)])
        print(
            f"| {step} | {cost.seconds:.1f} s | {cost.processor_seconds:.1f} s "
            f"| {cost.peak_gb:.1f} GB |",
            flush=True,
        )


def read(data_dir: Path, n_steps: int) -> None:
    """Take the first `n_steps` of `STEPS`.

    The first step reads the training answers, the second the answer metadata, and the third the
    metadata of students and questions. Nothing is returned: `main` measures the time and peak
    memory of the process that reads.
    """
    metadata_dir = data_dir / layout.METADATA_DIR.name
    answers = read_answers(
        data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2, options=True, ids=True
    )
    # Keep all tables in memory until the end: the peak memory is to be that of a program that needs
    # all tables at once.
    in_memory: list[object] = [answers]
    # The metadata of an answer are found by its AnswerId. Answers without AnswerIds have no
    # metadata.
    if n_steps >= 2 and "AnswerId" in answers:
        answer_file = metadata_dir / layout.ANSWER_METADATA_TASK_1_2
        answer_ids = answers["AnswerId"].to_numpy()
        in_memory.append(metadata.read_circumstances(answer_file, answer_ids))
    if n_steps >= 3:
        student_file = metadata_dir / layout.STUDENT_METADATA_TASK_1_2
        student_ids = answers["UserId"].to_numpy()
        in_memory.append(metadata.read_student_metadata(student_file, student_ids))
        tree = metadata.read_subject_tree(metadata_dir / layout.SUBJECT_METADATA)
        question_file = metadata_dir / layout.QUESTION_METADATA_TASK_1_2
        question_ids = np.unique(answers["QuestionId"])
        in_memory.append(metadata.read_question_subjects(question_file, question_ids, tree))


if __name__ == "__main__":
    cli.run(main)
