"""Operations with a single-device (maximal) sharding: one device computes them for all others."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, Use
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import op_error
from sdy.dialect.meshes import enclosing_module, mesh_of, named_meshes
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import (
    func_arg_sharding,
    func_result_sharding,
    get_sharding,
    result_shardings,
    set_sharding,
)
from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.ir.shapes import rank
from sdy.sharding import TensorSharding


def refuse_single_device(function: FuncOp) -> None:
    """Raise DiagnosticError if an argument or a result of `function` has a single-device sharding."""
    counts = {"argument": len(function.function_type.inputs), "result": len(function.function_type.outputs)}
    for kind, get in (("argument", func_arg_sharding), ("result", func_result_sharding)):
        for index in range(counts[kind]):
            if is_on_one_device(get(function, index), function):
                message = f"function {kind} {index} cannot have a single-device (maximal) sharding attribute"
                raise op_error(function, message)


def runs_on_one_device(op: Operation, result_shardings: Sequence[TensorSharding | None]) -> bool:
    """Return whether `op`, with results of these shardings, runs on a single device; False for a reshard to one."""
    return not isinstance(op, ReshardOp) and any(is_on_one_device(sharding, op) for sharding in result_shardings)


def insert_single_device_reshards(op: Operation) -> None:
    """Reshard the operands of `op` to the one device that computes it, and its results from there.

    Each reshard goes through a replicated tensor, and a result with a single-device sharding stays replicated. A token
    needs no reshard: its sharding moves to the mesh of all devices if another result is a tensor. A module without a
    mesh of several devices is left unchanged.

    Raises:
        DiagnosticError: If the results are on different single devices.
    """
    if device_of(op) is None:
        return
    given = [get_sharding(result) for result in op.results]
    alone = [sharding for sharding in _shardings(op) if sharding is not None and is_on_one_device(sharding, op)]
    module = enclosing_module(op)
    assert module is not None
    meshes = named_meshes(module)
    everywhere = next((name for name, mesh in meshes.items() if mesh.axes), None)
    if everywhere is None:
        return
    one_device = TensorSharding(alone[-1].mesh)

    for index in range(len(op.operands)):
        if isinstance(op.operands[index].type, TensorType):
            _bring_operand(Use(op, index), one_device, everywhere)
    at = InsertPoint.after(op)
    for result, wanted in zip(op.results, given, strict=True):
        if isinstance(result.type, TensorType):
            _bring_result(result, wanted, one_device, everywhere, at)
        elif any(isinstance(other.type, TensorType) for other in op.results):
            set_sharding(result, TensorSharding(everywhere))


def _bring_operand(use: Use, one_device: TensorSharding, everywhere: str) -> None:
    op = use.operation
    at = InsertPoint.before(op)
    value = op.operands[use.index]
    whole = TensorSharding.replicated_closed(everywhere, rank(value.type))
    source = get_sharding(value) or whole
    if source.is_fully_replicated and not source.unreduced and source.mesh == one_device.mesh:
        return
    if not (source.is_fully_replicated and source.mesh == everywhere):
        value = insert_for_use(use, ReshardOp(value, whole), at)
    insert_for_use(use, ReshardOp(value, one_device), at)


def _bring_result(
    result: OpResult, wanted: TensorSharding | None, one_device: TensorSharding, everywhere: str, at: InsertPoint
) -> None:
    whole = TensorSharding.replicated_closed(everywhere, rank(result.type))
    on_each = insert_for_other_uses(result, ReshardOp(result, whole), at)
    if wanted is not None and wanted != whole and not is_on_one_device(wanted, result.op):
        insert_for_other_uses(on_each, ReshardOp(on_each, wanted), at)
    set_sharding(result, one_device)


def device_of(op: Operation) -> int | None:
    """Return the single device that the shardings of the results of `op` name, or None if they name none.

    Raises:
        DiagnosticError: If the results are on different single devices.
    """
    alone = [mesh_of(each, op).device_ids for each in _shardings(op) if each is not None and is_on_one_device(each, op)]
    if len(set(alone)) > 1:
        raise op_error(op, "has conflicting single-device result shardings")
    return alone[0][0] if alone else None


def _shardings(op: Operation) -> Sequence[TensorSharding | None]:
    """Return the shardings of the results of `op`, or its own sharding if it has no results, such as a print."""
    return [get_sharding(result) for result in op.results] if op.results else result_shardings(op)


def is_on_one_device(sharding: TensorSharding | None, anchor: Operation) -> bool:
    """Return whether `sharding` is on a maximal mesh, that of a single device."""
    # A maximal mesh has no axes, so that a sharding with axes needs no mesh lookup.
    return sharding is not None and sharding.is_fully_replicated and mesh_of(sharding, anchor).is_maximal
