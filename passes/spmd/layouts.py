"""The layouts of all values of a module, and the change of all their types at once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import lcm

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.editing import change_type
from sdy.ir.walking import operations, operations_at_top
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.spmd.layout import Layout, mesh_of_devices
from sdy.passes.spmd.site import Site
from sdy.passes.spmd.target import Target
from sdy.sharding import TensorSharding

TypeOf = Callable[[Layout, SSAValue | Operation], Attribute]
"""The new type of a value, or of a result of a function."""


_Way = tuple[int, int]
"""The size of a dimension, and the number of parts that it is split into."""


class Layouts:
    """The layouts of all values of a module, as its shardings say when this is made."""

    def __init__(self, module: ModuleOp):
        self.functions = {op.sym_name.data: op for op in operations_at_top(module) if isinstance(op, FuncOp)}
        self._module = module
        self._shared: dict[tuple[int, TensorSharding | None], Layout] = {}
        """By the address of the type, which the layout keeps in memory, and the sharding."""
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
        """Whether a dimension of a value, or of a result that a function's signature gives, is split unevenly."""
        results = (layout for function in self.functions.values() for layout in self.of_function_results(function))
        return any(layout.uneven_dims for layout in (*results, *self._shared.values()))

    def pad_alike(self, where_resharded: bool = False) -> None:
        """Let a size that is split unevenly in several ways have one padded size, so that one way becomes another.

        With `where_resharded`, only where a collective makes one way of another: a device has no more padding, which it
        would send along, than it needs. That is so in each function: values that go from one to another are not padded.
        """
        for function in self.functions.values():
            uneven = {value: layout for value in _values(function) if (layout := self._layouts[value]).uneven_dims}
            ways = {(layout.shape[dim], layout.parts(dim)) for layout in uneven.values() for dim in layout.uneven_dims}
            multiples = _multiples(ways, self._resharded(function) if where_resharded else combinations(ways, 2))
            padded = {layout: replace(layout, multiples=multiples) for layout in {*uneven.values()}}
            self._layouts.update({value: padded[layout] for value, layout in uneven.items()})

    def _resharded(self, function: FuncOp) -> Iterator[tuple[_Way, _Way]]:
        """The ways before and after each collective."""
        for op in operations(function):
            if isinstance(op, CollectiveOp):
                before, after = self._layouts[op.tensor], self._layouts[op.result]
                for dim, size in enumerate(before.shape):
                    yield (size, before.parts(dim)), (size, after.parts(dim))

    def of_all(self, values: Sequence[SSAValue]) -> tuple[Layout, ...]:
        """The layouts of `values`."""
        return tuple(self._layouts[value] for value in values)

    def of_function_results(self, function: FuncOp) -> list[Layout]:
        """The layouts that the signature of `function` gives its results."""
        types = function.function_type.outputs.data
        return [self._layout(type_, func_result_sharding(function, index)) for index, type_ in enumerate(types)]

    def sites(self, target: Target) -> Iterator[Site[Operation]]:
        """The operations that have operands or results, in the order of the text."""
        manual_axes = ManualAxes(self._module)
        for op in operations(self._module):
            if op.operands or op.results:
                around = tuple(manual_axes.around(op))
                yield Site(op, self.of_all(op.operands), self.of_all(op.results), target, around)

    def change_types(self, type_of: TypeOf) -> None:
        """Give each value that is split, and each function's signature, the types that `type_of` says."""
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
        # Asked for every value, of which the many layers of a model have few types and shardings.
        layout = self._shared.get((id(type_), sharding))
        if layout is None:
            layout = Layout(type_, sharding, mesh_of_devices(sharding, self._module)) if sharding else Layout(type_)
            self._shared[id(type_), sharding] = layout
        return layout


def _values(function: FuncOp) -> Iterator[SSAValue]:
    """The values in `function`."""
    for op in operations(function):
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _multiples(ways: Collection[_Way], pairs: Iterable[tuple[_Way, _Way]]) -> dict[_Way, int]:
    """For each of `ways` what its padded size is a multiple of, where one of each of `pairs` becomes the other.

    Those with other sizes, or that are not among `ways`, have nothing to do with each other.
    """
    together = {way: {way} for way in ways}
    for one, other in pairs:
        if one[0] == other[0] and one in together and other in together:
            joined = together[one] | together[other]
            together.update(dict.fromkeys(joined, joined))
    return {way: lcm(*(parts for _, parts in joined)) for way, joined in together.items()}
