"""The option `debug-sharding-origins`: annotate each sharding with the user's shardings that its axes come from.

    %0 = stablehlo.add %arg0, %arg1 {sdy.sharding_origins = [{a = "input: 0", b = "constraint_1"}]}

Origins are function arguments (`input: 0`) and results (`output: 0`), constraints (`constraint_0`), and the operands
and results of manual computations (`mc_0_input: 1`, `mc_0_output: 0`). Constraints and manual computations carry their
name in `sdy.sharding_origin_name`; a value that is its own origin has the origin `self`.

A value that a function returns shares the record of the function result, as in Shardy.
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from sdy.axes import AxisRef
from sdy.dialect.attributes import SHARDING_ORIGIN_NAME, SHARDING_ORIGINS
from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import DataFlowEdgeOp, ManualComputationOp, ShardingConstraintOp
from sdy.dialect.shardings import func_result_sharding, get_sharding, shardable_value
from sdy.ir.walking import operations, operations_inside_out
from sdy.passes.common.argument_names import set_argument_attribute, set_result_attribute
from sdy.passes.common.data_flow_edges import edge_of
from sdy.passes.propagation.moves import Move
from sdy.sharding import TensorSharding

Origins = dict[AxisRef, str]
"""The name of the origin of each axis."""


class OriginRecord:
    """The origins of the axes of each value of a module, initially those of the user's shardings."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.origins: dict[SSAValue, Origins] = {}
        self.own_names: dict[SSAValue, str] = {}
        """The origin name of each value that is an origin."""
        ops = operations_inside_out(module)
        constraints = [op for op in ops if isinstance(op, ShardingConstraintOp)]
        for number, constraint in enumerate(constraints):
            self._read_constraint(constraint, f"constraint_{number}")
        computations = [op for op in ops if isinstance(op, ManualComputationOp)]
        for number, computation in enumerate(computations):
            self._read_computation(computation, f"mc_{number}")
        for op in module.ops:
            if isinstance(op, FuncOp):
                self._read_function(op)

    def _read_constraint(self, constraint: ShardingConstraintOp, name: str) -> None:
        constraint.attributes[SHARDING_ORIGIN_NAME] = StringAttr(name)
        self._own(constraint.result, constraint.sharding.data, name)
        self._begin(constraint.input, get_sharding(constraint.input), name)

    def _read_computation(self, computation: ManualComputationOp, name: str) -> None:
        computation.attributes[SHARDING_ORIGIN_NAME] = StringAttr(name)
        arguments = computation.body.block.args
        for index, sharding in enumerate(computation.in_shardings.data):
            if (edge := edge_of(arguments[index])) is not None:
                source = computation.operands[index]
                self._own(edge.result, sharding, f"{name}_input: {index}")
                self._begin(source, get_sharding(source), f"{name}_input: {index}")
        for index, sharding in enumerate(computation.out_shardings.data):
            if (edge := edge_of(computation.results[index])) is not None:
                self._own(edge.result, sharding, f"{name}_output: {index}")

    def _read_function(self, func: FuncOp) -> None:
        if func.is_declaration:
            return
        for index, argument in enumerate(func.args):
            self._own(argument, get_sharding(argument), f"input: {index}")
        returned = func.get_return_op()
        for index, value in enumerate(returned.operands if returned else ()):
            self._begin(value, func_result_sharding(func, index), f"output: {index}")

    def _own(self, value: SSAValue, sharding: TensorSharding | None, name: str) -> None:
        self.own_names[value] = name
        self._begin(value, sharding, name)

    def _begin(self, value: SSAValue, sharding: TensorSharding | None, name: str) -> None:
        holder = shardable_value(value)
        if holder is None or sharding is None:
            return
        for dim in sharding.dims:
            for axis in dim.axes:
                self.origins.setdefault(holder, {}).setdefault(axis, name)

    def add(self, tensors: Sequence[Sequence[SSAValue]], moves: Iterable[Move]) -> None:
        """Record a step.

        Args:
            tensors: The values of each operand and result: the value itself, then the other members of its sharding
                group.
            moves: The moves of the step.
        """
        for move in moves:
            origin = self._origin(tensors[move.source], move.axis)
            if origin is not None and tensors[move.target]:
                self.origins.setdefault(tensors[move.target][0], {}).setdefault(move.axis, origin)

    def _origin(self, values: Iterable[SSAValue], axis: AxisRef) -> str | None:
        """Return the origin of `axis`, or of an axis that is nested with it, in the first of `values` that has one."""
        for value in values:
            origins = self.origins.get(value, {})
            if axis in origins:
                return origins[axis]
            for other, origin in origins.items():
                if other.contains(axis) or axis.contains(other):
                    return origin
        return None

    def write(self) -> None:
        """Write the `sdy.sharding_origins` attributes into the module."""
        present = set(operations(self.module))
        for value, origins in self.origins.items():
            op = defining_op(value)
            if op is not None and op in present:
                _write(op, value, _dictionary(origins, self.own_names.get(value)))
                _write_result(value, origins)


def _write(op: Operation, value: SSAValue, origins: DictionaryAttr) -> None:
    match op, value:
        case FuncOp(), BlockArgument():
            set_argument_attribute(op, value.index, SHARDING_ORIGINS, origins)
        case ((ShardingConstraintOp() | DataFlowEdgeOp()), _):
            op.attributes[SHARDING_ORIGINS] = origins
        case _, OpResult():
            present = op.attributes.get(SHARDING_ORIGINS)
            is_array = isa(present, ArrayAttr[DictionaryAttr])
            entries = list(present if is_array else (DictionaryAttr({}),) * len(op.results))
            entries[value.index] = origins
            op.attributes[SHARDING_ORIGINS] = ArrayAttr(entries)
        case _:
            pass


def _write_result(value: SSAValue, origins: Origins) -> None:
    """Write the origins of a returned value to the function result; if it is returned several times, to the last."""
    func: Operation | None = defining_op(value)
    while func is not None and not isinstance(func, FuncOp):
        func = func.parent_op()
    returned = None if func is None or func.is_declaration else func.get_return_op()
    for use in value.uses:
        if func is not None and use.operation is returned:
            attribute = _dictionary(origins, f"output: {use.index}")
            set_result_attribute(func, use.index, SHARDING_ORIGINS, attribute)
            return


def _dictionary(origins: Origins, own_name: str | None) -> DictionaryAttr:
    entries = {
        str(axis).replace('"', ""): StringAttr("self" if origin == own_name else origin)
        for axis, origin in origins.items()
    }
    return DictionaryAttr(dict(sorted(entries.items())))
