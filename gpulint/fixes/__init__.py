"""The fixes that rules attach to their findings: questions to the model in, text edits out.

A fix that cannot be proven to keep the program's meaning is no fix: the builders return None, or a manual
`Fix` that says in words what to do.
"""

from __future__ import annotations

from gpulint.fixes.amp import renew_amp
from gpulint.fixes.create import create_on_device
from gpulint.fixes.ddp import sketch_of_ddp
from gpulint.fixes.detach import detach_kept
from gpulint.fixes.loader import copy_without_waiting, load_in_workers, pin_batches
from gpulint.fixes.no_grad import switch_grad_off
from gpulint.fixes.read_later import copy_later, read_later
from gpulint.fixes.sketches import check_rarely, flush_blocks, log_rarely, pin_source

__all__ = [
    "check_rarely",
    "copy_later",
    "copy_without_waiting",
    "create_on_device",
    "detach_kept",
    "flush_blocks",
    "load_in_workers",
    "log_rarely",
    "pin_batches",
    "pin_source",
    "read_later",
    "renew_amp",
    "sketch_of_ddp",
    "switch_grad_off",
]
