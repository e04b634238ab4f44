"""The optimiser Adam of PyTorch, without the slow import of PyTorch's compiler.

The first step of `torch.optim.Adam` imports `torch._dynamo`, which takes as long as importing
PyTorch: longer than the training of a small model.
"""

import inspect

import torch


class Adam(torch.optim.Adam):
    """Adam with the same arguments and steps as `torch.optim.Adam`, but without `torch.compile`."""

    # PyTorch wraps these methods in functions that import its compiler. `unwrap` returns the
    # methods without these wrappers.
    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    # `unwrap` also removes the wrapper that switches gradients off during `step`. Switch them off
    # again: autograd must not track the updates.
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
