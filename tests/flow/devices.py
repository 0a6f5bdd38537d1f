"""Devices: texts, objects, choices at run time."""

import argparse
import os

import torch

x = torch.ones(2)
reveal(x.to("cuda"))  # revealed: Tensor[gpu, detached]
reveal(x.to("cuda:1"))  # revealed: Tensor[gpu, detached]
reveal(x.to(0))  # revealed: Tensor[gpu, detached]
reveal(x.to("cpu"))  # revealed: Tensor[host, detached]
reveal(x.to(torch.float16))  # revealed: Tensor[host, detached]
reveal(x.cuda().to(torch.float16))  # revealed: Tensor[gpu, detached]
reveal(x.to(device="cuda", dtype=torch.float16))  # revealed: Tensor[gpu, detached]

device = "cuda" if torch.cuda.is_available() else "cpu"
reveal(torch.zeros(2, device=device))  # revealed: Tensor[gpu, detached]
other = torch.device("cuda" if torch.cuda.is_available() else "cpu")
reveal(other)  # revealed: Device[gpu]
reveal(x.to(other))  # revealed: Tensor[gpu, detached]
reveal(torch.device("cpu"))  # revealed: Device[host]
for index in range(2):
    reveal(x.to(f"cuda:{index}"))  # revealed: Tensor[gpu, detached]
    reveal(x.to("cuda:" + str(index)))  # revealed: Tensor[gpu, detached]
    reveal(torch.device("cuda", index))  # revealed: Device[gpu]
reveal(x.to("cuda:%d" % 1))  # revealed: Tensor[gpu, detached]
rank = int(os.environ["LOCAL_RANK"])
reveal(x.to(rank))  # revealed: Tensor[gpu, detached]
reveal(x.to(x.cuda().device))  # revealed: Tensor[gpu, detached]
reveal(x.type_as(x.cuda()))  # revealed: Tensor[gpu, detached]
reveal(torch.zeros_like(x.cuda()))  # revealed: Tensor[gpu, detached]
reveal(x.cuda().new_zeros(3))  # revealed: Tensor[gpu, detached]

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--eval-device", type=str, default="cpu")
parser.add_argument("--workers", type=int, default=4)
args = parser.parse_args()
reveal(x.to(args.device))  # revealed: Tensor[gpu, detached]
reveal(x.to(torch.device(args.device)))  # revealed: Tensor[gpu, detached]
reveal(x.to(args.eval_device))  # revealed: Tensor[host, detached]
reveal(args.workers)  # revealed: Number

reveal(x.to(torch.accelerator.current_accelerator()))  # revealed: Tensor[gpu, detached]
reveal(x.cuda() + 1)  # revealed: Tensor[gpu, detached]
reveal(x.cuda().shape)  # revealed: Number
reveal(torch.tensor([1.0, 2.0], device=device))  # revealed: Tensor[gpu, detached]
reveal(torch.from_numpy(x.numpy()))  # revealed: Tensor[host, detached]
reveal(torch.cuda.FloatTensor(3))  # revealed: Tensor[gpu, detached]


def library(batch, device):
    reveal(device)  # revealed: Device[gpu]
    loss = batch.to(device).sum()
    loss.backward()
    print(loss.item())
