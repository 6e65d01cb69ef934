"""One operation to be made local, after the types of all values of the module have become those of one device."""

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
    """An operation, the layouts of its operands and results, and what the program is made for.

    The types of the operation's values are local already; the layouts know the whole.
    """

    op: OpT
    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    target: Target
    manual_axes: tuple[str, ...] = ()
    """The axes along which what is around the operation is the program of each device already."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of the operands, then of the results."""
        return self.operands + self.results

    @property
    def is_split(self) -> bool:
        """Whether any operand or result is split."""
        return any(layout.is_split for layout in self.layouts)

    @property
    def mesh(self) -> Mesh:
        """The mesh over which the operands and results are split, or else lie."""
        with_mesh = [layout for layout in self.layouts if layout.sharding is not None]
        return next((layout for layout in with_mesh if layout.is_split), with_mesh[0]).mesh

    def before(self) -> Emitter:
        """Inserts operations in front of this one."""
        return Emitter(InsertPoint.before(self.op), self.op, self.target.device_id)

    def after(self) -> Emitter:
        """Inserts operations behind this one."""
        return Emitter(InsertPoint.after(self.op), self.op, self.target.device_id)

    def replace(self, *values: SSAValue) -> None:
        """Put `values` in the place of the results, and remove the operation."""
        Rewriter.replace_op(self.op, [], values)


def unless_empty(lower: Callable[[Site[Any]], None]) -> Callable[[Site[Any]], None]:
    """A decorator: a result without elements is a constant instead, for which nothing is sent."""

    def or_constant(site: Site[Any]) -> None:
        (result,) = map(tensor_type, site.op.results)
        if 0 in result.get_shape():
            site.replace(site.before().filled(result, 0))
        else:
            lower(site)

    return or_constant
