"""The names of the tensors that propagation saw, in the module as it is printed now."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.passes.common.lineage import lineage_of
from sdy.passes.propagation.provenance.history import PropagationRun
from sdy.passes.propagation.solution import SIGNATURE
from sdy.text.printing.names import Names


class PresentNames:
    """Names as one function, the `viewpoint`, sees them: `%0` for a value of its own, `@f:%0` for one of another."""

    def __init__(self, module: ModuleOp, viewpoint: FuncOp | None = None) -> None:
        self._names = Names(generic=False)
        self._names.add(module)
        self._predecessors = lineage_of(module).predecessors
        self._function = viewpoint
        self._values: dict[int, dict[int, SSAValue]] = {}

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._names.values

    def of_value(self, value: SSAValue) -> str:
        """The name of a value that is in the module now."""
        name, function = f"%{self._names.values[value]}", function_around(value)
        return name if function is None or function is self._function else f"@{function.sym_name.data}:{name}"

    def of_node(self, run: PropagationRun, node: int) -> str:
        """The name of what `node` held the sharding of, or words for it where it is no value, or gone."""
        value = self.value(run, node)
        if value is not None:
            return self.of_value(value)
        for function in run.solution.snapshot.functions:
            if node in function.results:
                return f"result {function.results.index(node)} of @{function.name}"
        op = defining_op(run.owner(node))
        return f"a result of {op.name}" if op else "an argument"

    def operation(self, run: PropagationRun, number: int, tensors: Sequence[int]) -> Operation:
        """The operation of that number, between `tensors`: for a data-flow edge, the one that owns it, as it is now."""
        if number == SIGNATURE:
            main = run.solution.snapshot.main
            assert main is not None
            operation: Operation = run.binding.functions[main]
        else:
            operation = run.binding.operations[number]
        if isinstance(operation, FuncOp):
            return operation.get_return_op() or operation
        if isinstance(operation, DataFlowEdgeOp):
            return defining_op(self.value(run, tensors[-1]) or run.owner(tensors[-1])) or operation
        return operation

    def value(self, run: PropagationRun, node: int) -> SSAValue | None:
        """The first value in the module now that had its sharding at `node`, or took the place of one that had."""
        found = self._values.get(id(run))
        if found is None:
            found = self._values[id(run)] = {}
            for value in self._names.values:
                at: SSAValue | None = value
                while at is not None:
                    if seen := run.binding.node_of(at):
                        found.setdefault(seen, value)
                    at = self._predecessors.get(at)
        return found.get(node)


def function_around(value: SSAValue) -> FuncOp | None:
    """The function that `value` is in, or an argument of."""
    op = defining_op(value)
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return op
