"""What DistributedDataParallel asks of a file, in the file's own names: a sketch, since launching changes too."""

from __future__ import annotations

import ast

from gpulint.finding import Applicability, Fix
from gpulint.model import Model
from gpulint.model.syntax import keyword


def sketch_of_ddp(model: Model, call: ast.AST) -> Fix:
    wrapped = model.short(call.args[0], 40) if isinstance(call, ast.Call) and call.args else "model"
    target = _target(model, call) or "model"
    lines = [
        f"# run with: torchrun --nproc_per_node=gpu {model.path.name}",
        "import os",
        "",
        "import torch",
        "import torch.distributed as dist",
        "from torch.nn.parallel import DistributedDataParallel",
        "from torch.utils.data.distributed import DistributedSampler",
        "",
        'dist.init_process_group("nccl")',
        'rank = int(os.environ["LOCAL_RANK"])',
        "torch.cuda.set_device(rank)",
        f"{target} = DistributedDataParallel({_without_cuda(wrapped)}.cuda(rank), device_ids=[rank])",
    ]
    lines += _loaders(model)
    lines += [
        "# in the epoch loop, before the steps:",
        f"{_sampler(model)}.set_epoch(epoch)",
        "# batch_size is per process now; log and save where dist.get_rank() == 0:",
        "if dist.get_rank() == 0:",
        f"    torch.save({target}.module.state_dict(), path)",
        "dist.destroy_process_group()",
    ]
    return Fix("Use DistributedDataParallel, one process per GPU", Applicability.MANUAL, sketch="\n".join(lines))


def _target(model: Model, call: ast.AST) -> str | None:
    statement = model.statement(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return model.short(target, 40) if isinstance(target, ast.Name | ast.Attribute) else None
    return None


def _without_cuda(text: str) -> str:
    return text.removesuffix(".cuda()")


def _loaders(model: Model) -> list[str]:
    lines = []
    for loader in model.loaders:
        call = loader.node
        name = _target(model, call) or "loader"
        source = keyword(call, "dataset") or (call.args[0] if call.args else None)
        data = model.short(source, 40) if source is not None else "dataset"
        kept = [
            " ".join(model.text(k).split())
            for k in call.keywords
            if k.arg not in ("dataset", "shuffle", "sampler", "batch_sampler")
        ]
        kept += [] if len(call.args) < 2 else [f"batch_size={model.short(call.args[1], 40)}"]
        sampler = f"{name.rpartition('.')[2]}_sampler"
        shuffle = keyword(call, "shuffle")
        order = f", shuffle={model.short(shuffle, 40)}" if shuffle is not None else ", shuffle=False"
        lines.append(f"{sampler} = DistributedSampler({data}{order})")
        lines.append(f"{name} = DataLoader({', '.join([data, f'sampler={sampler}', *kept])})")
    if not lines:
        lines = [
            "sampler = DistributedSampler(dataset)",
            "loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler)",
        ]
    return lines


def _sampler(model: Model) -> str:
    for loader in model.loaders:
        shuffle = keyword(loader.node, "shuffle")
        if shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value):
            return f"{(_target(model, loader.node) or 'loader').rpartition('.')[2]}_sampler"
    first = next(iter(model.loaders), None)
    return f"{(_target(model, first.node) or 'loader').rpartition('.')[2]}_sampler" if first else "sampler"
