"""The loops."""

import torch
import torch.nn.functional as F


def train_one_epoch(model, loader, optimizer, device):
    total = torch.zeros(1, device=device)
    for x, y in loader:
        reveal(y)  # revealed: Tensor[host, detached, pinned]
        x, y = move((x, y), device)
        reveal(x)  # revealed: Tensor[gpu, detached]
        loss = F.cross_entropy(model(x), y)
        reveal(loss)  # revealed: Tensor[gpu, attached]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item()


def move(batch, device):
    return tuple(t.to(device, non_blocking=True) for t in batch)


@torch.no_grad()
def evaluate(model, loader, device):
    hits = torch.zeros(1, device=device)
    for batch in loader:
        x, y = move(batch, device)
        scores = model(x)
        reveal(scores)  # revealed: Tensor[gpu, detached]
        hits += (scores.argmax(1) == y).sum()
    return hits
