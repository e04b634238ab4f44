"""Several processes that fit one model together, started by `torchrun`, on one machine or more.

    torchrun --nproc_per_node 2 task_1/sample_model_matrix_factorization.py

Every process runs the same script on the same answers, works on its own share of the students, and
adds up with the others what concerns the questions. Without `torchrun` there is one process, and
torch.distributed is not even imported.
"""

import atexit
import os
from typing import Any

import numpy as np
import numpy.typing as npt


class Processes:
    """The processes that share the work: this one alone.

    Attributes
    ----------
    rank
        Number of this process, from 0; only number 0 writes files and shows progress.
    size
        How many there are.
    """

    rank = 0
    size = 1

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up equally shaped arrays over all processes; each gets the same result."""
        return array


class _TorchProcesses(Processes):
    def __init__(self) -> None:
        import torch.distributed

        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
            # Left to the end of the interpreter, gloo's threads abort about one process in twenty.
            atexit.register(torch.distributed.destroy_process_group)
        self.rank = torch.distributed.get_rank()
        self.size = torch.distributed.get_world_size()

    def sum(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        import torch

        tensor = torch.from_numpy(np.array(array))
        torch.distributed.all_reduce(tensor)
        return np.asarray(tensor.numpy())


def join() -> Processes:
    """Join the processes that `torchrun` started; without it, this process is alone."""
    return _TorchProcesses() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Processes()
