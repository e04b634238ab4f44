"""Task 4: write the zip to upload, after a dry run with no other files than those in the zip.

Run:     python task_4/package.py task_4/numpy    after task_4/numpy/train_model.py
Reads:   the package, and data/train_data/train_task_3_4.csv for the dry run
Writes:  submissions/submission_task_4.zip

The zip holds what is needed to play: submission_model_task_4.py and the files beside it. Left out
are train_model.py and local_evaluation.py (unless another module imports them), common.py, hidden
files and caches; the script prints their names. The dry run unpacks the zip into an empty folder
and plays the ten rounds there, with some training students. It gives no score, because the model
may have learned from these students.

Nothing is written if the name of a saved model does not begin with model_task_4_, as the
challenge's guide asks. There is a warning if the model was trained with --local, and so with fewer
students than possible, and if its code has changed since the training.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from common import cli, layout, writing, zips
from common.adaptive import entry_files, training
from common.adaptive.playing import dry_run
from common.adaptive.setting import Setting, add_game_flags, read_game_flags
from common.adaptive.weights_origin import find_training_doubts, find_weights_origin
from common.errors import InputError, printable
from common.provenance import Provenance


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = training.training_parser(__doc__, several_files=False)
    parser.add_argument("package", type=Path, help="folder of the package, such as task_4/numpy")
    cli.add_folder(parser, "--output_dir", layout.SUBMISSION_DIR)
    parser.add_argument(
        "--output_file", default="submission_task_4.zip", help="default %(default)s"
    )
    add_game_flags(parser)
    return parser


def main() -> None:
    """Collect the files of the package, let it play a game in a dry run, write the zip."""
    options = build_parser().parse_args()
    output = options.output_dir / options.output_file
    files = entry_files.needed_to_play(entry_files.collect(options.package))
    faults = entry_files.list_misnamed(options.package)
    if faults:
        raise InputError(faults[0])
    with tempfile.TemporaryDirectory() as folder:
        # Write a draft of the zip, and let its entry play a game in a dry run. If the dry run
        # fails, no output is written.
        draft = Path(folder) / output.name
        # `atomic_write` yields an open file for each path.
        with writing.atomic_write(draft) as (file,):
            zips.write_zip_to(file, files)
        # Without the flag --more_train_data, there is one training file.
        (train,), metadata_dir = training.training_paths(options)
        # In the dry run, the students to be examined are those of the training file.
        setting = Setting(draft, train=train, reference=train, metadata_dir=metadata_dir)
        dry_run(read_game_flags(options, setting))
        with writing.atomic_write(output) as (file,):
            file.write(draft.read_bytes())
    print(f"dry run: the ten rounds ran in a folder with nothing but {', '.join(sorted(files))}")
    left_out = entry_files.list_left_out(options.package, files)
    if left_out:
        print(f"left out, not needed to play: {printable(', '.join(left_out))}")
    print(f"written: {cli.show(output)} ({output.stat().st_size:,} bytes)")
    # The record that says how the package's weights were trained; None if there is no record.
    training_record = find_weights_origin(options.package).record
    if training_record is not None:
        warn_of_local(options.package, training_record)
        for doubt in find_training_doubts(options.package, training_record):
            print(f"warning: {cli.show(options.package)}: {doubt.sentence}", file=sys.stderr)


def warn_of_local(package: Path, record: Provenance) -> None:
    """Print a warning if the weights of a package were trained with --local.

    `record` says how the weights were trained.
    """
    if "local" not in record.options:
        return
    # Recommend the command that trained the weights, but without --local. Name the script in this
    # package, which may be a copy of the one that was run.
    options = {name: value for name, value in record.options.items() if name != "local"}
    trainer = cli.show((package / Path(record.script).name).resolve())
    # `Provenance.command` is the command line for the script and the options of the record.
    command = replace(record, script=trainer, options=options).command
    print(
        f"warning: {cli.show(package)}: its model was trained with --local and never saw the "
        f"answers of the validation students; `{printable(command)}` learns from all",
        file=sys.stderr,
    )


if __name__ == "__main__":
    cli.run(main)
