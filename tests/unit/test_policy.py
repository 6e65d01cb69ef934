"""Manual choice of how operations are sharded: `sdy.split`, and policies."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

import sdy
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.ops import MeshOp
from sdy.passes.policy import Policy
from sdy.type_helpers import Function


@sdy.register_op("(h^ m^) kd+, kd+ n -> h^ m^ n", name="matmul_of_policy")
def matmul(x: jax.Array, w: jax.Array, h: int) -> jax.Array:
    out = jnp.matmul(x, w)
    return out.reshape(h, out.shape[0] // h, out.shape[1])


@sdy.register_op("a b, 4 -> a, a b", name="row_sums_of_policy")
def row_sums(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x.sum(1) + y.sum(), x


@sdy.register_op("m k^, k^ n -> m n", name="matmul_of_two")
def matmul_of_two(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def module_of(function: Function[Any], *shapes: tuple[int, ...]) -> Any:
    """Return the module of a function of unsharded arrays, with a mesh."""
    module = sdy.from_jax(function, *(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))
    mesh = MeshOp("mesh", sdy.Mesh.of({"data": 4, "model": 2}))
    Rewriter.insert_op(mesh, InsertPoint.at_start(module.body.block))
    return module


def named(module: Any, name: str) -> Operation:
    return next(op for op in module.walk() if name in (op.name, sdy.operator_name(op)))


def test_a_policy_splits_an_operator():
    def policy(operations: Sequence[Operation]) -> None:
        for op in operations:
            if sdy.operator_name(op) == "matmul_of_policy":
                sdy.split(op, operand=0, dim=1, axis="model")
                sdy.split(op, operand=1, dim=1, axis="data")

    module = module_of(lambda x, w: jnp.tanh(matmul(jnp.tanh(x), w, h=2)), (8, 16), (16, 12))
    sdy.propagate(module, policy)
    op = named(module, "matmul_of_policy")
    assert [sdy.get_sharding(operand) for operand in op.operands] == [
        sdy.Sharding.of(None, "model"),
        sdy.Sharding.of("model", "data"),
    ]
    assert sdy.get_sharding(op.results[0]) == sdy.Sharding.of(None, None, "data")

    local = module.clone()
    sdy.partition(local)
    text = sdy.format(local)
    assert "(tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>" in text
    assert text.count("stablehlo.all_reduce") == 1
    x, w = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16), np.eye(16, 12, dtype=np.float32)
    expected = np.tanh(np.tanh(x) @ w).reshape(2, 4, 12)
    np.testing.assert_allclose(sdy.compile(module)(x, w)[0], expected, rtol=1e-5, atol=1e-6)


def test_any_operation_with_a_rule_can_be_split():
    module = module_of(lambda x, w: jnp.tanh(x @ w), (8, 16), (16, 12))
    sdy.split(named(module, "stablehlo.dot_general"), operand=0, dim=1, axis="model")
    sdy.split(named(module, "stablehlo.tanh"), operand=0, dim=0, axis="data")
    sdy.split(named(module, "stablehlo.tanh"), operand=0, dim=0, axis="model")
    text = sdy.format(module)
    assert 'sdy.sharding_constraint %arg0 <@mesh, [{?}, {"model", ?}]>' in text
    assert 'sdy.sharding_constraint %arg1 <@mesh, [{"model", ?}, {?}]>' in text
    assert text.count("sdy.sharding_constraint") == 3
    tanh = named(module, "stablehlo.tanh")
    open_ = sdy.Sharding.of(("data", "model", ...), (...,))
    assert sdy.get_sharding(tanh.operands[0]) == sdy.get_sharding(tanh.results[0]) == open_
    x, w = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16), np.eye(16, 12, dtype=np.float32)
    sdy.propagate(module)
    np.testing.assert_allclose(sdy.compile(module)(x, w)[0], np.tanh(x @ w), rtol=1e-5, atol=1e-6)


REFUSED: dict[str, tuple[Function[Any], tuple[tuple[int, ...], ...], str, list[tuple[int, int, str]], str]] = {
    "frozen": (
        lambda x, w: matmul(x, w, h=2),
        ((8, 16), (16, 12)),
        "matmul_of_policy",
        [(0, 0, "data")],
        "operator 'matmul_of_policy' cannot be split along dimension 0 of argument 'x': it is written `h^`",
    ),
    "number": (
        row_sums,
        ((8, 6), (4,)),
        "row_sums_of_policy",
        [(1, 0, "data")],
        "along dimension 0 of argument 'y': it is a scalar, which cannot be sharded",
    ),
    "not summed": (
        row_sums,
        ((8, 6), (4,)),
        "row_sums_of_policy",
        [(0, 1, "model")],
        "along dimension 1 of argument 'x': output 0 lacks `b`: write `b+` if its partial results are to be summed",
    ),
    "used": (
        lambda x, w: matmul(x, w, h=2),
        ((8, 16), (16, 12)),
        "matmul_of_policy",
        [(0, 1, "model"), (1, 1, "model")],
        "along dimension 1 of argument 'w': axis 'model' already shards dimension 0 of operand 1",
    ),
    "uneven": (
        lambda x, y: x + y,
        ((6, 4), (6, 4)),
        "stablehlo.add",
        [(1, 0, "data")],
        "'stablehlo.add' op cannot be split along dimension 0 of operand 1: its size 6 is not divisible by 4 shards",
    ),
    "no dimension": (
        lambda x: -x,
        ((6,),),
        "stablehlo.negate",
        [(0, 1, "data")],
        "it has no such dimension",
    ),
    "no operand": (
        lambda x: -x,
        ((6,),),
        "stablehlo.negate",
        [(1, 0, "data")],
        "1: it has no such dimension",
    ),
    "no axis": (lambda x: -x, ((6,),), "stablehlo.negate", [(0, 0, "z")], "has an axis 'z', only 'data', 'model'"),
    "no rule": (lambda x: -x, ((6,),), "func.return", [(0, 0, "data")], "it has no sharding rule"),
    "whole": (
        lambda x: jnp.fft.fft(x),
        ((8, 4),),
        "stablehlo.fft",
        [(0, 1, "model")],
        "the operation requires it replicated",
    ),
    "minor": (
        lambda x: x.reshape(32),
        ((8, 4),),
        "stablehlo.reshape",
        [(0, 1, "model")],
        "it is not the first factor of dimension 0 of result 0",
    ),
}


@pytest.mark.parametrize(("function", "shapes", "name", "splits", "message"), REFUSED.values(), ids=REFUSED)
def test_impossible_split_is_refused_with_the_reason(
    function: Function[Any],
    shapes: tuple[tuple[int, ...], ...],
    name: str,
    splits: list[tuple[int, int, str]],
    message: str,
):
    module = module_of(function, *shapes)
    op = named(module, name)
    *before, (operand, dim, axis) = splits
    for each in before:
        sdy.split(op, operand=each[0], dim=each[1], axis=each[2])
    text = sdy.format(module)
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        sdy.split(op, operand=operand, dim=dim, axis=axis)
    assert sdy.format(module) == text


def test_a_module_without_a_mesh():
    module = sdy.from_jax(lambda x: -x, jax.ShapeDtypeStruct((4,), "float32"))
    with pytest.raises(DiagnosticError, match="the module has no mesh"):
        sdy.split(named(module, "stablehlo.negate"), operand=0, dim=0, axis="data")


ADD = """
sdy.mesh @mesh = <["data"=4, "model"=2, "other"=2]>
func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<16x8xf32>)
    -> tensor<16x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
