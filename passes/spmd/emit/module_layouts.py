"""Layouts of all values of a module, and the conversion of their types."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import lcm

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.editing import change_type
from sdy.ir.walking import operations, operations_at_top, values_in
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.spmd.emit.op_conversion import OpConversion, Target
from sdy.passes.spmd.shards.layout import Layout, mesh_of_devices
from sdy.sharding import TensorSharding

TypeOf = Callable[[Layout, SSAValue | Operation], Attribute]
"""Returns the new type of a value, or of a function result."""


class Layouts:
    """The layouts of all values of a module, by the shardings at the time of construction."""

    def __init__(self, module: ModuleOp):
        self.functions = {op.sym_name.data: op for op in operations_at_top(module) if isinstance(op, FuncOp)}
        self._module = module
        self._shared: dict[tuple[int, TensorSharding | None], Layout] = {}
        """Interned layouts, by the address of the type, which the layout keeps alive, and the sharding."""
        self._layouts: dict[SSAValue, Layout] = {}
        for op in operations(module):
            for region in op.regions:
                for block in region.blocks:
                    self._layouts.update({value: self._layout(value.type, get_sharding(value)) for value in block.args})
            callee = self.functions.get(op.callee.string_value()) if type(op) is CallOp else None
            if callee is not None:
                self._layouts.update(zip(op.results, self.of_function_results(callee), strict=True))
            else:
                self._layouts.update({value: self._layout(value.type, get_sharding(value)) for value in op.results})

    @property
    def any_uneven(self) -> bool:
        """True if a dimension of a value, or of a function result, is uneven."""
        results = (layout for function in self.functions.values() for layout in self.of_function_results(function))
        return any(layout.uneven_dims for layout in (*results, *self._shared.values()))

    def pad_alike(self) -> None:
        """Give dimensions of equal size but different numbers of shards one padded size, so that they can be resharded.

        The sizes are unified in each function separately, because values that cross functions are not padded.
        """
        for function in self.functions.values():
            uneven = {value: layout for value in values_in(function) if (layout := self._layouts[value]).uneven_dims}
            parts_of = defaultdict[int, set[int]](set)
            for layout in uneven.values():
                for dim in layout.uneven_dims:
                    parts_of[layout.shape[dim]].add(layout.parts(dim))
            multiples = {(size, each): lcm(*parts) for size, parts in parts_of.items() for each in parts}
            padded = {layout: replace(layout, multiples=multiples) for layout in {*uneven.values()}}
            self._layouts.update({value: padded[layout] for value, layout in uneven.items()})

    def of_all(self, values: Sequence[SSAValue]) -> tuple[Layout, ...]:
        """Return the layouts of `values`."""
        return tuple(self._layouts[value] for value in values)

    def of_function_results(self, function: FuncOp) -> list[Layout]:
        """Return the layouts of the results of `function`, by its signature."""
        types = function.function_type.outputs.data
        return [self._layout(type_, func_result_sharding(function, index)) for index, type_ in enumerate(types)]

    def conversions(self, target: Target) -> Iterator[OpConversion[Operation]]:
        """Yield a conversion for each operation with operands or results, in program order."""
        manual_axes = ManualAxes(self._module)
        for op in operations(self._module):
            if op.operands or op.results:
                around = tuple(manual_axes.around(op))
                yield OpConversion(op, self.of_all(op.operands), self.of_all(op.results), target, around)

    def change_types(self, type_of: TypeOf) -> None:
        """Change the types of all sharded values and of function signatures to those that `type_of` returns."""
        results = {
            name: [type_of(layout, function) for layout in self.of_function_results(function)]
            for name, function in self.functions.items()
        }
        for value, layout in self._layouts.items():
            if layout.is_split and (type_ := type_of(layout, value)) != value.type:
                change_type(value, type_)
        for name, function in self.functions.items():
            inputs = (
                [argument.type for argument in function.args]
                if function.body.blocks
                else function.function_type.inputs.data
            )
            function.function_type = FunctionType.from_lists(inputs, results[name])

    def _layout(self, type_: Attribute, sharding: TensorSharding | None) -> Layout:
        # Called for every value; the many layers of a model share few types and shardings.
        layout = self._shared.get((id(type_), sharding))
        if layout is None:
            layout = Layout(type_, sharding, mesh_of_devices(sharding, self._module)) if sharding else Layout(type_)
            self._shared[id(type_), sharding] = layout
        return layout
