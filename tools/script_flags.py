"""Tell which flags let the scripts of a folder predict answers that are known, and score them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ScriptFlags:
    """Flags of a folder's sample models, and of its local evaluation."""

    predict: tuple[str, ...]
    score: tuple[str, ...] = ()


# The flags in the folders of tasks 1, 2 and 4 and of the related challenges. With --local, a model
# predicts the answers that the local split has held out. The evaluation needs no flags to compare
# the predictions with these answers.
LOCAL_SPLIT = ScriptFlags(predict=("--local",))
# Folders whose scripts need other flags, by the name of the folder.
EXCEPTIONS = {
    # In task 3, no answers are held out. A model ranks the questions from all answers, and the
    # ranking is compared with the judgements of the experts of the public phase.
    "task_3": ScriptFlags(predict=(), score=("--phase", "public")),
}


def flags_of(folder: Path) -> ScriptFlags:
    """Return the flags for the models and the evaluation in the folder of a task or challenge."""
    return EXCEPTIONS.get(folder.name, LOCAL_SPLIT)
