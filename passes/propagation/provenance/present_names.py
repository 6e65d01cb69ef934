"""The current printed names of the tensors that propagation saw."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import DataFlowEdgeOp
from sdy.passes.propagation.provenance.history import PropagationRun, lineage_of
from sdy.passes.propagation.solution import SIGNATURE
from sdy.text.printing.names import Names


class PresentNames:
    """Names of values relative to a function, the `viewpoint`: `%0` for its own values, `@f:%0` for those of others."""

    def __init__(self, module: ModuleOp, viewpoint: FuncOp | None = None) -> None:
        self._names = Names(generic=False)
        self._names.add(module)
        self._predecessors = lineage_of(module).predecessors
        self._function = viewpoint
        self._values: dict[int, dict[int, SSAValue]] = {}
        self._texts: dict[SSAValue, str] = {}
        """The names so far: a report has each in every step that passes through its value."""

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._names.values

    def of_value(self, value: SSAValue) -> str:
        """Return the name of a value that is in the module."""
        if value not in self._texts:
            name, function = f"%{self._names.values[value]}", function_around(value)
            if function is not None and function is not self._function:
                name = f"@{function.sym_name.data}:{name}"
            self._texts[value] = name
        return self._texts[value]

    def of_node(self, run: PropagationRun, node: int) -> str:
        """Return the name of the value of `node`, or a description if it is a function result or no longer exists."""
        value = self.value(run, node)
        if value is not None:
            return self.of_value(value)
        for function in run.solution.snapshot.functions:
            if node in function.results:
                return f"result {function.results.index(node)} of @{function.name}"
        op = defining_op(run.owner(node))
        return f"a result of {op.name}" if op else "an argument"

    def operation(self, run: PropagationRun, number: int, tensors: Sequence[int]) -> Operation:
        """Return the operation of a step: the return for a function, the owner for a data-flow edge.

        Args:
            run: The propagation.
            number: The number of the operation, or `SIGNATURE`.
            tensors: The nodes of the operation's tensors.
        """
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
        """Return the first value of the module whose sharding `node` held, or that replaced such a value."""
        values = self._values.get(id(run))
        if values is None:
            values = self._values[id(run)] = {}
            for value in self._names.values:
                ancestor: SSAValue | None = value
                while ancestor is not None:
                    if ancestor_node := run.binding.node_of(ancestor):
                        values.setdefault(ancestor_node, value)
                    ancestor = self._predecessors.get(ancestor)
        return values.get(node)


def function_around(value: SSAValue) -> FuncOp | None:
    """Return the function that contains `value` or has it as an argument."""
    op = defining_op(value)
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return op
