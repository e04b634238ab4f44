"""Adam as PyTorch's own, which an entry may use as well, without waiting for its compiler."""

import inspect

import torch


class Adam(torch.optim.Adam):
    """PyTorch's own steps, not wrapped so that they can be compiled."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
