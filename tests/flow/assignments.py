"""Names, paths and targets."""

import torch

x = torch.zeros(4)
reveal(x)  # revealed: Tensor[host, detached]
y = z = x.cuda()
reveal(z)  # revealed: Tensor[gpu, detached]
reveal(x)  # revealed: Tensor[host, detached]

a, (b, *rest) = x, (y, 1, y)
reveal(a)  # revealed: Tensor[host, detached]
reveal(b)  # revealed: Tensor[gpu, detached]

a, b = b, a
reveal(a)  # revealed: Tensor[gpu, detached]
reveal(b)  # revealed: Tensor[host, detached]

if (walrus := torch.ones(1, device="cuda")).sum() > 0:
    reveal(walrus)  # revealed: Tensor[gpu, detached]

annotated: torch.Tensor = torch.ones(1, device="cuda")
reveal(annotated)  # revealed: Tensor[gpu, detached]

count = 0
count += 1
reveal(count)  # revealed: Number
total = 0
total += y
reveal(total)  # revealed: Tensor[gpu, detached]

text = f"{count} items"
reveal(text)  # revealed: Text

box = torch.nn.Linear(2, 2)
box.extra = y
reveal(box.extra)  # revealed: Tensor[gpu, detached]
box = torch.nn.Linear(2, 2)
reveal(box.extra)  # revealed: Unknown

del x
reveal(x)  # revealed: Unknown

first, second = (t.cuda() for t in (a, b))
reveal(second)  # revealed: Tensor[gpu, detached]

chosen = a if count else None
reveal(chosen)  # revealed: Tensor[gpu, detached]
