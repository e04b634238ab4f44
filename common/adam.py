"""Adam, as PyTorch has it, without a wait for the compiler that PyTorch loads before its first use.

An entry may as well write `torch.optim.Adam`: it learns the same.
"""

import inspect

import torch


class Adam(torch.optim.Adam):
    """The same steps as PyTorch's own. Its methods are wrapped so that they can be compiled, for
    which `torch._dynamo` is imported: a second of processor time, and five where that was never
    imported before. Here nothing is compiled, and what is wrapped is enough.
    """

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
