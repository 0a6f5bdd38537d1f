"""The lattice of values: laws of `join` and `join_env`, on which the fixpoint of every loop rests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulint.model.frame import join_env
from gpulint.model.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Pin,
    Value,
    container,
    join,
    mapping,
    sequence,
    tensor,
)

MARKS = [object() for _ in range(3)]

tensors = st.fixed_dictionaries(
    {
        "device": st.sampled_from(Device),
        "graph": st.sampled_from(Graph),
        "sure": st.booleans(),
        "opaque": st.booleans(),
        "scalar": st.booleans(),
        "bulk": st.booleans(),
        "pinned": st.sampled_from(Pin),
        "marks": st.frozensets(st.sampled_from(MARKS)),
    }
).map(lambda known: Value(Kind.TENSOR, **known))
simple = st.sampled_from(
    [
        NONE,
        NUMBER,
        TEXT,
        UNKNOWN,
        Value(Kind.ARRAY),
        Value(Kind.NUMBER, const=3),
        Value(Kind.TEXT, Device.GPU, const="cuda"),
    ]
)
roles = st.sampled_from(
    [
        Value(Kind.DEVICE, Device.GPU),
        Value(Kind.DEVICE, Device.HOST),
        Value(Kind.MODULE),
        Value(Kind.LOADER),
        Value(Kind.OPTIMIZER),
        Value(Kind.LOSS),
    ]
)
leaves = st.one_of(tensors, simple)
plain = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(container),
        st.lists(inner, min_size=1, max_size=3).map(lambda vs: sequence(tuple(vs))),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda d: mapping(tuple(d), tuple(d.values()))),
    ),
    max_leaves=4,
)
values = st.one_of(plain, roles)


def facts(value: Value | None) -> Any:
    """A value without what depends on the order of joining: a dict's order, the loop it names."""
    if value is None:
        return None
    members: Any = None
    if value.items is not None:
        inner = [facts(v) for v in value.items]
        members = dict(zip(value.keys, inner, strict=True)) if value.keys is not None else inner
    return value._replace(loop=None, items=None, keys=None, element=None), facts(value.element), members


@given(values)
def test_join_is_idempotent(a: Value) -> None:
    assert join(a, a) == a


@given(values, values)
def test_join_is_commutative(a: Value, b: Value) -> None:
    assert facts(join(a, b)) == facts(join(b, a))


@given(tensors, tensors, tensors)
def test_join_of_tensors_is_associative(a: Value, b: Value, c: Value) -> None:
    assert facts(join(join(a, b), c)) == facts(join(a, join(b, c)))


@given(leaves, leaves, leaves)
def test_kinds_join_in_any_order(a: Value, b: Value, c: Value) -> None:
    assert join(join(a, b), c).kind is join(a, join(b, c)).kind


@given(tensors, tensors)
def test_a_join_covers_both_sides(a: Value, b: Value) -> None:
    joined = join(a, b)
    assert join(joined, a) == joined
    assert join(joined, b) == joined


@given(values, values)
def test_no_certainty_appears(a: Value, b: Value) -> None:
    joined = join(a, b)
    assert not joined.sure or (a.sure and b.sure) or NONE in (a, b) or Kind.NUMBER in (a.kind, b.kind)
    assert joined.marks == a.marks | b.marks


@given(plain, st.lists(plain, max_size=3))
def test_a_loop_settles(start: Value, bodies: list[Value]) -> None:
    """Joining the same values in again and again changes nothing after a few rounds."""
    head = start
    for _ in range(8):
        new = head
        for value in bodies:
            new = join(new, value)
        if new == head:
            break
        head = new
    else:
        pytest.fail("no fixpoint in 8 rounds")


def test_roles_settle_too() -> None:
    module, loader = Value(Kind.MODULE), Value(Kind.LOADER)
    assert join(join(module, loader), module) == join(module, loader)
    assert join(join(module, TEXT), UNKNOWN).kind is join(module, join(TEXT, UNKNOWN)).kind


environments = st.dictionaries(st.sampled_from(["x", "y", "self.x"]), values)


@given(environments)
def test_unbound_gives_way(env: dict[str, Value]) -> None:
    assert join_env(env, {}) == env
    assert join_env({}, env) == env
    assert join_env(None, env) == env
    assert join_env(env, None) == env


@given(environments, environments)
def test_environments_join_name_by_name(a: dict[str, Value], b: dict[str, Value]) -> None:
    joined = join_env(a, b)
    assert joined is not None
    assert set(joined) == set(a) | set(b)
    for name in set(a) & set(b):
        assert joined[name] == join(a[name], b[name])


@given(environments, environments)
def test_join_leaves_its_operands_alone(a: dict[str, Value], b: dict[str, Value]) -> None:
    before = dict(a), dict(b)
    join_env(a, b)
    assert (a, b) == before


HOST = tensor(Device.HOST)
GPU = tensor(Device.GPU, Graph.ATTACHED)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (HOST, HOST, "Tensor[host, detached]"),
        (HOST, GPU, "Tensor[gpu, attached]"),
        (NONE, GPU, "Tensor[gpu, attached]"),
        (NUMBER, GPU, "Tensor[gpu, attached]"),
        (NONE, NUMBER, "Number"),
        (TEXT, GPU, "Unknown"),
        (
            tensor(Device.HOST, pinned=Pin.PINNED),
            tensor(Device.HOST, pinned=Pin.PAGEABLE),
            "Tensor[host, detached, pinned]",
        ),
        (tensor(Device.HOST), tensor(Device.UNKNOWN), "Tensor[?, detached]"),
        (container(HOST), Value(Kind.CONTAINER), "Container[Tensor[host, detached]]"),
        (sequence((HOST, NUMBER)), sequence((GPU, NUMBER)), "Container[Tensor[gpu, attached], Number]"),
        (sequence((HOST,)), sequence((HOST, HOST)), "Container[Tensor[host, detached]]"),
        (mapping(("a",), (HOST,)), mapping(("b",), (NUMBER,)), "Container{a: Tensor[host, detached], b: Number}"),
        (Value(Kind.MODULE, Device.GPU), UNKNOWN, "Module[gpu]"),
        (Value(Kind.DEVICE, Device.GPU), Value(Kind.DEVICE, Device.HOST), "Device[gpu]"),
    ],
    ids=lambda v: v.describe() if isinstance(v, Value) else v,
)
def test_join(a: Value, b: Value, wanted: str) -> None:
    assert join(a, b).describe() == wanted


def test_a_join_of_two_devices_is_unsure() -> None:
    assert not join(HOST, tensor(Device.GPU)).sure
    assert join(HOST, HOST).sure


def test_values_are_keys() -> None:
    assert len({HOST, tensor(Device.HOST), GPU}) == 2
