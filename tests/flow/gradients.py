"""What is attached to the autograd graph, and what detaches."""

import torch
from torch import nn
import torch.nn.functional as F

model = nn.Linear(4, 4).cuda()
x = torch.ones(4, device="cuda")
out = model(x)
reveal(out)  # revealed: Tensor[gpu, attached]
reveal(out.detach())  # revealed: Tensor[gpu, detached]
reveal(out.data)  # revealed: Tensor[gpu, detached]
reveal(out.argmax(dim=-1))  # revealed: Tensor[gpu, detached]
reveal(out > 0)  # revealed: Tensor[gpu, detached]
reveal(out.sum().item())  # revealed: Number
reveal(out.detach().cpu().numpy())  # revealed: Array
reveal(out.cpu())  # revealed: Tensor[host, attached]
loss = F.cross_entropy(out, x.long())
reveal(loss)  # revealed: Tensor[gpu, attached]
reveal(loss * 0.5 + 1)  # revealed: Tensor[gpu, attached]
reveal(torch.stack([loss, loss]).mean())  # revealed: Tensor[gpu, attached]
criterion = nn.CrossEntropyLoss()
reveal(criterion(out, x.long()))  # revealed: Tensor[gpu, attached]

with torch.no_grad():
    reveal(model(x))  # revealed: Tensor[gpu, detached]
    with torch.enable_grad():
        reveal(model(x))  # revealed: Tensor[gpu, attached]
with torch.inference_mode():
    reveal(model(x))  # revealed: Tensor[gpu, detached]
with torch.set_grad_enabled(False):
    reveal(model(x))  # revealed: Tensor[gpu, detached]
with torch.autocast("cuda"):
    reveal(model(x))  # revealed: Tensor[gpu, attached]
reveal(model(x))  # revealed: Tensor[gpu, attached]

weights = torch.ones(4, device="cuda", requires_grad=True)
reveal(weights)  # revealed: Tensor[gpu, attached]
reveal(weights * x)  # revealed: Tensor[gpu, attached]
reveal(weights.grad)  # revealed: Tensor[gpu, detached]


@torch.no_grad()
def decorated(batch):
    reveal(model(batch))  # revealed: Tensor[gpu, detached]


@torch.inference_mode
def bare(batch):
    reveal(model(batch))  # revealed: Tensor[gpu, detached]


def inner(batch):
    reveal(model(batch))  # revealed: Tensor[gpu, detached]


def outer(batch):
    with torch.no_grad():
        inner(batch)


decorated(x), bare(x), outer(x)
torch.set_grad_enabled(False)
reveal(model(x))  # revealed: Tensor[gpu, detached]
