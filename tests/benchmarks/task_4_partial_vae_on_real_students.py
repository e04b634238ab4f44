"""The partial VAE of task 4 on real answers: cross-validation, then the public test set.

Run:     KIT_REAL_DATA=… python tests/benchmarks/task_4_partial_vae_on_real_students.py
         KIT_REAL_DATA=… python tests/benchmarks/task_4_partial_vae_on_real_students.py --public
Writes:  a table to the terminal

The students, folds and masks are those of task_4_real.py, so that the tables can be compared.
"""

import task_4_real

from common import cli, layout


def main() -> None:
    """Score the package task_4/pytorch as task_4_real.py scores another."""
    task_4_real.PACKAGE = layout.ROOT / "task_4" / "pytorch"
    task_4_real.main()


if __name__ == "__main__":
    cli.run(main)
