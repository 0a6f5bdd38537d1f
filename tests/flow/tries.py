"""A handler starts from anywhere in its body."""

import torch

x = torch.ones(1)
try:
    x = x.cuda()
    y = torch.zeros(1, device="cuda")
except RuntimeError:
    reveal(x)  # revealed: Tensor[gpu, detached]
    y = torch.zeros(1)
    raise
else:
    reveal(x)  # revealed: Tensor[gpu, detached]
finally:
    z = torch.ones(2, device="cuda")
reveal(y)  # revealed: Tensor[gpu, detached]
reveal(z)  # revealed: Tensor[gpu, detached]

try:
    import apex
except ImportError:
    apex = None
reveal(apex)  # revealed: Namespace[apex]


def returns_in_try(tensor):
    try:
        return tensor.cuda()
    except RuntimeError:
        return tensor.cuda().detach()
    finally:
        print("done")


reveal(returns_in_try(torch.ones(1)))  # revealed: Tensor[gpu, detached]
