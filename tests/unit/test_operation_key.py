"""Memoization by the key of an operation."""

import gc

import pytest
from xdsl.dialects.builtin import StringAttr, TensorType, UnitAttr, f32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.test_value import create_ssa_value

from sdy.ir.operation_key import MemoizedByKey


class Counted:
    """A function of operations that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, op: Operation) -> str:
        self.calls += 1
        return " ".join(map(str, (*op.operand_types, *op.result_types, *op.properties.values())))


def op_of(
    operands: tuple[Attribute, ...] = (),
    results: tuple[Attribute, ...] = (),
    properties: dict[str, Attribute] | None = None,
    attributes: dict[str, Attribute] | None = None,
) -> AnyOp:
    return AnyOp(
        operands=[create_ssa_value(type_) for type_ in operands],
        result_types=results,
        properties=properties or {},
        attributes=attributes or {},
    )


def vector(size: int) -> Attribute:
    return TensorType(f32, [size])


def calls_for(*ops: Operation) -> int:
    counted = Counted()
    remembered = MemoizedByKey(counted)
    for op in ops:
        remembered(op)
    return counted.calls


def test_key_ignores_the_identity_of_operands():
    assert calls_for(*(op_of((vector(4),), (vector(4),), {"a": StringAttr("x")}) for _ in range(3))) == 1


@pytest.mark.parametrize(
    "other",
    [
        op_of((vector(5),), (vector(4),)),
        op_of((vector(4),), (vector(5),)),
        op_of((), (vector(4), vector(4))),
        op_of((vector(4), vector(4))),
        op_of((vector(4),), (vector(4),), {"a": UnitAttr()}),
        op_of((vector(4),), (vector(4),), {}, {"a": UnitAttr()}),
    ],
    ids=["operand type", "result type", "no operand", "no result", "property", "attribute"],
)
def test_other_types_properties_or_attributes_are_another_key(other: AnyOp):
    assert calls_for(op_of((vector(4),), (vector(4),)), other) == 2


def test_properties_are_not_attributes_and_names_count():
    assert (
        calls_for(*(op_of((), (), {name: UnitAttr()}, {}) for name in "ab"), op_of((), (), {}, {"a": UnitAttr()})) == 3
    )


def test_attributes_of_other_dialects_do_not_count():
    assert calls_for(op_of(), op_of((), (), {}, {"sdy.sharding": UnitAttr()})) == 1


def test_memoization_is_not_confused_by_reused_addresses():
    counted = Counted()
    remembered = MemoizedByKey(counted)
    for size in range(1000):
        assert remembered(op_of((vector(size),))) == f"tensor<{size}xf32>"
        gc.collect(0)
    assert counted.calls == 1000


def test_what_raises_is_asked_again():
    asked: list[Operation] = []

    def refuse(op: Operation) -> None:
        asked.append(op)
        raise ValueError("refused")

    remembered = MemoizedByKey(refuse)
    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            remembered(op_of())
    assert len(asked) == 2
