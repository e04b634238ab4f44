"""Adam, as PyTorch has it, without a wait for the compiler that PyTorch loads before its first use.

An entry may as well write `torch.optim.Adam`: it learns the same.
"""

import inspect

import torch


class Adam(torch.optim.Adam):
    """PyTorch's own steps, not wrapped so that they can be compiled."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
