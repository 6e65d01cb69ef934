"""Windows that slide along split dimensions: reductions of windows and convolutions.

Each device computes the windows of its part of the result. What these cover of the operand, padding and the holes that
dilation makes included, is brought together first, so that there the windows of the device have neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from sdy.dialect.attributes import SHARDING
from sdy.dialect.shardings import get_sharding
from sdy.passes.common.tensors import rank
from sdy.passes.partitioning.emitter import with_shape
from sdy.passes.partitioning.halo.body import Body, Tensor
from sdy.passes.partitioning.halo.exchange import DimExchange, Filler
from sdy.passes.partitioning.halo.reach import Exchange, Reach
from sdy.passes.partitioning.halo.resolution import (
    Resolution,
    captures,
    cut_off,
    filled_up,
    filler_of,
    layout_of,
    padded_along,
    zero_filler,
)
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.parts import shape_of
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.windows import WindowDimension, dilated
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.reduce_window import ReduceWindowOp


@dataclass(frozen=True)
class Slide:
    """A window along dimension `before` of the operands that windows slide over, and dimension `after` of results."""

    window: WindowDimension
    before: int
    after: int

    def part(self, operand: Layout, result: Layout) -> tuple[Reach, WindowDimension]:
        """What each part of the result needs of the operand, and the window that slides over that.

        Holes between the rows stay those of the window where all parts begin alike between two rows.
        """
        window, parts, places = self.window, operand.parts(self.before), result.shape[self.after]
        assert window.size is not None
        size, dilation, low = operand.shape[self.before], window.base_dilation, window.padding[0]
        of_part = -(-places // parts)
        step, width = of_part * window.stride, dilated(window.size, window.window_dilation)
        length, total = ((count - 1) * window.stride + width for count in (of_part, places))
        lead = low % dilation
        if step % dilation or length <= lead:
            reach = Reach.steady(size, parts, low, step, length, total, dilation)
            return reach, replace(window, padding=(0, 0), base_dilation=1)
        rows, all_rows = (-(-(count - lead) // dilation) for count in (length, total))
        tail = length - lead - dilated(rows, dilation)
        reach = Reach.steady(size, parts, low // dilation, step // dilation, rows, all_rows)
        return reach, replace(window, padding=(lead, tail))


def resolve_reduce_window(op: ReduceWindowOp, resolution: Resolution) -> bool:
    """What is outside of an input counts as its init value."""
    slides = [Slide(window, dim, dim) for dim, window in enumerate(op.window())]
    return _Windows(op, op.inputs, op.init_values, slides, "base_dilations").resolve(resolution)


def resolve_convolution(op: ConvolutionOp, resolution: Resolution) -> bool:
    """What is outside of the input is zero."""
    numbers = op.dimension_numbers.data
    if any(layout_of(op.rhs).axes[dim] for dim in numbers.kernel_spatial_dimensions):
        return False
    spatial = numbers.input_spatial_dimensions, numbers.output_spatial_dimensions
    slides = [Slide(*each) for each in zip(op.window(op.padding), *spatial, strict=True)]
    return _Windows(op, (op.lhs,), (), slides, "lhs_dilation").resolve(resolution)


@dataclass(frozen=True)
class _Windows:
    """An operation, the operands that its windows slide over, and what is outside of each: zero where none is given.

    `dilation` is the name of the property that says how far apart the rows of these operands stand.
    """

    op: ReduceWindowOp | ConvolutionOp
    operands: Sequence[SSAValue]
    outside: Sequence[SSAValue]
    slides: Sequence[Slide]
    dilation: str

    def resolve(self, resolution: Resolution) -> bool:
        """Let devices exchange what their windows cover; False if they cannot, or that is too much."""
        operands, results = ([layout_of(value) for value in values] for values in (self.operands, self.op.results))
        operand, result = operands[0], results[0]
        moving = [slide for slide in self.slides if operand.axes[slide.before] or result.axes[slide.after]]
        if (
            any(layout.axes != operand.axes for layout in operands)
            or any(layout.axes != result.axes for layout in results)
            or any(operand.axes[slide.before] != result.axes[slide.after] for slide in moving)
            or any(layout.mesh != operand.mesh for layout in map(layout_of, self._tensors) if layout.is_split)
            or 0 in (*operand.shape, *result.shape)
            or captures(self.op)
        ):
            return False
        parts = {slide: slide.part(operand, result) for slide in moving}
        exchanges = {
            slide: resolution.plan(reach)
            for slide, (reach, _) in parts.items()
            if not reach.is_identity or slide.before in operand.uneven_dims or slide.after in result.uneven_dims
        }
        if not all(exchange.pays for exchange in exchanges.values()) or self._shares_axes(exchanges):
            return False
        if exchanges:
            windows = [parts[slide][1] if slide in exchanges else slide.window for slide in self.slides]
            self._compute(exchanges, windows, resolution)
        return True

    @property
    def _tensors(self) -> Sequence[SSAValue]:
        return (*self.op.operands, *self.op.results)

    def _axis_names(self, exchanges: Mapping[Slide, Exchange]) -> set[str]:
        axes = layout_of(self.operands[0]).axes
        return {axis.name for slide in exchanges for axis in axes[slide.before]}

    def _shares_axes(self, exchanges: Mapping[Slide, Exchange]) -> bool:
        """Whether an axis along which there is an exchange, or a part of it, splits another dimension as well."""
        names = self._axis_names(exchanges)
        for value in self._tensors:
            slid = {slide.before if value in self.operands else slide.after for slide in exchanges}
            may_move = value in self.operands or value in self.op.results
            for dim, axes in enumerate(layout_of(value).axes):
                if not (may_move and dim in slid) and any(axis.name in names for axis in axes):
                    return True
        return False

    def _compute(
        self, exchanges: Mapping[Slide, Exchange], windows: Sequence[WindowDimension], resolution: Resolution
    ) -> None:
        op, mesh_name = self.op, _sharding(self.operands[0]).mesh
        fillers = [filler_of(value) for value in self.outside] or [zero_filler(op, self.operands[0])]
        filled = {
            value: filled_up(
                op, value, padded_along(value, [slide.before for slide in exchanges]), filler, _sharding(value)
            )
            for value, filler in zip(self.operands, fillers, strict=True)
        }
        tensors: list[Tensor] = [
            (
                filled.get(value, value),
                get_sharding(value) or TensorSharding.replicated_closed(mesh_name, rank(value.type)),
            )
            for value in op.operands
        ]
        scalar = TensorSharding.replicated_open(mesh_name, 0)
        devices = resolution.devices(layout_of(self.operands[0]).mesh)
        all_tensors = [*tensors, *((filler.value, scalar) for filler in fillers)]
        body = Body(op, all_tensors, self._axis_names(exchanges), devices)
        count = len(op.operands)
        operands, inner_fillers = list(body.arguments[:count]), body.arguments[count:]
        for index, (filler, inner) in enumerate(zip(fillers, inner_fillers, strict=True)):
            for slide, exchange in exchanges.items():
                dim_exchange = DimExchange(body, tensors[index][1], slide.before, Filler(inner, filler.is_zero))
                operands[index] = dim_exchange.run(operands[index], exchange)
        types = [
            with_shape(result, padded_along(result, [slide.after for slide in exchanges])) for result in op.results
        ]
        shardings = [_sharding(result) for result in op.results]
        local = type(op).create(
            operands=operands,
            properties=op.properties | self._properties(windows),
            attributes={name: value for name, value in op.attributes.items() if name != SHARDING},
            result_types=[body.local_type(*each) for each in zip(types, shardings, strict=True)],
            regions=[op.detach_region(region) for region in op.regions],
        )
        body.compute(local, shardings)
        outside = body.finish(local.results, types, shardings)
        results = zip(outside, op.results, shardings, strict=True)
        Rewriter.replace_op(op, [], [cut_off(op, value, shape_of(old), sharding) for value, old, sharding in results])

    def _properties(self, windows: Sequence[WindowDimension]) -> dict[str, Attribute]:
        padding = [size for window in windows for size in window.padding]
        return {
            "padding": DenseIntOrFPElementsAttr.from_list(TensorType(i64, (len(windows), 2)), padding),
            self.dilation: i64_array(*(window.base_dilation for window in windows)),
        }


def _sharding(value: SSAValue) -> TensorSharding:
    sharding = get_sharding(value)
    assert sharding is not None
    return sharding
