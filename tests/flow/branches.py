"""Where paths meet, equal facts stay and differing ones become unknown; unbound counts for nothing."""

import sys

import torch

if len(sys.argv) > 1:
    only_here = torch.ones(2, device="cuda")
    same = torch.ones(2, device="cuda")
    mixed = torch.ones(2, device="cuda")
    kinds = torch.ones(2)
    late = None
else:
    same = torch.zeros(2, device="cuda")
    mixed = torch.zeros(2)
    kinds = "text"
    late = torch.zeros(2, device="cuda")
reveal(only_here)  # revealed: Tensor[gpu, detached]
reveal(same)  # revealed: Tensor[gpu, detached]
reveal(mixed)  # revealed: Tensor[gpu, detached]
reveal(kinds)  # revealed: Unknown
reveal(late)  # revealed: Tensor[gpu, detached]


def leaves(flag):
    x = torch.ones(2)
    if flag:
        x = x.cuda()
        return x
    reveal(x)  # revealed: Tensor[host, detached]
    return x


def raises(flag):
    x = torch.ones(2)
    if flag:
        x = "text"
        raise ValueError(x)
    reveal(x)  # revealed: Tensor[host, detached]
    return x


def chain(mode):
    if mode == "a":
        x = torch.ones(2, device="cuda")
    elif mode == "b":
        x = torch.ones(2, device="cuda", requires_grad=True)
    else:
        raise ValueError(mode)
    reveal(x)  # revealed: Tensor[gpu, attached]


def matches(mode):
    match mode:
        case "a":
            x = torch.ones(2, device="cuda")
        case _:
            x = torch.zeros(2, device="cuda")
    reveal(x)  # revealed: Tensor[gpu, detached]


def known():
    debug = False
    x = torch.ones(2)
    if not debug:
        x = x.cuda()
    reveal(x)  # revealed: Tensor[gpu, detached]


def switched_on():
    offload = True
    x = torch.ones(2, device="cuda")
    if offload:
        x = x.cpu()
    reveal(x)  # revealed: Tensor[host, detached]


switched_on(), leaves(1), raises(1), chain("a"), matches("a"), known()
