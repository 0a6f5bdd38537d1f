"""Lists, tuples and dicts, whose members are known one by one or joined."""

from collections import defaultdict

import torch

host = torch.ones(2)
gpu = torch.ones(2, device="cuda")

pair = (host, gpu)
reveal(pair)  # revealed: Container[Tensor[host, detached], Tensor[gpu, detached]]
reveal(pair[1])  # revealed: Tensor[gpu, detached]
reveal(pair[-2])  # revealed: Tensor[host, detached]

batch = {"image": gpu, "size": 3}
reveal(batch["image"])  # revealed: Tensor[gpu, detached]
reveal(batch["size"])  # revealed: Number
batch["mask"] = host
reveal(batch["mask"])  # revealed: Tensor[host, detached]
batch["image"] = batch["image"].cpu()
reveal(batch["image"])  # revealed: Tensor[host, detached]

outputs = []
outputs.append(gpu)
reveal(outputs)  # revealed: Container[Tensor[gpu, detached]]
outputs.extend([gpu, gpu])
reveal(outputs[0])  # revealed: Tensor[gpu, detached]
reveal(torch.cat(outputs))  # revealed: Tensor[gpu, detached]
more = outputs + [gpu]
reveal(more[0])  # revealed: Tensor[gpu, detached]

moved = {k: v.cuda() for k, v in {"a": host, "b": host}.items()}
reveal(moved["a"])  # revealed: Tensor[gpu, detached]
reveal([t.cuda() for t in (host, host)])  # revealed: Container[Tensor[gpu, detached], Tensor[gpu, detached]]

meters = defaultdict(list)
meters["loss"].append(gpu)
reveal(meters["loss"])  # revealed: Container[Tensor[gpu, detached]]

nested = {"a": {"b": gpu}}
reveal(nested["a"]["b"])  # revealed: Tensor[gpu, detached]
for key, value in batch.items():
    reveal(key)  # revealed: Text
first, *others = [gpu, gpu, gpu]
reveal(first)  # revealed: Tensor[gpu, detached]
reveal(others[0])  # revealed: Tensor[gpu, detached]
reveal(batch.get("mask"))  # revealed: Tensor[host, detached]
reveal(batch.pop("mask"))  # revealed: Tensor[host, detached]
options = dict(device="cuda")
reveal(torch.ones(1, **options))  # revealed: Tensor[gpu, detached]
reveal(pair[:1])  # revealed: Container[Tensor[gpu, detached]]
