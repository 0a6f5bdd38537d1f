"""Classes of the project and objects from outside: definition, construction, framework hooks."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from gpulint.model.api import api, canonical
from gpulint.model.effects import unseen_batch
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Closure, Instance
from gpulint.model.sites import Phase
from gpulint.model.syntax import ClassInfo, FunctionInfo, dotted
from gpulint.model.values import NONE, NUMBER, TEXT, UNKNOWN, Device, Fresh, Graph, Kind, Value, tensor

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


class Classes:
    settings: Any

    def __init__(self) -> None:
        self.classes: dict[ast.AST, ClassInfo] = {}
        self.instances: dict[tuple[object, ClassInfo | None], Instance] = {}
        self.by_class: dict[ClassInfo, Instance] = {}

    # ---- definition --------------------------------------------------------------------------------

    def define_class(self, frame: Frame, node: ast.ClassDef, env: Env) -> Value:
        cls = self.classes.get(node)
        if cls is None:
            cls = self.classes[node] = ClassInfo(node, frame.module, node.name)
            self._resolve_bases(frame, cls, env)
            for statement in node.body:
                self._define_member(frame, cls, statement, env)
        return Value(Kind.CLASS, ref=cls)

    def _resolve_bases(self, frame: Frame, cls: ClassInfo, env: Env) -> None:
        for base in cls.node.bases:
            target = base.value if isinstance(base, ast.Subscript) else base
            value = frame.evaluate(target, env)
            if value.kind is Kind.CLASS and isinstance(value.ref, ClassInfo):
                cls.bases.append(value.ref)
            elif value.kind is Kind.NAMESPACE:
                cls.outside.append(canonical(str(value.const)))
            else:
                cls.outside.append(dotted(target) or "?")

    def _define_member(self, frame: Frame, cls: ClassInfo, statement: ast.stmt, env: Env) -> None:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            infos: dict[ast.AST, FunctionInfo] = self.infos  # type: ignore[attr-defined]
            for decorator in statement.decorator_list:
                frame.evaluate(decorator, env)
            info = infos.setdefault(
                statement, FunctionInfo(statement, frame.module, f"{cls.qualname}.{statement.name}", cls)
            )
            if statement.name not in cls.methods or not any(
                (dotted(d) or "").endswith((".setter", ".deleter")) for d in statement.decorator_list
            ):
                cls.methods[statement.name] = info
        elif isinstance(statement, ast.Assign):
            value = frame.evaluate(statement.value, {**env, **cls.attrs})
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    cls.attrs[target.id] = value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            declared = self.annotated(frame, statement.annotation)  # type: ignore[attr-defined]
            value = frame.evaluate(statement.value, {**env, **cls.attrs}) if statement.value is not None else declared
            if value.kind is Kind.OBJECT and "field" in str(value.const):
                value = declared
            cls.attrs[statement.target.id] = declared if value.kind is Kind.UNKNOWN else value
        elif isinstance(statement, ast.ClassDef):
            cls.attrs[statement.name] = self.define_class(frame, statement, env)
        elif isinstance(statement, ast.If | ast.Try):
            for inner in statement.body:
                self._define_member(frame, cls, inner, env)

    # ---- construction --------------------------------------------------------------------------------

    def is_module(self, cls: ClassInfo) -> bool:
        return any(
            api().has("classes.module_base", base)
            or api().has("classes.lightning_module", base)
            or (api().is_module_class(base) and not base.endswith("functional"))
            for base in cls.all_outside
        ) or (
            ("forward" in cls.methods or cls.method("forward") is not None)
            and any(b.rpartition(".")[2].endswith(("Module", "Model", "Net", "Loss")) for b in cls.all_outside)
        )

    def base_kind(self, cls: ClassInfo) -> str | None:
        """Which framework base of the table's [hooks] the class derives from."""
        for key in api().hooks:
            if any(api().has(f"classes.{key}", base) for base in cls.all_outside):
                return key
        return "module_base" if self.is_module(cls) else None

    def new_instance(self, cls: ClassInfo, node: object, device: Device) -> Value:
        key = (node, cls)
        instance = self.instances.get(key)
        if instance is None:
            instance = self.instances[key] = Instance(cls, node if isinstance(node, ast.AST) else None, device)
            if self.is_module(cls):
                instance.device = device
        self.by_class.setdefault(cls, instance)
        if not self.is_module(cls):
            return Value(Kind.INSTANCE, ref=instance)
        loss = cls.name.endswith("Loss") and "forward" in cls.methods
        return Value(Kind.MODULE, ref=instance, const="loss" if loss else None)

    def instantiate(self, cls: Any, args: Arguments, frame: Frame, node: ast.AST) -> Value:
        if not isinstance(cls, ClassInfo):
            return UNKNOWN
        framework = self.base_kind(cls)
        device = Device.GPU if framework == "lightning_module" and frame.module.gpu else Device.HOST
        value = self.new_instance(cls, node, device)
        init = cls.method("__init__")
        if init is not None:
            self.invoke(Closure(init, {}, value), args.positional, args.keywords, frame, node, exact=args.exact)  # type: ignore[attr-defined]
        else:
            self._fields(cls, value.ref, args)
        if framework == "hf_trainer":
            self._trainer(frame, value.ref, args)
        return value

    def _fields(self, cls: ClassInfo, instance: Instance, args: Arguments) -> None:
        """A dataclass's or named tuple's arguments become its attributes."""
        names = [
            s.target.id
            for base in reversed(cls.mro)
            for s in base.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        for name, value in (*zip(names, args.positional), *args.keywords.items()):
            instance.set(name, value)

    def _trainer(self, frame: Frame, instance: Instance, args: Arguments) -> None:
        model = args.keywords.get("model", UNKNOWN)
        if model.kind is Kind.MODULE:
            if isinstance(model.ref, Instance):
                model.ref.move(Device.GPU, False)
            instance.set("model", model)

    def generic_instance(self, frame: Frame, cls: ClassInfo) -> Value:
        """An object of a class that no code is seen to make: ``__init__`` with unknown arguments."""
        existing = self.by_class.get(cls)
        if existing is not None:
            return self._as_value(cls, existing)
        framework = self.base_kind(cls)
        gpu = frame.module.gpu or cls.module.gpu
        device = Device.GPU if framework in ("lightning_module",) and gpu else Device.UNKNOWN
        value = self.new_instance(cls, cls.node, device)
        if framework == "hf_trainer":
            model = Instance(None, None, Device.GPU if gpu else Device.UNKNOWN)
            model.sure = False
            value.ref.set("model", Value(Kind.MODULE, ref=model, sure=False))
        init = cls.method("__init__")
        if init is not None:
            root = self.root_frame(cls.module)  # type: ignore[attr-defined]
            self.invoke(Closure(init, {}, value), [], {}, root, cls.node)  # type: ignore[attr-defined]
        instance = value.ref
        if framework == "module_base" and gpu and instance.device is Device.UNKNOWN:
            instance.move(Device.GPU, False)
        return value

    def _as_value(self, cls: ClassInfo, instance: Instance) -> Value:
        return Value(Kind.MODULE if self.is_module(cls) else Kind.INSTANCE, ref=instance)

    # ---- hooks of frameworks -------------------------------------------------------------------------

    def hook_phase(self, info: FunctionInfo) -> Phase | None:
        """Whether a framework calls the function on every step, and in which phase."""
        if info.name in self.settings.step_functions or info.qualname in self.settings.step_functions:
            return Phase.TRAINING
        if info.cls is None:
            return None
        key = self.base_kind(info.cls)
        if key is None:
            return None
        keys = [key, "module_base"] if key == "lightning_module" else [key]
        for name in keys:
            phases = api().hooks[name]
            if info.name in phases["training"]:
                return Phase.TRAINING
            if info.name in phases["evaluation"]:
                return Phase.EVALUATION
        return None

    def hook_arguments(
        self, info: FunctionInfo, receiver: Value | None, phase: Phase | None, frame: Frame
    ) -> list[Value]:
        """What a framework passes to its hooks, and what ``forward`` is called with."""
        if phase is None or info.cls is None or receiver is None:
            return []
        where = receiver.where if receiver.kind is Kind.MODULE else Device.UNKNOWN
        if _ON_HOST.search(info.cls.name) or _ON_HOST.search(info.module.path.stem):
            where = Device.UNKNOWN  # a transform of images that a loader's worker runs
        elif where is Device.UNKNOWN:
            where = self.chosen_device(frame)  # type: ignore[attr-defined]
        names = [a.arg for a in info.node.args.args][1:]
        if info.name == "forward":
            graph = Graph.UNKNOWN
            annotated = {a.arg for a in info.node.args.args if a.annotation is not None}
            values: list[Value] = []
            defaults = len(info.node.args.defaults)
            for position, name in enumerate(names):
                if position >= len(names) - defaults or name in annotated or name in _NOT_TENSORS:
                    break
                values.append(tensor(where, graph, sure=False, opaque=True, loop=Fresh.FRESH))
            return values
        batch = tensor(where, Graph.DETACHED, opaque=True, loop=Fresh.FRESH, sure=where is Device.GPU)
        model = Value(Kind.MODULE, ref=self.unseen_model(frame, info))
        given = {
            "batch": batch,
            "inputs": batch._replace(sure=False),
            "batch_idx": Value(Kind.NUMBER, loop=Fresh.FRESH),
            "batch_nb": NUMBER,
            "model": model,
            "outputs": batch,
            "trainer": UNKNOWN,
            "pl_module": UNKNOWN,
        }
        return [given.get(name, UNKNOWN) for name in names[: len(names) - len(info.node.args.defaults)]]

    def unseen_model(self, frame: Frame, info: FunctionInfo) -> Instance:
        key = ("model", info.cls)
        if key not in self.instances:
            gpu = self.chosen_device(frame)  # type: ignore[attr-defined]
            self.instances[key] = Instance(None, None, gpu)
            self.instances[key].sure = False
        return self.instances[key]

    # ---- objects from outside ---------------------------------------------------------------------------

    def outside_module(self, frame: Frame, node: ast.AST) -> Instance:
        key = (node, None)
        if key not in self.instances:
            self.instances[key] = Instance(None, node)
        return self.instances[key]

    outside_object = outside_module

    def outside_instance(self, frame: Frame, node: ast.Call, name: str, args: Arguments) -> Value:
        """A capitalised name from outside is called: an object. A dataset keeps what it was given."""
        if api().has("classes.ignite_engine", name) and args.positional and isinstance(args.positional[0].ref, Closure):
            self._ignite(args.positional[0].ref, frame)
        if api().has("classes.accelerator", name):
            return Value(Kind.OBJECT, const=name)
        element = None
        if name.startswith("torch.distributions."):
            from gpulint.model.combine import arithmetic

            inner = arithmetic(frame, args.all)
            return Value(Kind.OBJECT, const=name, element=inner._replace(bulk=False) if inner.is_tensor else None)
        if name.endswith((".Process", ".Thread")):
            self._started(frame, node, args.keywords.get("target", UNKNOWN), args.keywords.get("args", UNKNOWN), [])
        if api().has("classes.memory_dataset", name) or api().has("classes.dataset_wrapper", name):
            from gpulint.model.values import join_all

            element = join_all(tuple(args.positional))
        return Value(Kind.OBJECT, const=name, element=element, ref=self.outside_module(frame, node))

    def _ignite(self, closure: Closure, frame: Frame) -> None:
        batch = tensor(Device.HOST, opaque=True, loop=Fresh.FRESH, sure=False)
        bound = self._bind(closure, [UNKNOWN, batch], {}, frame, True)  # type: ignore[attr-defined]
        grad = self._gradient_mode(closure.info, True, frame)  # type: ignore[attr-defined]
        variant = self._variant(closure.info, bound, grad)  # type: ignore[attr-defined]
        variant.step_function = Phase.TRAINING
        variant.root = True
        self.run_variant(variant, closure, bound)  # type: ignore[attr-defined]

    def _started(self, frame: Frame, node: ast.AST, target: Value, given: Value, before: list[Value]) -> None:
        """``Process(target=train, args=(…))``, ``mp.spawn(main, args=(…))``: the function runs with these."""
        if target.kind is Kind.FUNCTION and isinstance(target.ref, Closure):
            self.invoke(target.ref, [*before, *(given.items or ())], {}, frame, node)  # type: ignore[attr-defined]

    def wrap(self, frame: Frame, node: ast.Call, name: str, first: Value) -> Value:
        """DDP, DataParallel, compile, deepcopy: a module around a module."""
        if first.kind is not Kind.MODULE:
            return first
        if api().has("classes.wrapper_on_gpu", name) and isinstance(first.ref, Instance):
            first.ref.move(Device.GPU, True)
        if name == "copy.deepcopy" and isinstance(first.ref, Instance):
            key = (node, None)
            if key not in self.instances:
                copy = Instance(first.ref.cls, node, first.ref.device)
                copy.attrs = dict(first.ref.attrs)
                self.instances[key] = copy
            return first._replace(ref=self.instances[key])
        return first

    def object_method(self, frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
        """Methods of known outside objects; None leaves the call to the unknown."""
        kind = str(receiver.const)
        if api().has("classes.accelerator", kind):
            return self._accelerator(frame, node, name, args)
        if kind.endswith("ArgumentParser"):
            return self._argparse(frame, node, receiver, name, args)
        if kind.startswith("torch.distributions."):
            element = receiver.element
            if element is not None and name in ("sample", "rsample", "log_prob", "entropy", "cdf", "icdf"):
                return element._replace(graph=Graph.DETACHED, loop=frame.made_here) if name == "sample" else element
        if name == "predict" and kind.startswith("sklearn."):
            return Value(Kind.ARRAY)
        return None

    def _accelerator(self, frame: Frame, node: ast.Call, name: str, args: Arguments) -> Value | None:
        if name in (
            "prepare",
            "setup",
            "setup_dataloaders",
            "setup_module",
            "prepare_model",
            "prepare_data_loader",
        ):
            prepared = tuple(self._prepared(v) for v in args.positional)
            if len(prepared) == 1:
                return prepared[0]
            return Value(Kind.CONTAINER, items=prepared)
        if name == "backward":
            self.backward(frame, node, args.positional[0] if args.positional else UNKNOWN, name)  # type: ignore[attr-defined]
            return NONE
        if name in ("gather", "gather_for_metrics", "reduce", "all_gather", "all_reduce"):
            return args.positional[0] if args.positional else UNKNOWN
        if name in ("clip_grad_norm_", "clip_gradients"):
            return tensor(Device.GPU, scalar=True, loop=frame.made_here)
        if name == "unwrap_model":
            return args.positional[0] if args.positional else UNKNOWN
        if name == "device":
            return Value(Kind.DEVICE, Device.GPU)
        return None

    def _prepared(self, value: Value) -> Value:
        if value.kind is Kind.MODULE and isinstance(value.ref, Instance):
            value.ref.move(Device.GPU, True)
        elif value.kind is Kind.LOADER:
            for loader in value.ref or ():
                loader.prepared = True
            batch = value.element or unseen_batch()
            return value._replace(element=batch._replace(device=Device.GPU, ref=None, sure=True))
        elif value.kind is Kind.UNKNOWN:
            return value
        return value

    def _argparse(self, frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
        options: Instance = receiver.ref
        if name in ("add_argument", "add"):
            flags = [v.const for v in args.positional if isinstance(v.const, str)]
            dest = args.keywords.get("dest", NONE).const
            if not isinstance(dest, str) and flags:
                dest = max(flags, key=len).lstrip("-").replace("-", "_")
            if isinstance(dest, str):
                default = args.keywords.get("default")
                value = default if default is not None and default.kind is not Kind.NONE else UNKNOWN
                action = args.keywords.get("action", NONE).const
                if action in ("store_true", "store_false"):
                    value = Value(Kind.NUMBER, const=False) if action == "store_true" else NUMBER
                elif (
                    args.keywords.get("type", NONE).const in ("builtins.int", "builtins.float")
                    or value.kind is Kind.NUMBER
                ):
                    value = NUMBER
                elif args.keywords.get("type", NONE).const == "builtins.str" and value.kind is Kind.UNKNOWN:
                    value = TEXT
                options.set(dest, value)
            return UNKNOWN
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_parser", "add_subparsers"):
            return receiver
        if name in ("parse_args", "parse_known_args"):
            parsed = Value(Kind.OBJECT, const="argparse.Namespace", ref=options)
            return parsed if name == "parse_args" else Value(Kind.CONTAINER, items=(parsed, UNKNOWN))
        return None

    def forward_of(self, target: Value) -> Closure | None:
        """The ``forward`` (or ``__call__``) that calling a module of the project runs."""
        instance = target.ref
        if isinstance(instance, Instance) and instance.cls is not None:
            method = instance.cls.method("forward") or instance.cls.method("__call__")
            if method is not None:
                return Closure(method, {}, target)
        return None


_ON_HOST = re.compile(r"transforms?$|augment|preprocess|resize|crop|jitter|totensor|^transforms?", re.I)
_NOT_TENSORS = frozenset(
    ["mode", "train", "training", "return_loss", "return_dict", "output_attentions", "targets", "target_sizes"]
)
