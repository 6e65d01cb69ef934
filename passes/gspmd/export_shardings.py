"""Conversion of SDY shardings to GSPMD, and the custom calls that carry them."""

from dataclasses import replace

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.diagnostics import error
from sdy.dialect.meshes import common_mesh, manual_axes_around, mesh_of
from sdy.dialect.ops import ManualComputationOp
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.gspmd.meshes import hlo_sharding_of
from sdy.gspmd.syntax import hlo_sharding_text
from sdy.ir.shapes import rank
from sdy.mesh import Mesh
from sdy.passes.gspmd.sharding_texts import HLO_SHARDING, SHARDING_CALL
from sdy.sharding import TensorSharding
from sdy.stablehlo.control_flow import CaseOp, IfOp, WhileOp
from sdy.stablehlo.custom_call import CustomCallOp

MANUAL = HloSharding("manual")
"""The sharding of all values in a fully manual computation."""


class ExportedShardings:
    """Memoized conversion of a module's shardings to GSPMD."""

    def __init__(self) -> None:
        self._cache: dict[tuple[TensorSharding, Mesh, tuple[str, ...]], HloSharding] = {}

    def sharding(self, sharding: TensorSharding, where: Operation) -> HloSharding:
        """Return the GSPMD sharding of `sharding` at `where`. Raises DiagnosticError for non-sum partial results."""
        if sharding.unreduced and sharding.reduction != "sum":
            raise error(where, f"has partial results to be reduced by {sharding.reduction}; GSPMD supports only sums")
        return self._of(sharding, mesh_of(sharding, where), tuple(manual_axes_around(where)))

    def text(self, sharding: TensorSharding, where: Operation) -> str:
        """Return the text of the GSPMD sharding of `sharding` at `where`."""
        return hlo_sharding_text(self.sharding(sharding, where))

    def is_all_manual(self, computation: ManualComputationOp) -> bool:
        """Return whether all mesh axes are manual in `computation`."""
        return self._inside(0, computation) == MANUAL

    def manual_part(self, op: Operation) -> ManualComputationOp | None:
        """Return the manual computation around `op`, looking through loops and branches; None inside reducers."""
        parent = op.parent_op()
        while isinstance(parent, WhileOp | CaseOp | IfOp):
            parent = parent.parent_op()
        return parent if isinstance(parent, ManualComputationOp) else None

    def text_inside(self, type_: Attribute, computation: ManualComputationOp) -> str:
        """Return the text of the GSPMD sharding of an unconstrained value in `computation`."""
        return hlo_sharding_text(self._inside(rank(type_), computation))

    def constraint(self, value: SSAValue, sharding: TensorSharding, where: Operation) -> CustomCallOp:
        """Build a custom call that constrains `value` to `sharding`; open dimensions may be sharded further."""
        closed = replace(sharding, dims=tuple(replace(dim, priority=None) for dim in sharding.dims)).close()
        return custom_call(SHARDING_CALL, value, value.type, self.text(closed, where), open_dims_text(sharding))

    def _inside(self, tensor_rank: int, computation: ManualComputationOp) -> HloSharding:
        mesh = common_mesh((*computation.in_shardings.data, *computation.out_shardings.data), computation)
        if mesh is None or mesh.is_empty:
            return MANUAL
        manual = (*manual_axes_around(computation), *computation.manual_axes.data)
        return self._of(TensorSharding.replicated_open(mesh, tensor_rank), mesh, manual)

    def _of(self, sharding: TensorSharding, mesh: Mesh, manual: tuple[str, ...]) -> HloSharding:
        key = sharding, mesh, manual
        if key not in self._cache:
            self._cache[key] = hlo_sharding_of(sharding, mesh, manual)
        return self._cache[key]


def open_dims_text(sharding: TensorSharding) -> str:
    """Return the backend_config of a sharding call, which lists the open dimensions."""
    dims = [str(index) for index, dim in enumerate(sharding.dims) if not dim.is_closed]
    return f"unspecified_dims=[{','.join(dims)}]" if dims else ""


def custom_call(
    target: str, value: SSAValue, type_: Attribute, text: str, config: str = "", has_side_effect: bool = False
) -> CustomCallOp:
    """Build a custom call of `target` with a GSPMD sharding."""
    return CustomCallOp.create(
        operands=[value],
        result_types=[type_],
        properties={
            "call_target_name": StringAttr(target),
            "has_side_effect": BoolAttr.from_bool(has_side_effect),
            "backend_config": StringAttr(config),
        },
        attributes={HLO_SHARDING: StringAttr(text)},
    )
