"""Nothing here speaks of an accelerator: a device that the caller chooses may be any."""

import torch
from torch import nn

model = nn.Linear(2, 2)
reveal(model(torch.ones(2)))  # revealed: Tensor[host, attached]


def train(batch, device, optimizer):
    reveal(device)  # revealed: Device[?]
    loss = model(batch.to(device)).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
