"""Loops repeat until their head is stable."""

import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
data = [torch.ones(4) for _ in range(8)]

total = 0.0
for x in data:
    reveal(x)  # revealed: Tensor[host, detached]
    y = model(x.cuda())
    total = total + y.sum()
reveal(total)  # revealed: Tensor[gpu, attached]
reveal(y)  # revealed: Tensor[gpu, attached]

state = torch.zeros(4)
for x in data:
    carried = state
    state = model(x.cuda())
reveal(carried)  # revealed: Tensor[gpu, attached]

# three rounds: c needs b's second value, which needs a's
a = b = c = torch.zeros(1, device="cuda")
for x in data:
    c = b
    b = a
    a = model(x.cuda())
reveal(c)  # revealed: Tensor[gpu, attached]

for index, x in enumerate(data):
    reveal(index)  # revealed: Number
    reveal(x)  # revealed: Tensor[host, detached]
for x, k in zip(data, range(3)):
    reveal(k)  # revealed: Number

while True:
    z = torch.ones(1)
    if z.sum() > 3:
        z = z.cuda()
        break
    z = "text"
reveal(z)  # revealed: Tensor[gpu, detached]

for x in data:
    w = x
    if len(w) > 2:
        w = "text"
        continue
    w = x.cuda()
    reveal(w)  # revealed: Tensor[gpu, detached]


def endless():
    while True:
        pass
    reveal(model)


for x in data:
    found = x.cuda()
    break
else:
    found = torch.ones(1)
reveal(found)  # revealed: Tensor[gpu, detached]
