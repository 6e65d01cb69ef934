"""Manual axes in effect at each operation of a module, and the free axes."""

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.meshes import manual_axes_around
from sdy.dialect.ops import ManualComputationOp
from sdy.dialect.sharding_verifiers import bound_axis_error
from sdy.ir.walking import operations_in_block, operations_of
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import callers_first, calls_by_function
from sdy.passes.common.sharding_walk import shardings_in
from sdy.passes.common.symbols import Symbols


class ManualAxes:
    """The manual axes around each operation, including those of manual computations that call its function.

    The calls of the module are recorded on construction.
    """

    def __init__(self, module: ModuleOp):
        self._computations: dict[Operation, Mapping[str, ManualComputationOp]] = {}
        """The manual axes around the calls of each function that a manual computation calls, directly or not."""
        self._has_computations = bool(operations_of(module, ManualComputationOp))
        if not self._has_computations:
            return
        symbols, calls = Symbols(module), calls_by_function(module)
        for function in callers_first(module):
            for call in calls.get(function, ()):
                called = symbols.function(call.callee.root_reference.data)
                if called is not None and (manual := self.around(call)):
                    self._computations[called] = {**self._computations.get(called, {}), **manual}

    def around(self, op: Operation) -> Mapping[str, ManualComputationOp]:
        """Return the manual axes around `op`, each with its manual computation."""
        if not self._has_computations:
            return {}
        axes = manual_axes_around(op)
        return {**self._computations.get(_function_of(op), {}), **axes} if self._computations else axes

    def free(self, op: Operation, mesh: Mesh) -> tuple[AxisRef, ...]:
        """Return the axes of `mesh` that can shard values at `op`: all that are not manual there."""
        manual = self.around(op)
        return tuple([AxisRef(name) for name in mesh.axis_names if name not in manual])

    def free_of(self, value: SSAValue, mesh: Mesh) -> tuple[AxisRef, ...]:
        """Return the axes of `mesh` that can shard `value`."""
        owner = value.owner
        inside = owner.last_op if isinstance(owner, Block) else owner
        return tuple(map(AxisRef, mesh)) if inside is None else self.free(inside, mesh)

    def functions(self) -> Iterator[tuple[Operation, Mapping[str, ManualComputationOp]]]:
        """Yield the functions that manual computations call, with the manual axes around them."""
        yield from self._computations.items()


def check_manual_axes(module: ModuleOp) -> None:
    """Raise DiagnosticError if a sharding within a manual computation uses one of its manual axes.

    Unlike the verifier, this also covers functions that manual computations call, and it is cheap enough to run after
    each pass.
    """
    for computation in operations_of(module, ManualComputationOp):
        manual = dict.fromkeys(computation.manual_axes.data, computation)
        for op in operations_in_block(computation.body.block):
            _check(op, manual)
    for function, manual in ManualAxes(module).functions():
        _check(function, manual)


def _check(root: Operation, manual: Mapping[str, ManualComputationOp]) -> None:
    for sharding in shardings_in(root):
        for axis in sharding.axes():
            if axis.name in manual:
                raise bound_axis_error(root, axis.name, manual[axis.name])


def _function_of(op: Operation) -> Operation:
    while not isinstance(op, FuncOp) and (parent := op.parent_op()) is not None:
        op = parent
    return op
