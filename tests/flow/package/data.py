"""The loader."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader(workers):
    data = TensorDataset(torch.ones(8, 4), torch.ones(8))
    return DataLoader(data, batch_size=2, num_workers=workers, pin_memory=True)
