"""`sdy-manual-axes-cleanup`: make every sharding of a manual computation refer to every manual axis."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, ShapedType
from xdsl.ir import Attribute

from sdy.axes import AxisRef, merge_sub_axes, mesh_order, subtract
from sdy.diagnostics import op_error
from sdy.dialect.attributes import ManualAxesAttr, TensorShardingPerValueAttr
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ManualComputationOp, ReturnOp
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import innermost_first, operations_of
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


class ManualAxesCleanupPass(AnalysisPreservingPass):
    """Sort the manual axes of each manual computation, and add those that a sharding lacks to its replicated axes.

    Before::

        sdy.mesh @mesh = <["a"=2, "b"=2]>
        %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"b"}]>] out_shardings=[<@mesh, [{"a"}]>]
            manual_axes={"b", "a"} (...) { ... }

    After::

        sdy.mesh @mesh = <["a"=2, "b"=2]>
        %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"b"}], replicated={"a"}>]
            out_shardings=[<@mesh, [{"a"}], replicated={"b"}>] manual_axes={"a", "b"} (...) { ... }
    """

    name = "sdy-manual-axes-cleanup"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for computation in innermost_first(operations_of(op, ManualComputationOp)):
            _clean_up(computation)


def _clean_up(computation: ManualComputationOp) -> None:
    shardings = (*computation.in_shardings.data, *computation.out_shardings.data)
    if not shardings:
        if computation.manual_axes.data and not isinstance(computation.body.block.first_op, ReturnOp):
            raise op_error(
                computation,
                "op has manual_axes when there are no in/out shardings and the body is not empty, "
                "so the mesh of the axes is unknown",
            )
        return
    reference, mesh = _common_mesh(shardings, computation)
    axes = sorted(computation.manual_axes.data, key=mesh.axis_index)
    manual = [AxisRef(name) for name in axes]
    computation.properties["manual_axes"] = ManualAxesAttr(tuple(axes))
    for name, per_value, types in (
        ("in_shardings", computation.in_shardings, computation.operand_types),
        ("out_shardings", computation.out_shardings, computation.result_types),
    ):
        completed = _add_unused_axes(per_value.data, types, manual, reference, mesh)
        computation.properties[name] = TensorShardingPerValueAttr(tuple(completed))


def _common_mesh(shardings: Sequence[TensorSharding], computation: ManualComputationOp) -> tuple[str | Mesh, Mesh]:
    """Return the first nonempty mesh of the shardings: the reference to it and the mesh."""
    meshes = [(sharding.mesh, mesh_of(sharding, computation)) for sharding in shardings]
    return next(((reference, mesh) for reference, mesh in meshes if not mesh.is_empty), meshes[0])


def _add_unused_axes(
    shardings: Iterable[TensorSharding],
    types: Iterable[Attribute],
    manual: Sequence[AxisRef],
    reference: str | Mesh,
    mesh: Mesh,
) -> Iterable[TensorSharding]:
    for sharding, type_ in zip(shardings, types, strict=True):
        unused = subtract(manual, sharding.axes(), mesh)
        if not unused or not isinstance(type_, ShapedType):
            yield sharding
        else:
            replicated = sorted((*sharding.replicated, *unused), key=mesh_order(mesh))
            yield replace(sharding, mesh=reference, replicated=merge_sub_axes(replicated, mesh))
