"""Attributes of an object: what `__init__` and the other methods leave."""

from dataclasses import dataclass

import torch
from torch import nn


class Trainer:
    kind = "trainer"

    def __init__(self, model, lr=0.1):
        self.model = model.cuda()
        self.lr = lr
        self.buffer = torch.zeros(8)
        self.best = None

    def setup(self):
        self.offset = torch.ones(1, device="cuda")

    def step(self, batch):
        reveal(self.model)  # revealed: Module[gpu]
        reveal(self.lr)  # revealed: Number
        reveal(self.offset)  # revealed: Tensor[gpu, detached]
        out = self.model(batch.cuda()) + self.offset
        self.best = out
        reveal(self.best)  # revealed: Tensor[gpu, attached]
        return out

    @property
    def scaled(self):
        return self.offset * 2

    @staticmethod
    def helper(x):
        return x.cuda()

    @classmethod
    def make(cls):
        return cls(nn.Linear(2, 2))


class Finer(Trainer):
    def __init__(self, model):
        super().__init__(model, lr=0.2)

    def step(self, batch):
        return super().step(batch).detach()


trainer = Trainer(nn.Linear(2, 2))
trainer.setup()
reveal(trainer)  # revealed: Instance
reveal(trainer.buffer)  # revealed: Tensor[host, detached]
reveal(trainer.step(torch.ones(2)))  # revealed: Tensor[gpu, attached]
reveal(trainer.best)  # revealed: Tensor[gpu, attached]
reveal(trainer.scaled)  # revealed: Tensor[gpu, detached]
reveal(Trainer.helper(torch.ones(2)))  # revealed: Tensor[gpu, detached]
reveal(Trainer.make().model)  # revealed: Module[gpu]
reveal(Trainer.kind)  # revealed: Text
finer = Finer(nn.Linear(2, 2))
finer.setup()
reveal(finer.model)  # revealed: Module[gpu]
reveal(finer.step(torch.ones(2)))  # revealed: Tensor[gpu, detached]


@dataclass
class Batch:
    image: torch.Tensor
    label: torch.Tensor

    def cuda(self):
        return Batch(self.image.cuda(), self.label.cuda())


sample = Batch(torch.ones(2), torch.ones(2))
reveal(sample.image)  # revealed: Tensor[host, detached]
reveal(sample.cuda().image)  # revealed: Tensor[gpu, detached]


class Switch:
    def on(self):
        self.state = torch.ones(1, device="cuda")

    def off(self):
        self.state = torch.ones(1)


switch = Switch()
switch.on()
switch.off()
reveal(switch.state)  # revealed: Tensor[gpu, detached]
