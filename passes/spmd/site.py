"""Context for lowering one operation, after the types of all values were replaced by those of one device's shards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.target import Target
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter

OpT = TypeVar("OpT", bound=Operation, covariant=True)


@dataclass(frozen=True)
class Site(Generic[OpT]):
    """An operation, the layouts of its operands and results, and the target of the program.

    The types of the operands and results are those of shards; the layouts have the unpartitioned types.
    """

    op: OpT
    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    target: Target
    manual_axes: tuple[str, ...] = ()
    """The manual axes of the computations around the operation."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of the operands, followed by those of the results."""
        return self.operands + self.results

    @property
    def is_split(self) -> bool:
        """True if an operand or result is sharded."""
        return any(layout.is_split for layout in self.layouts)

    @property
    def mesh(self) -> Mesh:
        """The mesh of the sharded operands and results, or of a replicated one if none is sharded."""
        with_mesh = [layout for layout in self.layouts if layout.sharding is not None]
        return next((layout for layout in with_mesh if layout.is_split), with_mesh[0]).mesh

    def before(self) -> Emitter:
        """Return an emitter in front of the operation."""
        return Emitter(InsertPoint.before(self.op), self.op, self.target.device_id)

    def after(self) -> Emitter:
        """Return an emitter behind the operation."""
        return Emitter(InsertPoint.after(self.op), self.op, self.target.device_id)

    def replace(self, *values: SSAValue) -> None:
        """Replace the results by `values` and erase the operation."""
        Rewriter.replace_op(self.op, [], values)


def unless_empty(lower: Callable[[Site[Any]], None]) -> Callable[[Site[Any]], None]:
    """Decorate `lower` to replace an empty result by a constant, without communication."""

    def or_constant(site: Site[Any]) -> None:
        (result,) = map(tensor_type, site.op.results)
        if 0 in result.get_shape():
            site.replace(site.before().filled(result, 0))
        else:
            lower(site)

    return or_constant
