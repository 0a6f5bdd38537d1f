"""What a generator yields is what a loop over it draws."""

import torch
from torch import nn

model = nn.Linear(2, 2).cuda()


def batches(n):
    for _ in range(n):
        yield torch.ones(2)


def on_gpu(source):
    for x in source:
        yield x.cuda(non_blocking=True)


def delegating(n):
    yield from batches(n)


for x in batches(3):
    reveal(x)  # revealed: Tensor[host, detached]
for y in on_gpu(batches(3)):
    reveal(y)  # revealed: Tensor[gpu, detached]
for z in delegating(3):
    reveal(z)  # revealed: Tensor[host, detached]
reveal(next(batches(3)))  # revealed: Tensor[host, detached]
reveal(sum(model(b.cuda()).sum() for b in batches(3)))  # revealed: Tensor[gpu, attached]
squares = (v * 2 for v in on_gpu(batches(3)))
reveal(list(squares)[0])  # revealed: Tensor[gpu, detached]
