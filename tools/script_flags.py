"""Tell which flags let the scripts of a folder predict answers that are known, and score them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ScriptFlags:
    """Flags of a folder's sample models, and of its local evaluation."""

    predict: tuple[str, ...]
    score: tuple[str, ...] = ()


# In tasks 1, 2, 4 and in most related challenges, a model predicts the local split with --local.
LOCAL_SPLIT = ScriptFlags(predict=("--local",))
# The other folders, by their names.
EXCEPTIONS = {
    # Task 3 has no local split: a ranking uses all answers, and the experts of the public phase
    # score it.
    "task_3": ScriptFlags(predict=(), score=("--phase", "public")),
    # These models predict the folds of the local split without any flag.
    "student_response": ScriptFlags(predict=()),
}


def flags_of(folder: Path) -> ScriptFlags:
    """Return the flags for the scripts in the folder of a task or of a related challenge."""
    return EXCEPTIONS.get(folder.name, LOCAL_SPLIT)
