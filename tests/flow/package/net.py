"""The model."""

from torch import nn

STEPS = 100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        reveal(x)  # revealed: Tensor[gpu, detached]
        return self.layer(x)
