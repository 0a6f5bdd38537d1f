"""Arguments, defaults, results; one variant per set of arguments."""

from functools import partial

import torch
from torch import nn

model = nn.Linear(2, 2).cuda()
host = torch.ones(2)


def same(x):
    return x


reveal(same(host))  # revealed: Tensor[host, detached]
reveal(same(host.cuda()))  # revealed: Tensor[gpu, detached]
reveal(same(x="text"))  # revealed: Text


def with_defaults(x, device="cuda", *, scale=2.0):
    reveal(scale)  # revealed: Number
    return x.to(device) * scale


reveal(with_defaults(host))  # revealed: Tensor[gpu, detached]
reveal(with_defaults(host, "cpu"))  # revealed: Tensor[host, detached]
reveal(with_defaults(device="cpu", x=host))  # revealed: Tensor[host, detached]


def gathers(*args, **kwargs):
    reveal(args[0])  # revealed: Tensor[host, detached]
    reveal(kwargs["y"])  # revealed: Tensor[gpu, detached]
    return args, kwargs


gathers(host, y=host.cuda())
args = (host, "cuda")
reveal(with_defaults(*args))  # revealed: Tensor[gpu, detached]
options = {"device": "cuda"}
reveal(with_defaults(host, **options))  # revealed: Tensor[gpu, detached]


def pair(x):
    return model(x.cuda()), x.shape[0]


output, size = pair(host)
reveal(output)  # revealed: Tensor[gpu, attached]
reveal(size)  # revealed: Number


def nothing(x):
    x.cuda()


reveal(nothing(host))  # revealed: None


def early(x):
    if x is None:
        return None
    return x.cuda()


reveal(early(host))  # revealed: Tensor[gpu, detached]


def make(device):
    def inner(x):
        return x.to(device)

    return inner


to_gpu = make("cuda")
reveal(to_gpu(host))  # revealed: Tensor[gpu, detached]
reveal((lambda t: t.cuda())(host))  # revealed: Tensor[gpu, detached]
move = partial(with_defaults, device="cuda")
reveal(move(host))  # revealed: Tensor[gpu, detached]


def recursive(x, depth):
    if depth == 0:
        return x
    return recursive(x * 2, depth - 1)


reveal(recursive(host.cuda(), 3))  # revealed: Tensor[gpu, detached]


def annotated(x: torch.Tensor, d: torch.device, n: int = 3):
    loss = x.to(d).sum()
    reveal(n)  # revealed: Number
    reveal(d)  # revealed: Device[gpu]
    print(loss.item())
    loss.backward()


total = 0


def counts(x):
    global total
    total = x.cuda()


counts(host)
reveal(total)  # revealed: Tensor[gpu, detached]
