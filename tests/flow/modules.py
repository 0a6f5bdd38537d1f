"""Modules: where they live, and what calling one gives."""

import copy

import torch
import torchvision
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(width, 2) for _ in range(2)])
        self.register_buffer("mean", torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        reveal(self.scale)  # revealed: Tensor[gpu, attached]
        h = self.body(x - self.mean)
        return {"logits": [head(h) for head in self.heads], "features": h.detach(), "count": x.size(0)}


net = Net(4)
net.to("cuda")
reveal(net)  # revealed: Module[gpu]
reveal(net.mean)  # revealed: Tensor[gpu, detached]
reveal(net.scale)  # revealed: Tensor[gpu, attached]
out = net(torch.ones(4, device="cuda"))
reveal(out["features"])  # revealed: Tensor[gpu, detached]
reveal(out["logits"][0])  # revealed: Tensor[gpu, attached]
reveal(out["count"])  # revealed: Number

resnet = torchvision.models.resnet18().cuda()
reveal(resnet)  # revealed: Module[gpu]
reveal(resnet(torch.ones(4).cuda()))  # revealed: Tensor[gpu, attached]
wrapped = nn.parallel.DistributedDataParallel(resnet)
reveal(wrapped)  # revealed: Module[gpu]
reveal(copy.deepcopy(resnet))  # revealed: Module[gpu]
reveal(torch.compile(resnet))  # revealed: Module[gpu]
for parameter in resnet.parameters():
    reveal(parameter)  # revealed: Tensor[gpu, attached]
optimizer = torch.optim.SGD(resnet.parameters(), lr=0.1)
reveal(optimizer)  # revealed: Optimizer
scaler = torch.amp.GradScaler("cuda")
reveal(scaler)  # revealed: Scaler
reveal(scaler.scale(resnet(torch.ones(4).cuda()).sum()))  # revealed: Tensor[gpu, attached]
reveal(nn.CrossEntropyLoss())  # revealed: Loss
on_host = nn.Linear(2, 2)
reveal(on_host(torch.ones(2)))  # revealed: Tensor[host, attached]
frozen = nn.Linear(2, 2).cuda().requires_grad_(False)
reveal(frozen(torch.ones(2).cuda()))  # revealed: Tensor[gpu, detached]
saved = nn.Linear(2, 2).cuda()
torch.save(saved.cpu().state_dict(), "saved.pt")
reveal(saved)  # revealed: Module[gpu]
