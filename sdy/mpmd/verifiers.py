"""Verifiers of the MPMD operations, with MLIR's messages."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from sdy.axes import quoted
from sdy.diagnostics import error, op_error
from sdy.dialect.attributes import MeshAttr
from sdy.dialect.sharding_checks import sharding_problem
from sdy.mesh import Mesh
from sdy.mpmd import ops
from sdy.mpmd.attributes import CALL_COUNTER, MEMORY_KIND, MESH_SHAPE, TOPOLOGY
from sdy.mpmd.mesh_tensor import MeshTensorType
from sdy.mpmd.topology import callee_of, enclosing_function, is_entry_point, is_mpmd_function, mesh_named

_MEMORY_KINDS = ("pinned_host", "device")


def _verify_on_mesh(op: Operation, type_: MeshTensorType, mesh: Mesh) -> None:
    """Raise if the sharding of `type_` is invalid on `mesh`, or does not divide the tensor."""
    if type_.sharding is not None and (problem := sharding_problem(type_.sharding, type_.tensor, mesh, divisible=True)):
        raise op_error(op, problem)


def _verify_counts(
    op: Operation, inner: Sequence[Attribute], outer: Sequence[Attribute], names: tuple[str, str]
) -> None:
    if len(inner) != len(outer):
        raise error(
            op,
            f"number of {names[0]}s must match the number of {names[1]}s respectively: {len(inner)} != {len(outer)}",
        )


_ARGUMENTS = ("block argument", "operand")
_RETURNED = ("returned value", "result")


def _returned_types(op: Operation) -> Sequence[Attribute]:
    last = op.regions[0].block.last_op
    assert last is not None, "a trait checks that the block has a terminator"
    return last.operand_types


def _argument_types(op: Operation) -> Sequence[Attribute]:
    return op.regions[0].block.arg_types


# Named computations


def _verify_named_computation(op: ops.NamedComputationOp) -> None:
    _verify_equal_types(op, _argument_types(op), op.operand_types, _ARGUMENTS)
    _verify_equal_types(op, _returned_types(op), op.result_types, _RETURNED)


def _verify_equal_types(
    op: Operation, inner: Sequence[Attribute], outer: Sequence[Attribute], names: tuple[str, str]
) -> None:
    _verify_counts(op, inner, outer, names)
    for inside, outside in zip(inner, outer, strict=True):
        if inside != outside:
            raise error(
                op, f"expected the type of the {names[0]} to match the type of {names[1]}: '{inside}', got: '{outside}'"
            )


# Fragments and their calls


def _verify_fragment(op: ops.FragmentOp) -> None:
    _verify_fragment_types(op, _argument_types(op), op.operand_types, _ARGUMENTS)
    _verify_fragment_types(op, _returned_types(op), op.result_types, _RETURNED)


def _verify_fragment_types(
    op: ops.FragmentOp | ops.FragmentCallOp,
    inner: Sequence[Attribute],
    outer: Sequence[Attribute],
    names: tuple[str, str],
) -> None:
    """Raise if a type inside a fragment is not the global type of the mesh tensor outside."""
    _verify_counts(op, inner, outer, names)
    mesh_name = op.mesh_name.data
    for inside, outside in zip(inner, outer, strict=True):
        mesh = mesh_named(op, mesh_name)
        if not isinstance(outside, MeshTensorType):
            if inside != outside:
                raise error(
                    op, f"expected the type of the {names[0]} to match the {names[1]}: '{outside}', got: '{inside}'"
                )
            continue
        if outside.mesh != mesh_name:
            raise error(
                op,
                f"expected the mesh name of the {names[1]} to match that of the fragment op: "
                f"{outside.mesh} != {mesh_name}",
            )
        _verify_on_mesh(op, outside, mesh)
        if inside != outside.tensor:
            raise error(
                op,
                f"expected the type of the {names[0]} to be global tensor type {names[1]}: '{outside.tensor}', "
                f"got: '{inside}'",
            )


def _verify_fragment_call(op: ops.FragmentCallOp) -> None:
    callee = callee_of(op)
    if callee is None:
        raise error(op, f"'{op.callee.string_value()}' does not reference a valid function")
    _verify_fragment_types(op, callee.function_type.inputs.data, op.operand_types, _ARGUMENTS)
    _verify_fragment_types(op, callee.function_type.outputs.data, op.result_types, _RETURNED)
    mesh = callee.attributes.get(MESH_SHAPE)
    if not isinstance(mesh, MeshAttr):
        raise error(callee, f"Function does not have a {MESH_SHAPE} attribute: {callee.sym_name.data}")
    if mesh.data != (own := mesh_named(op, op.mesh_name.data)):
        raise error(op, f"Expected mesh of fragment call and callee function to match: {MeshAttr(own)} vs {mesh}")


# Transfers and assignments


def _verify_transfer(op: ops.TransferOp) -> None:
    types = (op.tensor.type, op.result.type)
    for type_ in types:
        assert isinstance(type_, MeshTensorType)
        _verify_on_mesh(op, type_, mesh_named(op, type_.mesh))
    before, after = types
    assert isinstance(before, MeshTensorType)
    assert isinstance(after, MeshTensorType)
    if before.tensor != after.tensor:
        raise error(
            op,
            f"cannot perform transfer between given types '{before}' and '{after}': global tensor types are different",
        )
    for kind in (before.memory_kind, after.memory_kind):
        if kind is not None and kind not in _MEMORY_KINDS:
            raise error(op, f"memory kind must be either 'pinned_host' or 'device'. Found '{kind}'.")
    if _memory_kind_attribute(op.tensor) == "pinned_host":
        raise error(
            op, "Transfers from host with attributes are not supported. Memory kinds must be expressed in the type."
        )
    if _memory_kind_attribute(op.result) == "pinned_host":
        raise error(
            op, "Transfers to host with attributes are not supported. Memory kinds must expressed be in the type."
        )


def _memory_kind_attribute(value: SSAValue) -> str | None:
    """Return the memory kind that an attribute beside `value`, not its type, gives to it."""
    owner = value.owner
    entries: ArrayAttr[DictionaryAttr] | Attribute | None = None
    if isinstance(value, BlockArgument):
        function = value.block.parent_op()
        entries = function.arg_attrs if isinstance(function, FuncOp) else None
    elif isinstance(owner, ops.TransferOp):
        entries = ArrayAttr([DictionaryAttr(owner.attributes)])
    elif isinstance(owner, Operation):
        entries = owner.attributes.get("res_attrs")
    assert isinstance(value, BlockArgument | OpResult)
    if not isa(entries, ArrayAttr[DictionaryAttr]) or value.index >= len(entries):
        return None
    kind = entries.data[value.index].data.get(MEMORY_KIND)
    return kind.data if isinstance(kind, StringAttr) else None


def _verify_assignment(op: ops.AssignOp | ops.UnassignOp) -> None:
    outside, local = (
        (op.result.type, op.tensor.type) if isinstance(op, ops.AssignOp) else (op.tensor.type, op.result.type)
    )
    assert isinstance(outside, MeshTensorType)
    _verify_on_mesh(op, outside, mesh_named(op, outside.mesh))
    if not outside.is_fully_replicated:
        raise error(op, f"MeshTensorType should be fully replicated: '{outside}'")
    if outside.tensor != local:
        raise error(
            op,
            f"mismatch between the given local type '{local}' and mesh_type ranked tensor type: '{outside.tensor}'",
        )


# Calls, loops and reductions


def _verify_call(op: ops.CallOp) -> None:
    counter = op.attributes.get(CALL_COUNTER)
    if isa(counter, IntegerAttr[IntegerType]) and counter.type != IntegerType(32, Signedness.UNSIGNED):
        raise error(op, f"call_counter must be an uint32, got '{counter.type}'")
    parent, function, callee_name = op.parent_op(), enclosing_function(op), op.callee.string_value()
    if not isinstance(parent, FuncOp | ops.ForOp):
        where = "" if parent is None else parent.name
        raise error(
            op,
            f"Mpmd CallOp on {quoted(callee_name)} can only be used in a function or for_op block but was called from "
            f"inside op {where}",
        )
    if is_mpmd_function(function) and not is_entry_point(function):
        raise error(
            op,
            f"Mpmd CallOp on {quoted(callee_name)} in an Mpmd function can only be used directly by the entrypoint "
            f"function, i.e. the main function, but was called from {quoted(function.sym_name.data)}.",
        )
    callee = callee_of(op)
    if callee is None:
        raise error(op, f"'{callee_name}' does not reference a valid function")
    _verify_called_types(op, "operand", callee.function_type.inputs.data, op.operand_types)
    _verify_called_types(op, "result", callee.function_type.outputs.data, op.result_types)
    if TOPOLOGY in callee.attributes and is_entry_point(callee):
        raise error(
            op,
            "MPMD CallOp callee with topology must also have visibility set to private, as public functions with "
            "topologies are assumed to be entry point functions.",
        )


def _verify_called_types(op: ops.CallOp, kind: str, expected: Sequence[Attribute], actual: Sequence[Attribute]) -> None:
    for wanted, got in zip(expected, actual, strict=False):
        if wanted != got:
            raise error(op, f"Type mismatch. Expected call {kind} to have type '{wanted}' but got '{got}'")


def _verify_for(op: ops.ForOp) -> None:
    if tuple(op.operand_types) != tuple(op.result_types):
        raise op_error(op, "requires the same type for operand and result at the same index")
    arguments = _argument_types(op)
    if len(arguments) != len(op.operands) + 1:
        raise error(op, "wrong number of arguments for region")
    for number, (operand, argument) in enumerate(zip(op.operand_types, arguments, strict=False)):
        if operand != argument:
            raise error(op, f"wrong argument type at argument no. {number}")
    index = arguments[-1]
    if isa(index, TensorType[Attribute]) and (index.get_shape() or not _is_32_bit_integer(index.element_type)):
        raise error(op, "index must have a 32-bit integer rank-0 tensor type")
    if tuple(_returned_types(op)) != tuple(op.result_types):
        raise error(op, "type mismatch for result of region")
    if len(set(map(type, op.operand_types))) > 1:
        raise error(op, "type ids in operands/results are not identical")
    iterations = op.iterations.value.data
    if iterations <= 0:
        raise error(op, "number of iterations must be greater than zero")
    factor = 1 if op.unroll_factor is None else op.unroll_factor.value.data
    if factor == 0 or iterations % factor:
        raise error(op, f"number of iterations {iterations} isn't divisible by unroll factor {factor}")


def _is_32_bit_integer(type_: Attribute) -> bool:
    return isa(type_, IntegerType) and type_.width.data == 32


def _verify_reduce(op: ops.ReduceOp) -> None:
    if op.reduction.data == "none" and len(op.tensors) != 1:
        raise error(op, "ReduceOp must have exactly one operand if the reduction type is none")


MPMD_CHECKS: dict[type[Operation], Callable[[Any], None]] = {
    ops.NamedComputationOp: _verify_named_computation,
    ops.FragmentOp: _verify_fragment,
    ops.FragmentCallOp: _verify_fragment_call,
    ops.TransferOp: _verify_transfer,
    ops.AssignOp: _verify_assignment,
    ops.UnassignOp: _verify_assignment,
    ops.CallOp: _verify_call,
    ops.ForOp: _verify_for,
    ops.ReduceOp: _verify_reduce,
}
"""Verifier of each class of operations."""
