"""Loaders: what a batch is, and whether it lies in pinned memory."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.ones(8, 2), torch.ones(8))
pinned = DataLoader(dataset, batch_size=2, pin_memory=True)
pageable = DataLoader(dataset, batch_size=2)
reveal(pinned)  # revealed: Loader
for x, y in pinned:
    reveal(x)  # revealed: Tensor[host, detached, pinned]
    reveal(x.float())  # revealed: Tensor[host, detached]
    reveal(x.view(-1))  # revealed: Tensor[host, detached, pinned]
    reveal(x.cuda(non_blocking=True))  # revealed: Tensor[gpu, detached]
for x, y in pageable:
    reveal(y)  # revealed: Tensor[host, detached]
for step, (x, y) in enumerate(pinned):
    reveal(step)  # revealed: Number
    reveal(y)  # revealed: Tensor[host, detached, pinned]
for batch in pinned:
    reveal(batch["image"])  # revealed: Tensor[host, detached, pinned]
iterator = iter(pinned)
reveal(next(iterator)[0])  # revealed: Tensor[host, detached, pinned]
reveal(len(pinned))  # revealed: Number
reveal(pinned.dataset)  # revealed: Object[torch.utils.data.TensorDataset]


def build(train):
    return DataLoader(dataset, batch_size=2, shuffle=train, pin_memory=torch.cuda.is_available())


for x, y in build(True):
    reveal(x)  # revealed: Tensor[host, detached, pinned]

options = {"num_workers": 2}
options["pin_memory"] = True
for x, y in DataLoader(dataset, **options):
    reveal(x)  # revealed: Tensor[host, detached, pinned]
on_gpu = TensorDataset(torch.ones(8, 2, device="cuda"))
for (x,) in DataLoader(on_gpu):
    reveal(x)  # revealed: Tensor[gpu, detached]


def train(loader, model):
    model.cuda()
    for image, target in loader:
        reveal(model(image.cuda()))  # revealed: Tensor[gpu, attached]
        print(target.item())


train(pinned, nn.Linear(2, 2))
