"""PyTorch's Adam without `torch.compile`, whose import takes longer than a small model's training.

The first step of `torch.optim.Adam` imports `torch._dynamo`: as long again as importing PyTorch.
"""

import inspect

import torch


class Adam(torch.optim.Adam):
    """`torch.optim.Adam` with the same arguments and steps, but not for `torch.compile`."""

    # PyTorch wraps these methods in functions that import its compiler; `unwrap` undoes that.
    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    # `step` needs its other wrapper, which does not track gradients.
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
