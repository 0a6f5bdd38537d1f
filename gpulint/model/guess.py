"""Kinds of values that no code shows: what is asked of a name, and what its name says.

``loss.backward()`` proves a tensor in the graph, ``net.parameters()`` a module. A mere name
(`criterion`, `loader`, `device`) proves nothing: what rests on it is never more than likely.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.effects import unseen_batch
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Instance
from gpulint.model.syntax import ModuleInfo, dotted, uses
from gpulint.model.values import UNKNOWN, Device, Fresh, Graph, Kind, Value, tensor

if TYPE_CHECKING:
    from gpulint.config import Settings
    from gpulint.model.calls import Arguments

_MOVES = re.compile(
    r"(^|_)(to_device|to_gpu|to_cuda|cuda|prepare_inputs?|prepare_batch|move_to|batch_to|move_data|move_batch|send_to|to_var)(_|$)|_to_(device|gpu|cuda)$|^(to_device|transfer_batch)"
)
_CONVENTIONS = {
    "conventions.module": Kind.MODULE,
    "conventions.loss": Kind.LOSS,
    "conventions.loader": Kind.LOADER,
    "conventions.optimizer": Kind.OPTIMIZER,
    "conventions.scaler": Kind.SCALER,
    "conventions.device": Kind.DEVICE,
}


class Guesses:
    settings: Settings

    def __init__(self) -> None:
        self._unseen: dict[tuple[object, str], Instance] = {}
        self._module_uses: dict[ModuleInfo, dict[str, set[str]]] = {}
        self._convention: dict[str, Kind | None] = {}

    def module_uses(self, module: ModuleInfo) -> dict[str, set[str]]:
        if module not in self._module_uses:
            self._module_uses[module] = uses(module.source.text)
        return self._module_uses[module]

    def convention(self, path: str) -> Kind | None:
        """The kind that the last part of a path names by custom."""
        last = path.rpartition(".")[2]
        if last not in self._convention:
            self._convention[last] = self._by_name(last.lstrip("_"))
        return self._convention[last]

    def _by_name(self, name: str) -> Kind | None:
        for key, kind in _CONVENTIONS.items():
            if name in api().names(key):
                return kind
        lower = name.lower()
        if lower.endswith(("_loader", "dataloader", "_iter")) and not lower.startswith("num"):
            return Kind.LOADER
        if lower.endswith(("optimizer", "_optim", "_opt")) or lower.startswith(("optimizer_", "optim_")):
            return Kind.OPTIMIZER
        if lower.endswith(
            ("_model", "_net", "_network", "_encoder", "_decoder", "discriminator", "generator", "backbone")
        ):
            return Kind.MODULE
        if re.search(r"(^|_)(criterion|loss_fn|lossfn|loss_func)|criterion$", lower):
            return Kind.LOSS
        if lower.endswith("_device"):
            return Kind.DEVICE
        return None

    def refine(self, frame: Frame, value: Value, path: str) -> Value:
        refined = self._refined(frame, value, path)
        if value.const == "frozen" and isinstance(refined.ref, Instance):
            refined.ref.frozen = True
        return refined

    def _refined(self, frame: Frame, value: Value, path: str) -> Value:
        """What an unknown value must be by what the function (or class) asks of its path."""
        asked = frame.uses(path)
        where = self.chosen_device(frame)
        if value.on_gpu:
            if "parameters" in asked or "state_dict" in asked:
                instance = self.unseen(frame, path)
                instance.move(Device.GPU, value.sure)
                return Value(Kind.MODULE, Device.GPU, ref=instance, sure=value.sure)
            return value
        if "backward" in asked:
            graph = Graph.DETACHED if frame.grad is False else Graph.ATTACHED
            return tensor(where, graph, sure=False, scalar=True, loop=value.loop or Fresh.FRESH, marks=value.marks)
        if "param_groups" in asked or {"zero_grad", "step"} <= asked:
            return Value(Kind.OPTIMIZER, sure=False)
        if "unscale_" in asked or {"scale", "update"} <= asked:
            return Value(Kind.SCALER, sure=False)
        if (
            asked & {"parameters", "named_parameters", "load_state_dict", "zero_grad", "named_modules"}
            or {"eval", "train"} <= asked
            or ("eval" in asked and self.convention(path) is Kind.MODULE)
        ):
            return Value(Kind.MODULE, ref=self.unseen(frame, path))
        kind = self.convention(path)
        if kind is None:
            return value
        if kind is Kind.MODULE:
            # a path that is only read for attributes may be anything that carries that name
            return Value(kind, ref=self.unseen(frame, path), sure=False)
        if kind is Kind.LOADER:
            return Value(kind, element=unseen_batch()._replace(loop=value.loop), sure=False)
        if kind is Kind.DEVICE:
            return Value(kind, where, sure=False)
        return Value(kind, sure=False)

    def unseen(self, frame: Frame, path: str) -> Instance:
        """The heap object of a module that only a path is known of, one per function or class."""
        owner: object = frame.info or frame.module
        if path.startswith("self.") and frame.info is not None and frame.info.cls is not None:
            owner = frame.info.cls
        key = (owner, path)
        if key not in self._unseen:
            always = self.settings.gpu == "always"
            self._unseen[key] = Instance(None, None, Device.GPU if always else Device.UNKNOWN)
            self._unseen[key].sure = False
        return self._unseen[key]

    def chosen_device(self, frame: Frame) -> Device:
        """A device that the user chooses at run time: the GPU, in a program that has one."""
        return Device.GPU if frame.module.gpu else Device.UNKNOWN

    def moved_by_name(self, frame: Frame, name: str, args: Arguments) -> Value | None:
        """`to_device(batch, device)`, `self._prepare_inputs(batch)`: helpers that cannot be seen into."""
        device = next((v for v in args.all if v.kind is Kind.DEVICE), None)
        if not _MOVES.search(name) and device is None:
            return None
        subject = next(
            (v for v in args.positional if v.is_tensor or v.kind in (Kind.CONTAINER, Kind.UNKNOWN)),
            None,
        )
        if subject is None or (
            not _MOVES.search(name) and not (subject.is_tensor and device is not None and device.on_gpu)
        ):
            return None
        if not frame.module.gpu:
            return None
        if isinstance(subject.ref, frozenset):
            self.moved(frame, args_node(frame), subject, False)  # type: ignore[attr-defined]
        return Value(
            Kind.TENSOR,
            Device.GPU,
            Graph.DETACHED,
            sure=False,
            opaque=True,
            loop=subject.loop or frame.made_here,
            marks=subject.marks,
        )

    # ---- annotations and tests ------------------------------------------------------------------------

    def annotated(self, frame: Frame, node: ast.expr | None, path: str = "") -> Value:
        """The value that an annotation promises."""
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return UNKNOWN
        if isinstance(node, ast.BinOp):  # X | None
            left = self.annotated(frame, node.left, path)
            return left if left.kind not in (Kind.UNKNOWN, Kind.NONE) else self.annotated(frame, node.right, path)
        if isinstance(node, ast.Subscript):
            return self._generic(frame, node, path)
        name = dotted(node)
        if name is None:
            return UNKNOWN
        simple = {
            "int": Kind.NUMBER,
            "float": Kind.NUMBER,
            "bool": Kind.NUMBER,
            "str": Kind.TEXT,
            "dict": Kind.CONTAINER,
            "list": Kind.CONTAINER,
        }
        if name in simple:
            kind = simple[name]
            return Value(kind) if kind is not Kind.CONTAINER else UNKNOWN
        value = frame.evaluate(node, {})
        if value.kind is Kind.CLASS:
            return self.generic_instance(frame, value.ref)  # type: ignore[attr-defined, no-any-return]
        qualified = str(value.const) if value.kind is Kind.NAMESPACE else ""
        return self._outside_annotation(frame, qualified, path)

    def _outside_annotation(self, frame: Frame, qualified: str, path: str) -> Value:
        table = api()
        if qualified in ("torch.Tensor", "torch.FloatTensor", "torch.LongTensor"):
            return Value(Kind.TENSOR, Device.UNKNOWN, Graph.UNKNOWN, sure=False)
        if qualified in ("torch.device",):
            return Value(Kind.DEVICE, self.chosen_device(frame), sure=False)
        if qualified.startswith("numpy."):
            return Value(Kind.ARRAY)
        if table.has("classes.loader", qualified):
            return Value(Kind.LOADER, element=unseen_batch())
        if table.has("classes.optimizer", qualified):
            return Value(Kind.OPTIMIZER)
        if table.has("classes.scaler", qualified):
            return Value(Kind.SCALER)
        if table.has("classes.loss", qualified):
            return Value(Kind.LOSS)
        if table.is_module_class(qualified) or table.has("classes.module_base", qualified):
            return Value(Kind.MODULE, ref=self.unseen(frame, path or qualified))
        return UNKNOWN

    def _generic(self, frame: Frame, node: ast.Subscript, path: str) -> Value:
        head = (dotted(node.value) or "").rpartition(".")[2]
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Optional":
            return self.annotated(frame, inner[0], path)
        if head in ("list", "List", "Sequence", "Iterable", "Iterator", "Generator"):
            return Value(Kind.CONTAINER, element=self.annotated(frame, inner[0], path))
        if head in ("dict", "Dict", "Mapping") and len(inner) == 2:
            return Value(Kind.CONTAINER, element=self.annotated(frame, inner[1], path))
        if head in ("tuple", "Tuple") and not any(isinstance(i, ast.Constant) for i in inner):
            items = tuple(self.annotated(frame, i, path) for i in inner)
            return Value(Kind.CONTAINER, items=items)
        if head in ("DataLoader",):
            return Value(Kind.LOADER, element=unseen_batch())
        return UNKNOWN

    def narrow(self, frame: Frame, test: ast.expr, env: Env) -> None:
        """`if isinstance(x, torch.Tensor):` — inside, an unknown x is a tensor."""
        if not (isinstance(test, ast.Call) and dotted(test.func) == "isinstance" and len(test.args) == 2):
            return
        path = dotted(test.args[0])
        if path is None:
            return
        known = frame.evaluate(test.args[0], env)
        if known.kind is Kind.UNKNOWN:
            promised = self.annotated(frame, test.args[1]) if not isinstance(test.args[1], ast.Tuple) else UNKNOWN
            if promised.kind is not Kind.UNKNOWN:
                frame.knows(path)
                env[path] = promised._replace(loop=known.loop, marks=known.marks)


def args_node(frame: Frame) -> ast.AST:
    """The statement that the frame is at, for a move whose call is not at hand."""
    return frame.region.node or frame.module.tree
