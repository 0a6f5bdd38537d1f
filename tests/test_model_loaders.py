"""Loaders, copies to the device, and tensors made on the host."""

from __future__ import annotations

import pytest
from harness import check, settings

PROGRAM = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
from torchvision import datasets, transforms

class Reads(Dataset):
    def __getitem__(self, i):
        return self.fetch(i), open(self.paths[i]).read()

    def fetch(self, i):
        return torch.load(self.paths[i])

class Helper(Dataset):
    def __getitem__(self, i):
        return self.fetch(i)

    def fetch(self, i):
        return torch.load(self.paths[i])

class Transforms(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __getitem__(self, i):
        return self.transform(self.images[i])

class Indexes(Dataset):
    def __init__(self, data):
        self.data = data

    def __getitem__(self, i):
        return self.data[i]

class OnGpu(Indexes):
    def __init__(self, data):
        self.data = data.cuda()

class MakesGpu(Dataset):
    def __getitem__(self, i):
        return torch.zeros(3, device="cuda"), i

class Stream(IterableDataset):
    def __iter__(self):
        for path in self.paths:
            yield torch.load(path)

class Derived(datasets.CIFAR10):
    pass

def to_gpu(items):
    return torch.stack(items).cuda()

def make(dataset, train=True, **more):
    return DataLoader(dataset, batch_size=2, num_workers=2, shuffle=train, **more)  [MAKE]

class Config:
    pass

def run(model: nn.Module, optimizer, dataset, unknown, args, folder, tensors, cfg, use_cuda):
    model.cuda()
    {}
    for batch in loader:
        loss = model({}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def program(lines: str, moved: str = "batch.cuda(non_blocking=True)", made: str = "") -> str:
    return PROGRAM.replace("[MAKE]", made).format(lines, moved)


W = "num_workers=2"


@pytest.mark.parametrize(
    "lines",
    [
        f"loader = DataLoader(dataset, {W})  # expect: GPU201",
        f"loader = DataLoader(dataset, {W}, pin_memory=False)  # expect: GPU201",
        "loader = DataLoader(dataset, 1, False, None, None, 2, None, False)  # expect: GPU201",
        "loader = DataLoader(dataset, 1, False, None, None, 2, None, True)",
        f"loader = DataLoader(dataset, {W}, pin_memory=True)",
        f"loader = DataLoader(dataset, {W}, pin_memory=torch.cuda.is_available())",
        f"loader = DataLoader(dataset, {W}, pin_memory=args.pin)",
        f"loader = DataLoader(dataset, {W}, pin_memory=use_cuda)",
        f"loader = DataLoader(dataset, {W}, **unknown)",
        f"loader = DataLoader(dataset, {W}, **cfg.loader)",
        f"options = dict({W}); loader = DataLoader(dataset, **options)  # expect: GPU201",
        f"options = dict({W}, pin_memory=True); loader = DataLoader(dataset, **options)",
        f"more = dict({W})\n    if use_cuda: more.update(pin_memory=True)\n    loader = DataLoader(dataset, **more)",
        f"more = dict({W})\n    if use_cuda: more['pin_memory'] = True\n    loader = DataLoader(dataset, **more)",
        f"loader = DataLoader(OnGpu(tensors), {W})",
        f"loader = DataLoader(MakesGpu(), {W})",
        f"loader = DataLoader(TensorDataset(tensors.cuda()), {W})",
        f"loader = DataLoader(dataset, {W}, collate_fn=to_gpu)",
        f"loader = DataLoader(dataset, {W}, collate_fn=lambda items: torch.stack(items).cuda())",
        f"loader = iter(DataLoader(dataset, {W}))  # expect: GPU201",
        f"loader = enumerate(DataLoader(dataset, {W}))  # expect: GPU201",
        f"other = DataLoader(dataset, {W}); loader = other  # expect: GPU201",
        f"loader = {{'train': DataLoader(dataset, {W})}}['train']  # expect: GPU201",
        f"loader, _ = DataLoader(dataset, {W}), DataLoader(dataset, {W})  # expect: GPU201",
        f"loader = DataLoader(tensors, {W}) if args else DataLoader(tensors, {W}, pin_memory=True)  # expect: GPU201",
        "loader = unknown.loader",
    ],
)
def test_pinning(lines: str) -> None:
    moved = "batch[1].cuda(non_blocking=True)" if "enumerate" in lines else "batch.cuda(non_blocking=True)"
    check(program(lines, moved), "GPU201")


def test_batches_that_stay_need_no_pinning() -> None:
    check(program(f"loader = DataLoader(dataset, {W})", "batch.mean()"), "GPU201")
    check(program(f"loader = DataLoader(dataset, {W})", "batch.to('cpu')"), "GPU201")
    check(program(f"loader = DataLoader(dataset, {W})  # expect: GPU201", "batch.to('cuda', torch.float16)"), "GPU201")
    check(program(f"loader = DataLoader(dataset, {W})  # expect: GPU201", "batch['x'][0].cuda()"), "GPU201")
    check(program(f"loader = DataLoader(dataset, {W})", "batch.cuda()").replace(".cuda(", ".to_mkldnn("), "GPU201")


def test_a_loader_made_by_a_function_is_reported_there() -> None:
    check(program("loader = make(dataset)", made="# expect: GPU201"), "GPU201")
    check(program("loader = make(dataset, pin_memory=True)"), "GPU201")
    check(program("loader = make(dataset, **unknown)"), "GPU201")


@pytest.mark.parametrize(
    "lines",
    [
        "loader = DataLoader(datasets.ImageFolder(folder))  # expect: GPU202",
        "loader = DataLoader(datasets.ImageFolder(folder), num_workers=0)  # expect: GPU202",
        "loader = DataLoader(datasets.MNIST(folder, transform=transforms.ToTensor()))  # expect: GPU202",
        "loader = DataLoader(Subset(datasets.ImageFolder(folder), [1, 2]))  # expect: GPU202",
        "a, b = torch.utils.data.random_split(datasets.MNIST(path), [1, 2]); loader = DataLoader(a)  # expect: GPU202",
        "loader = DataLoader(Reads())  # expect: GPU202",
        "loader = DataLoader(Helper())  # expect: GPU202",
        "loader = DataLoader(Transforms(unknown))  # expect: GPU202",
        "loader = DataLoader(Stream())  # expect: GPU202",
        "loader = DataLoader(Derived(folder))  # expect: GPU202",
        "options = {'num_workers': 0}; loader = DataLoader(Reads(), **options)  # expect: GPU202",
        "loader = DataLoader(datasets.ImageFolder(folder), num_workers=4)",
        "loader = DataLoader(datasets.ImageFolder(folder), num_workers=args.workers)",
        "loader = DataLoader(datasets.ImageFolder(folder), num_workers=0 if args.debug else 4)",
        "loader = DataLoader(datasets.ImageFolder(folder), **unknown)",
        "loader = DataLoader(TensorDataset(tensors))",
        "loader = DataLoader(Indexes(tensors))",
        "loader = DataLoader(OnGpu(tensors))",
        "loader = DataLoader([tensors, tensors])",
        "loader = DataLoader(dataset)",
        "loader = DataLoader(datasets.ImageFolder(folder), collate_fn=to_gpu)",
    ],
)
def test_workers(lines: str) -> None:
    check(program(lines), "GPU202")


def test_no_gpu_no_word_on_loaders() -> None:
    text = program("loader = DataLoader(datasets.ImageFolder(folder))", "batch").replace(".cuda()", "")
    check(text.replace('"cuda"', '"cpu"'), "GPU201", "GPU202")


@pytest.mark.parametrize(
    "moved",
    [
        "batch.cuda()  # expect: GPU203\n",
        "batch.to('cuda')  # expect: GPU203\n",
        "batch.to(torch.device('cuda'), torch.float16)  # expect: GPU203\n",
        "batch.view(3).cuda()  # expect: GPU203\n",
        "batch['x'].cuda()  # expect: GPU203\n",
        "batch[0][1].cuda()  # expect: GPU203\n",
        "batch.cuda(0)  # expect: GPU203\n",
        "batch.cuda(non_blocking=True)",
        "batch.cuda(0, True)",
        "batch.to('cuda', torch.float16, True)",
        "batch.cuda(non_blocking=args.fast)",
        "batch.float().cuda()",
        "(batch * 2).cuda()",
        "batch.to('cpu')",
        "batch.to(torch.float16)",
    ],
)
def test_blocking_copies(moved: str) -> None:
    code, _, comment = moved.partition("  #")
    text = program("loader = DataLoader(dataset, num_workers=2, pin_memory=True)", code)
    marked = text.replace(").mean()", f").mean()  #{comment.rstrip()}") if comment else text
    check(marked, "GPU203")


@pytest.mark.parametrize(
    "loader",
    ["DataLoader(dataset, num_workers=2)", "DataLoader(dataset, num_workers=2, pin_memory=args.pin)", "unknown.loader"],
)
def test_copies_from_pageable_memory_gain_nothing(loader: str) -> None:
    check(program(f"loader = {loader}", "batch.cuda()"), "GPU203")


ALLOCATION = """
import torch
from torch import nn

def train(model: nn.Module, loader, optimizer, args, generator):
    model.cuda()
    fixed = torch.ones(3).cuda()
    for step, x in enumerate(loader):
        x = x.cuda()
        {}
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "code",
    [
        "a = torch.zeros(3).cuda()  # expect: GPU204",
        "a = torch.zeros(3).to('cuda')  # expect: GPU204",
        "a = torch.zeros(3).to(x.device)  # expect: GPU204",
        "a = torch.zeros(3).to(x)  # expect: GPU204",
        "a = torch.zeros(3).type_as(x)  # expect: GPU204",
        "a = torch.rand(3).cuda()  # expect: GPU204",
        "a = torch.arange(len(x)).cuda()  # expect: GPU204",
        "a = torch.tensor([1, 2]).cuda()  # expect: GPU204",
        "a = torch.tensor(0.5).cuda()  # expect: GPU204",
        "a = torch.zeros(3).float().unsqueeze(0).cuda()  # expect: GPU204",
        "a = torch.full((3,), 2.0).cuda()  # expect: GPU204",
        "a = torch.eye(3)  # expect: GPU204\n        b = a.cuda()",
        "a = (torch.ones(3) * 2).cuda()  # expect: GPU204",
        "a = torch.FloatTensor(3).cuda()  # expect: GPU204",
        "a = torch.zeros(3, device='cpu').cuda()  # expect: GPU204",
        "a = torch.zeros(3, device='cuda')",
        "a = torch.zeros(3, device=x.device).to('cuda')",
        "a = torch.zeros_like(x).cuda()",
        "a = x.new_zeros(3).cuda()",
        "a = torch.zeros(3)",
        "a = torch.from_numpy(args.array).cuda()",
        "a = torch.tensor(args.rows).cuda()",
        "a = torch.tensor([r.value for r in args.rows]).cuda()",
        "a = (torch.zeros(3) + torch.from_numpy(args.array)).cuda()",
        "a = torch.zeros(3)\n        a[0] = args.value\n        b = a.cuda()",
        pytest.param(
            "a = torch.zeros(3)\n        a.copy_(args.tensor)\n        b = a.cuda()",
            marks=pytest.mark.xfail(reason="an unknown value fills no tensor"),
        ),
        "if step % 100 == 0:\n            a = torch.zeros(3).cuda()",
    ],
)
def test_allocations(code: str) -> None:
    check(ALLOCATION.format(code), "GPU204")


def test_seeded_random_numbers_are_only_possible_and_constants_are_not() -> None:
    seeded = ALLOCATION.replace("from torch import nn", "from torch import nn\ntorch.manual_seed(0)")
    check(seeded.format("a = torch.rand(3).cuda()\n        b = torch.zeros(3).cuda()  # expect: GPU204"), "GPU204")


@pytest.mark.xfail(reason="the default device is not followed")
def test_a_default_device_makes_nothing_on_the_host() -> None:
    default = ALLOCATION.replace("from torch import nn", "from torch import nn\ntorch.set_default_device('cuda')")
    check(default.format("a = torch.zeros(3).cuda()"), "GPU204")


@pytest.mark.parametrize(
    "code",
    [
        "a = torch.from_numpy(args.array).cuda(non_blocking=True)  # expect: GPU210",
        "a = torch.from_numpy(args.array).to('cuda', non_blocking=True)  # expect: GPU210",
        "a = x.cpu().cuda(non_blocking=True)  # expect: GPU210",
        "fixed.copy_(torch.from_numpy(args.array), non_blocking=True)  # expect: GPU210",
        "fixed.copy_(torch.from_numpy(args.array).float(), non_blocking=True)  # expect: GPU210",
        "a = torch.from_numpy(args.array).cuda()",
        "a = torch.from_numpy(args.array).pin_memory().cuda(non_blocking=True)",
        "a = args.tensor.cuda(non_blocking=True)",
        "a = torch.from_numpy(args.array).cuda(non_blocking=False)",
        "a = torch.from_numpy(args.array).cuda(non_blocking=args.fast)",
        "a = x.cuda(non_blocking=True)",
        "a = x.to('cpu', non_blocking=True).cuda(non_blocking=True)",
        "a = torch.ones(3).cuda(non_blocking=True)  # expect: GPU204",
        "fixed.copy_(x, non_blocking=True)",
        "if step % 100 == 0:\n            a = torch.from_numpy(args.array).cuda(non_blocking=True)",
    ],
)
def test_asynchronous_copies(code: str) -> None:
    check(ALLOCATION.format(code), "GPU204", "GPU210")


def test_loaders_of_a_program_said_to_have_no_gpu() -> None:
    text = program("loader = DataLoader(datasets.ImageFolder(folder))")
    check(text, "GPU201", "GPU202", "GPU203", config=settings(gpu="never"))
    check(
        text.replace("ImageFolder(folder))", "ImageFolder(folder))  # expect: GPU201, GPU202"),
        "GPU201",
        "GPU202",
        "GPU203",
        config=settings(gpu="always"),
    )


def test_a_loader_that_is_only_counted_needs_no_workers() -> None:
    text = program("loader = DataLoader(datasets.ImageFolder(folder), num_workers=2)")
    counted = "    print(sum(1 for _ in DataLoader(datasets.ImageFolder(folder))))\n"
    check(text.replace("    model.cuda()\n", "    model.cuda()\n" + counted), "GPU202")
