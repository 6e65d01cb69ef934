"""`sdy-top-k-in-stages`: two-stage top-k along a sharded dimension, of each shard and then of the candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, IntegerAttr, ModuleOp, SymbolRefAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import invalidate, operations_of
from sdy.passes.common.properties import element_bytes
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.emit.exchange_builder import TensorEmitter
from sdy.passes.spmd.emit.operation_reshards import reshard_around
from sdy.passes.spmd.emit.resolution import layout_of
from sdy.passes.spmd.stages import Cut, with_parts
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.attributes.operation_attributes import (
    GatherDimensionNumbers,
    GatherDimensionNumbersAttr,
    i64_array,
)
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.chlo.creation import TopKOp
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.control_flow import ReturnOp
from sdy.stablehlo.custom_call import APPROXIMATE_TOP_K, CustomCallOp
from sdy.stablehlo.elementwise import MulOp
from sdy.stablehlo.emitter import Emitter, with_shape
from sdy.stablehlo.gather import GatherOp
from sdy.stablehlo.sort import SortOp

_CONFIG = "mhlo.backend_config"


@dataclass(frozen=True)
class TopKInStagesPass(AnalysisPreservingPass):
    """Compute top-k of a sharded dimension in each shard first, if the candidates are fewer bytes than the operand.

    The pass rewrites `chlo.top_k` and calls of `@ApproxTopK`, which also computes the smallest elements. A candidate is
    an element and its index. Before::

        sdy.mesh @mesh = <["x"=4]>
        ... %0: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}
        %values, %indices = chlo.top_k(%0, k = 16)

    After, shortened::

        %1 = stablehlo.reshape %0 [{}, {"x"}, {}] : tensor<8x4x256xf32>
        %2, %3 = chlo.top_k(%1, k = 16) [{}, {"x"}, {}]
        %4 = stablehlo.add %3, index of the first element of each part
        %5, %6 = stablehlo.reshape %2, %4 [{}, {"x"}] : tensor<8x64xf32>, tensor<8x64xi32>
        %values, %7 = chlo.top_k(%5, k = 16)
        %indices = "stablehlo.gather"(%6, %7)

    The order of equal elements is preserved. An uneven dimension is unchanged.
    """

    name = "sdy-top-k-in-stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for exact in operations_of(op, TopKOp):
            if search := _Search.of(exact, [exact.operand], len(shape(exact.operand.type)) - 1, exact.k.value.data):
                _replace_exact(exact, search)
        symbols = Symbols(op)
        for call in operations_of(op, CustomCallOp):
            config = call.attributes.get(_CONFIG)
            if call.call_target_name.data != APPROXIMATE_TOP_K or not isinstance(config, DictionaryAttr):
                continue
            numbers = {name: value.value.data for name, value in config.data.items() if isinstance(value, IntegerAttr)}
            [comparator] = call.called_computations.data
            body = symbols.function(comparator.string_value()) if isinstance(comparator, SymbolRefAttr) else None
            if body is None or not numbers["aggregate_to_topk"]:
                continue
            if search := _Search.of(call, call.operands[:2], numbers["reduction_dim"], numbers["top_k"]):
                _replace_approximate(call, search, config, body)


@dataclass(frozen=True)
class _Search:
    """A top-k search along the sharded dimension of `cut`, with shards of `size` elements."""

    op: Operation
    inputs: Sequence[SSAValue]
    cut: Cut
    k: int
    size: int
    sharding: TensorSharding

    @classmethod
    def of(cls, op: Operation, inputs: Sequence[SSAValue], dim: int, k: int) -> "_Search | None":
        """Return the search of `op`; None if stages are not supported or the candidates are not fewer bytes."""
        layout = layout_of(inputs[0])
        if layout.sharding is None or layout.sharding.unreduced or not is_static_tensor(inputs[0].type):
            return None
        size, parts = layout.shape[dim], layout.parts(dim)
        of_value, of_index = (element_bytes(result.type) for result in op.results)
        if parts == 1 or size % parts or k * parts * (of_value + of_index) >= size * of_value:
            return None
        return cls(op, inputs, Cut(dim, parts, layout.axes[dim]), k, size // parts, layout.sharding)

    @property
    def by_part(self) -> TensorSharding:
        """The sharding of tensors with a separate dimension of parts."""
        dim = self.cut.dim
        return with_parts(self.sharding.with_dim(dim, DimSharding()), dim, self.cut.axes)

    def emitter(self, sharding: TensorSharding) -> TensorEmitter:
        """Return an emitter in front of the search, for results with this sharding."""
        return TensorEmitter(InsertPoint.before(self.op), self.op, sharding)

    def parts(self) -> list[SSAValue]:
        """Reshard the inputs like the first one and split them into parts."""
        same = [None if equivalent(get_sharding(value), self.sharding) else self.sharding for value in self.inputs]
        reshard_around(self.op, same)
        emit = Emitter(InsertPoint.before(self.op), self.op)
        return [self.cut.apply(value, emit) for value in self.op.operands[: len(self.inputs)]]

    def candidates_shape(self) -> list[int]:
        """Return the shape of the candidates, with a separate dimension of parts."""
        sizes = list(shape(self.op.results[0].type))
        sizes.insert(self.cut.dim, self.cut.count)
        return sizes

    def add_candidates(self, search: Operation) -> None:
        """Insert the first stage, the search in each part."""
        self.emitter(self.by_part).insert(search)
        for result in search.results:
            set_sharding(result, self.by_part)

    def side_by_side(self, value: SSAValue) -> SSAValue:
        """Merge the candidates of all parts into one dimension."""
        sizes = list(shape(value.type))
        sizes[self.cut.dim : self.cut.dim + 2] = [self.cut.count * self.k]
        return self.emitter(self.sharding).reshape(value, sizes)


def _replace_exact(op: TopKOp, search: _Search) -> None:
    invalidate(op)
    sizes = search.candidates_shape()
    first_stage = TopKOp.create(
        operands=search.parts(),
        properties=op.properties,
        result_types=[with_shape(result, sizes) for result in op.results],
    )
    search.add_candidates(first_stage)
    emit = search.emitter(search.by_part)
    indices = tensor_type(first_stage.indices)
    part = emit.insert(
        IotaOp.create(properties={"iota_dimension": IntegerAttr(search.cut.dim, i64)}, result_types=[indices])
    )
    first = emit.binary(MulOp, part, emit.filled(indices, search.size))
    places = search.side_by_side(emit.add(first_stage.indices, first))
    total = TopKOp.create(
        operands=[search.side_by_side(first_stage.values)],
        properties=op.properties,
        attributes=op.attributes,
        result_types=op.result_types,
    )
    Rewriter.insert_op(total, InsertPoint.before(op))
    batch = tuple(range(search.cut.dim))
    numbers = GatherDimensionNumbers(
        collapsed_slice_dims=(search.cut.dim,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
        start_index_map=(search.cut.dim,),
        index_vector_dim=len(sizes) - 1,
    )
    gather = GatherOp.create(
        operands=[places, total.indices],
        properties={
            "dimension_numbers": GatherDimensionNumbersAttr(numbers),
            "slice_sizes": i64_array(*[1] * (len(sizes) - 1)),
        },
        result_types=[op.indices.type],
    )
    Rewriter.insert_op(gather, InsertPoint.before(op))
    if sharding := get_sharding(op.indices):
        set_sharding(gather.result, sharding)
    Rewriter.replace_op(op, [], [total.values, gather.result])


def _replace_approximate(op: CustomCallOp, search: _Search, config: DictionaryAttr, comparator: FuncOp) -> None:
    """Search each part approximately, with the recall target of the full dimension, and sort the candidates."""
    invalidate(op)
    dim = search.cut.dim
    in_parts = dict(config.data)
    in_parts["reduction_dim"] = IntegerAttr(dim + 1, i64)
    in_parts["reduction_input_size_override"] = IntegerAttr(search.cut.count * search.size, i64)
    sizes = search.candidates_shape()
    first_stage = CustomCallOp.create(
        operands=[*search.parts(), *op.operands[2:]],
        properties=op.properties,
        attributes={_CONFIG: DictionaryAttr(in_parts)},
        result_types=[with_shape(result, sizes) for result in op.results],
    )
    search.add_candidates(first_stage)
    candidates = [search.side_by_side(value) for value in first_stage.results]
    ordered = SortOp.create(
        operands=candidates,
        properties={"dimension": IntegerAttr(dim, i64), "is_stable": BoolAttr.from_bool(True)},
        result_types=[value.type for value in candidates],
        regions=[_region(comparator)],
    )
    Rewriter.insert_op(ordered, InsertPoint.before(op))
    wanted = [get_sharding(result) for result in op.results]
    limits = shape(op.results[0].type)
    results: list[SSAValue] = []
    for value, sharding in zip(ordered.results, wanted, strict=True):
        sharding = sharding or TensorSharding.replicated_closed(search.sharding.mesh, len(limits))
        set_sharding(value, sharding.with_dim(dim, DimSharding()))
        results.append(search.emitter(sharding).slice(value, [0] * len(limits), limits))
    Rewriter.replace_op(op, [], results)


def _region(function: FuncOp) -> Region:
    """Return the body of `function` as the region of an operation."""
    region = function.body.clone()
    terminator = region.block.last_op
    assert terminator is not None
    Rewriter.replace_op(terminator, ReturnOp.create(operands=terminator.operands))
    return region
