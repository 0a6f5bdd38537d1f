"""The script: makes the model and the loader, and calls the engine."""

import torch

from data import make_loader
from engine import evaluate, train_one_epoch
from net import Net, STEPS

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
loader = make_loader(workers=2)
reveal(model)  # revealed: Module[gpu]
reveal(loader)  # revealed: Loader
reveal(STEPS)  # revealed: Number
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = train_one_epoch(model, loader, optimizer, device)
reveal(loss)  # revealed: Number
reveal(evaluate(model, loader, device))  # revealed: Tensor[gpu, detached]
