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
    wanted_shardings = [get_sharding(result) for result in op.results]
    single_devices = [
        sharding for sharding in _shardings(op) if sharding is not None and is_on_one_device(sharding, op)
    ]
    module = enclosing_module(op)
    assert module is not None
    meshes = named_meshes(module)
    full_mesh = next((name for name, mesh in meshes.items() if mesh.axes), None)
    if full_mesh is None:
        return
    one_device = TensorSharding(single_devices[-1].mesh)

    for index in range(len(op.operands)):
        if isinstance(op.operands[index].type, TensorType):
            _reshard_operand(Use(op, index), one_device, full_mesh)
    at = InsertPoint.after(op)
    for result, wanted in zip(op.results, wanted_shardings, strict=True):
        if isinstance(result.type, TensorType):
            _reshard_result(result, wanted, one_device, full_mesh, at)
        elif any(isinstance(other.type, TensorType) for other in op.results):
            set_sharding(result, TensorSharding(full_mesh))


def _reshard_operand(use: Use, one_device: TensorSharding, full_mesh: str) -> None:
    op = use.operation
    at = InsertPoint.before(op)
    value = op.operands[use.index]
    replicated_sharding = TensorSharding.replicated_closed(full_mesh, rank(value.type))
    source = get_sharding(value) or replicated_sharding
    if source.is_fully_replicated and not source.unreduced and source.mesh == one_device.mesh:
        return
    if not (source.is_fully_replicated and source.mesh == full_mesh):
        value = insert_for_use(use, ReshardOp(value, replicated_sharding), at)
    insert_for_use(use, ReshardOp(value, one_device), at)


def _reshard_result(
    result: OpResult, wanted: TensorSharding | None, one_device: TensorSharding, full_mesh: str, at: InsertPoint
) -> None:
    replicated_sharding = TensorSharding.replicated_closed(full_mesh, rank(result.type))
    replicated = insert_for_other_uses(result, ReshardOp(result, replicated_sharding), at)
    if wanted is not None and wanted != replicated_sharding and not is_on_one_device(wanted, result.op):
        insert_for_other_uses(replicated, ReshardOp(replicated, wanted), at)
    set_sharding(result, one_device)


def device_of(op: Operation) -> int | None:
    """Return the single device that the shardings of the results of `op` name, or None if they name none.

    Raises:
        DiagnosticError: If the results are on different single devices.
    """
    single_devices = [
        mesh_of(each, op).device_ids for each in _shardings(op) if each is not None and is_on_one_device(each, op)
    ]
    if len(set(single_devices)) > 1:
        raise op_error(op, "has conflicting single-device result shardings")
    return single_devices[0][0] if single_devices else None


def _shardings(op: Operation) -> Sequence[TensorSharding | None]:
    """Return the shardings of the results of `op`, or its own sharding if it has no results, such as a print."""
    return [get_sharding(result) for result in op.results] if op.results else result_shardings(op)


def is_on_one_device(sharding: TensorSharding | None, anchor: Operation) -> bool:
    """Return whether `sharding` is on a maximal mesh, that of a single device."""
    # A maximal mesh has no axes, so that a sharding with axes needs no mesh lookup.
    return sharding is not None and sharding.is_fully_replicated and mesh_of(sharding, anchor).is_maximal