"""


@pytest.mark.parametrize(
    ("splits", "told"),
    [
        (
            [(0, "model")],
            ['dimension 0 of operand 0 is sharded as {"data"}, which is replaced by <@mesh, [{"model", ?}, {?}]>'],
        ),
        ([(0, "model"), (0, "data")], ['replaced by <@mesh, [{"model", ?}, {?}]>']),
        ([(1, "data")], ['{"data"}, which is replaced by <@mesh, [{?}, {"data", ?}]>']),
        ([(0, "data"), (0, "model"), (1, "other")], []),
        ([(1, "model")], []),
    ],
    ids=["other axis", "other axis, told once", "other dimension", "goes on", "beside"],
)
def test_axes_dropped_by_a_split_are_reported(splits: list[tuple[int, str]], told: list[str]):
    module = sdy.parse(ADD, "program.mlir")
    add = named(module, "stablehlo.add")
    with capture() as diagnostics:
        for dim, axis in splits:
            sdy.split(add, operand=0, dim=dim, axis=axis)
    assert len(diagnostics) == len(told)
    for diagnostic, text in zip(diagnostics, told, strict=True):
        assert diagnostic.message.startswith("'stablehlo.add' op: ")
        assert text in diagnostic.message
        assert str(diagnostic.location) == "program.mlir:5:8"
        assert [str(note.location) for note in diagnostic.notes] == ["program.mlir:3:17"]


def test_split_of_a_closed_result_is_refused():
    given = '%arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : t'
    module = sdy.parse(ADD.replace("%arg1 : t", given))
    with pytest.raises(DiagnosticError, match=re.escape('dimension 0 of result 0 has the closed sharding {"data"}')):
        sdy.split(named(module, "stablehlo.add"), operand=0, dim=0, axis="model")


def test_num_splits_over_parts_of_an_axis():
    module = module_of(matmul_of_two, (8, 6), (6, 4))
    op = named(module, "matmul_of_two")
    sdy.split(op, operand=0, dim=0, axis="data", num=2)
    sdy.split(op, operand=1, dim=1, axis="data", num=2)
    result = sdy.get_sharding(op.results[0])
    assert result is not None
    assert [list(map(str, axes)) for axes in result.dim_axes] == [['"data":(1)2'], ['"data":(2)2']]
    sdy.propagate(module)
    sdy.partition(module)
    assert "(tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32>" in sdy.format(module)


def test_all_parts_of_an_axis_are_the_axis():
    op = named(module_of(matmul_of_two, (8, 6), (6, 4)), "matmul_of_two")
    for _ in range(2):
        sdy.split(op, operand=0, dim=0, axis="data", num=2)
    result = sdy.get_sharding(op.results[0])
    assert result is not None
    assert [list(map(str, axes)) for axes in result.dim_axes] == [['"data"'], []]


@pytest.mark.parametrize(
    ("taken", "num", "message"),
    [
        (None, 3, "num=3 must be at least 2 and divide axis 'data' of size 4"),
        (None, 1, "num=1 must be at least 2 and divide axis 'data' of size 4"),
        (2, 4, "num=4 must be at least 2 and divide axis 'data' of size 4, with 2 remaining"),
        (4, 2, "num=2 must be at least 2 and divide axis 'data' of size 4, with 1 remaining"),
    ],
)
def test_num_that_does_not_divide_an_axis(taken: int | None, num: int, message: str):
    op = named(module_of(matmul_of_two, (8, 6), (6, 4)), "matmul_of_two")
    if taken is not None:
        sdy.split(op, operand=0, dim=0, axis="data", num=taken)
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        sdy.split(op, operand=1, dim=1, axis="data", num=num)


def test_a_policy_that_finds_no_operator_is_told_of():
    def policy(operations: Sequence[Operation]) -> None:
        for op in operations:
            if sdy.operator_name(op) == "matmul_of_tow":
                sdy.split(op, operand=0, dim=0, axis="data")

    module = module_of(matmul_of_two, (8, 6), (6, 4))
    with capture() as told:
        sdy.propagate(module, policy)
    message = (
        "policy 'policy' splits no operation; 'matmul_of_tow' matches no name, similar names are 'matmul_of_two'; "
        "the operators of this program are 'matmul_of_two', as returned by sdy.operator_name(op)"
    )
    assert [each.message for each in told] == [message]
    assert told[0].location is not None
    assert told[0].location.filename == __file__
    with capture() as told:
        sdy.propagate(module_of(lambda x: x + 1, (8, 6)), policy)
    assert not told


TABLE = {"matmul_of_two_": 0, "attn": 1}


def by_table(operations: Sequence[Operation]) -> None:
    for op in operations:
        if sdy.operator_name(op) in TABLE:
            sdy.split(op, operand=TABLE[op.name], dim=0, axis="data")


def by_glob(operations: Sequence[Operation]) -> None:
    """Shard operations selected by a pattern."""
    for op in operations:
        if fnmatchcase(sdy.operator_name(op) or "", "matmul_[xyz]*"):
            sdy.split(op, operand=0, dim=0, axis="data")


def by_argument(operations: Sequence[Operation], wanted: str) -> None:
    for op in operations:
        if op.name == wanted:
            sdy.split(op, operand=0, dim=0, axis="data")


def by_expression(operations: Sequence[Operation]) -> None:
    for op in operations:
        if EXPRESSION.fullmatch(sdy.operator_name(op) or ""):
            sdy.split(op, operand=0, dim=0, axis="data")


def by_other_condition(operations: Sequence[Operation]) -> None:
    for op in operations:
        if sdy.operator_name(op) == "matmul_of_two" and len(op.operands) == 7:
            sdy.split(op, operand=0, dim=0, axis="data")


EXPRESSION = re.compile("mat_mul.+")


@pytest.mark.parametrize(
    ("policy", "unmatched"),
    [
        (by_table, "'matmul_of_two_' matches no name, similar names are 'matmul_of_two'; 'attn' matches no name; "),
        (by_glob, "'matmul_[xyz]*' matches no name, similar names are 'matmul_of_two'; "),
        (partial(by_argument, wanted="stablehlo.matmul_of_two"), "'stablehlo.matmul_of_two' matches no name, similar"),
        (by_expression, "'mat_mul.+' matches no name, similar names are 'matmul_of_two'; "),
        (by_other_condition, "the operators of this program are"),
    ],
    ids=["table", "glob", "argument", "expression", "other condition"],
)
def test_patterns_that_match_nothing_are_named(policy: Policy, unmatched: str):
    with capture() as warnings:
        sdy.propagate(module_of(matmul_of_two, (8, 6), (6, 4)), policy)
    (message,) = (each.message for each in warnings)
    assert f" splits no operation; {unmatched}" in message
