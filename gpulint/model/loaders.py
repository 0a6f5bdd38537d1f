"""What a DataLoader's options and dataset say: pinned or not, and what an item costs."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.heap import Instance, Loader
from gpulint.model.syntax import ClassInfo, dotted, keyword, walk
from gpulint.model.values import Kind, Pin, Value

if TYPE_CHECKING:
    from gpulint.model.effects import Effects


def pin_of(loader: Loader) -> Pin:
    """Whether the loader pins its batches, as far as its options can be seen."""
    option = loader.options.get("pin_memory")
    if option is None:
        return Pin.PAGEABLE if loader.complete and not loader.foreign else Pin.UNKNOWN
    if isinstance(option.const, bool):
        return Pin.PINNED if option.const else Pin.PAGEABLE
    if option.kind is Kind.NUMBER or option.kind is Kind.UNKNOWN:
        node = keyword(loader.node, "pin_memory")
        if node is not None and "is_available" in ast.unparse(node):
            return Pin.PINNED
    return Pin.UNKNOWN


class Cost(Enum):
    """What drawing one item costs: reading or decoding wants workers, indexing memory does not."""

    READS = "reads"
    MEMORY = "memory"
    UNKNOWN = "unknown"


_READS = frozenset(
    [
        "open",
        "imread",
        "load",
        "read_image",
        "imdecode",
        "loadtxt",
        "read_csv",
        "read_parquet",
        "load_wav",
        "decode_image",
        "read_video",
        "read",
        "loadmat",
        "librosa.load",
        "Image.open",
        "cv2.imread",
        "io.imread",
        "np.load",
        "torch.load",
        "pickle.load",
        "h5py.File",
        "nib.load",
        "sf.read",
    ]
)
_TRANSFORMS = frozenset(
    [
        "transform",
        "transforms",
        "tf",
        "augment",
        "augmentation",
        "augmentations",
        "target_transform",
        "aug",
        "preprocess",
        "processor",
        "tokenizer",
        "tokenize",
        "encode",
        "encode_plus",
        "input_transform",
    ]
)


def cost(dataset: Value) -> Cost:
    """Judge a dataset by its class: torch's own by name, the project's by what ``__getitem__`` calls."""
    if dataset.kind is Kind.OBJECT:
        name = str(dataset.const)
        if api().has("classes.memory_dataset", name):
            return Cost.MEMORY
        if api().has("classes.reading_dataset", name):
            return Cost.READS
        if api().has("classes.dataset_wrapper", name) and dataset.element is not None:
            return cost(dataset.element)
        return Cost.UNKNOWN
    if dataset.kind is Kind.CONTAINER and dataset.element is not None:
        return cost(dataset.element) if dataset.element.kind in (Kind.OBJECT, Kind.INSTANCE) else Cost.MEMORY
    if dataset.kind is Kind.INSTANCE and isinstance(dataset.ref, Instance) and dataset.ref.cls is not None:
        return _cost_of_class(dataset.ref.cls)
    return Cost.UNKNOWN


def _cost_of_class(cls: ClassInfo) -> Cost:
    method = cls.method("__getitem__") or cls.method("__iter__")
    if method is None:
        reading = any(api().has("classes.reading_dataset", base) for base in cls.all_outside)
        return Cost.READS if reading else Cost.UNKNOWN
    called = _calls(method.node)
    if "__getitem__" in {n.attr for n in walk(method.node) if isinstance(n, ast.Attribute)} and any(
        api().has("classes.reading_dataset", base) for base in cls.all_outside
    ):
        return Cost.READS
    for name in {n.removeprefix("self.") for n in called}:
        helper = cls.method(name)
        if helper is not None and helper is not method:
            called |= _calls(helper.node)
    for name in called:
        last = name.rpartition(".")[2]
        if name in _READS or last in (
            "imread",
            "read_image",
            "imdecode",
            "open",
            "load",
            "decode_image",
            "loadmat",
            "read_video",
        ):
            return Cost.READS
        if last in _TRANSFORMS or (name.startswith("self.") and "transform" in last):
            return Cost.READS
    return Cost.MEMORY


def _calls(node: ast.AST) -> set[str]:
    return {dotted(n.func) or "" for n in walk(node) if isinstance(n, ast.Call)}


def yields_gpu(effects: Effects, loader: Loader) -> bool:
    """Whether the dataset holds or makes GPU tensors, so that nothing is left to copy."""
    return _holds_gpu(loader.dataset, 0) or _collates_gpu(loader)


def _holds_gpu(dataset: Value, depth: int) -> bool:
    if depth > 3:
        return False
    if dataset.is_tensor:
        return dataset.on_gpu
    if dataset.element is not None and _holds_gpu(dataset.element, depth + 1):
        return True
    if isinstance(dataset.ref, Instance):
        return any(v.kind is Kind.TENSOR and v.on_gpu for v in dataset.ref.attrs.values()) or _item_on_gpu(dataset.ref)
    return False


def _item_on_gpu(instance: Instance) -> bool:
    result = instance.attrs.get("__item__")
    return result is not None and any(
        v.is_tensor and v.on_gpu
        for v in (result, *(result.items or ()), *((result.element,) if result.element else ()))
    )


def _collates_gpu(loader: Loader) -> bool:
    collate = loader.options.get("__collated__")
    return collate is not None and any(v.on_gpu for v in (collate, *(collate.items or ())))
