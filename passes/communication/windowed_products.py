"""Products that devices compute in parts, while the other parts of an operand or of the result move around a ring."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.dialect.meshes import device_count, enclosing_module
from sdy.interpreter.grid import Grid
from sdy.interpreter.groups import groups_of
from sdy.ir.editing import erase, replace
from sdy.ir.shapes import shape_of, tensor_of
from sdy.ir.walking import operations_of
from sdy.passes.spmd.local_module import Channels
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.rules import sharding_rule
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import AllGatherOp, CollectivePermuteOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.emitter import Emitter, before
from sdy.stablehlo.reducing_collectives import ReduceScatterOp

_LARGEST_RING = 16
"""The most devices of a ring: its steps are unrolled."""


@dataclass(frozen=True)
class Windowed(ABC):
    """A collective with the products that can be computed in parts, one part in each step of a ring."""

    collective: Operation

    ring: "_Ring"
    """The devices of each replica group."""

    @property
    @abstractmethod
    def products(self) -> Sequence[DotGeneralOp]:
        """The products."""

    @abstractmethod
    def expand(self, channels: Channels) -> None:
        """Replace the collective and the products by permutes and products of parts."""

    @property
    def kind(self) -> Hashable:
        """A key that is equal for collectives of equal types with equal products, as those of a model's layers."""
        products = [(*op.operand_types, op.dot_dimension_numbers) for op in self.products]
        properties = [value for name, value in self.collective.properties.items() if name != "channel_handle"]
        return self.collective.name, *self.collective.operand_types, *properties, *products


def windowed_products(module: ModuleOp) -> Iterator[Windowed]:
    """Yield the collectives of a partitioned module that can be windowed."""
    for op in operations_of(module, AllGatherOp, ReduceScatterOp):
        ring = _Ring.of(op)
        if ring is not None and 2 <= ring.size <= _LARGEST_RING:
            each = _gathered(op, ring) if isinstance(op, AllGatherOp) else _scattered(op, ring)
            if each is not None:
                yield each


@dataclass(frozen=True)
class _Ring:
    """The devices of each replica group in a ring, in which each sends to the one before it."""

    size: int
    places: Sequence[int]
    """The place of each device in its group."""
    pairs: Sequence[tuple[int, int]]
    """The sources and targets of a step."""

    @classmethod
    def of(cls, collective: Operation) -> "_Ring | None":
        """Return the ring of a collective; None if some devices are in no group."""
        module = enclosing_module(collective)
        assert module is not None
        devices = device_count(module)
        groups = [[device.partition for device in group] for group in groups_of(collective, Grid(1, devices))]
        places = {device: place for group in groups for place, device in enumerate(group)}
        pairs = [(device, group[place - 1]) for group in groups for place, device in enumerate(group)]
        if [*sorted(places)] != [*range(devices)]:
            return None
        return cls(len(groups[0]), [places[device] for device in range(devices)], pairs)

    def start(self, emit: Emitter, step: int, rows: int) -> SSAValue:
        """Return the first of the `rows` that a device has in a step; in step 0 these are its own."""
        return emit.of_device([(place + step) % self.size * rows for place in self.places])

    def receive(self, emit: Emitter, value: SSAValue, channels: Channels) -> SSAValue:
        """Receive the value of the next device."""
        pairs = DenseIntOrFPElementsAttr.from_list(
            TensorType(i64, (len(self.pairs), 2)), [device for pair in self.pairs for device in pair]
        )
        properties = {"source_target_pairs": pairs, "channel_handle": channels.next()}
        return emit.insert(
            CollectivePermuteOp.create(operands=[value], properties=properties, result_types=[value.type])
        )


@dataclass(frozen=True)
class _Part:
    """A part of a product: `rows` along one of its factors."""

    product: DotGeneralOp
    dims: Sequence[int | None]
    """The dimension of lhs, rhs and result that the factor has; None for a tensor without the factor."""
    rows: int

    @classmethod
    def along(cls, product: DotGeneralOp, tensor: int, dim: int, parts: int) -> "_Part | None":
        """Return the part along dimension `dim` of lhs (0), rhs (1) or result (2); None if sums of it are no sums."""
        rule, element_type = sharding_rule(product), tensor_type(product.result).element_type
        if rule is None or not isinstance(element_type, AnyFloat | IntegerType) or element_type == i1:
            return None
        tensors = [*rule.operands, *rule.results]
        [factor] = tensors[tensor][dim]
        dims = [next((d for d, factors in enumerate(each) if factor in factors), None) for each in tensors]
        return cls(product, dims, rule.factor_sizes[factor] // parts)

    def multiply(
        self, emit: Emitter, operands: Sequence[SSAValue], start: SSAValue, element_type: Attribute
    ) -> SSAValue:
        """Multiply the operands, and of those that are not parts yet the rows from `start`."""
        parts = [self._part(emit, value, dim, start) for value, dim in zip(operands, self.dims, strict=False)]
        product, result_dim = self.product, self.dims[2]
        shape = [self.rows if dim == result_dim else size for dim, size in enumerate(shape_of(product.result))]
        return emit.insert(
            DotGeneralOp.create(
                operands=parts,
                properties=product.properties,
                attributes=product.attributes,
                result_types=[tensor_of(element_type, shape)],
            )
        )

    def place(self, emit: Emitter, whole: SSAValue, part: SSAValue, start: SSAValue) -> SSAValue:
        """Write a part of the result to the rows from `start`."""
        dim = self.dims[2]
        assert dim is not None
        return emit.dynamic_update_slice(whole, part, _starts(emit, whole, dim, start))

    def _part(self, emit: Emitter, value: SSAValue, dim: int | None, start: SSAValue) -> SSAValue:
        sizes = [*shape_of(value)]
        if dim is None or sizes[dim] == self.rows:
            return value
        sizes[dim] = self.rows
        return emit.dynamic_slice(value, _starts(emit, value, dim, start), sizes)


def _starts(emit: Emitter, value: SSAValue, dim: int, start: SSAValue) -> Sequence[SSAValue]:
    zero = emit.integers([0], ())
    return [start if each == dim else zero for each in range(len(shape_of(value)))]


@dataclass(frozen=True)
class _Gathered(Windowed):
    """An all-gather of an operand of products: each shard is multiplied when it arrives."""

    collective: AllGatherOp
    parts: Sequence[_Part]

    @property
    def products(self) -> Sequence[DotGeneralOp]:
        return [part.product for part in self.parts]

    def expand(self, channels: Channels) -> None:
        emit, [gathered] = before(self.collective), self.collective.results
        shards = [self.collective.operands[0]]
        while len(shards) < self.ring.size:
            shards.append(self.ring.receive(emit, shards[-1], channels))
        for part in self.parts:
            product = self._sum if part.dims[2] is None else self._rows
            replace(part.product, [product(part, shards)])
        if gathered.first_use is None:
            erase(self.collective)
        else:
            replace(self.collective, [self._whole(emit, shards)])

    def _rows(self, part: _Part, shards: Sequence[SSAValue]) -> SSAValue:
        """Return a product whose rows are those of the shards."""
        emit, result = before(part.product), part.product.result
        whole = emit.filled(tensor_type(result), 0)
        for step, shard in enumerate(shards):
            start = self.ring.start(emit, step, part.rows)
            rows = part.multiply(emit, self._operands(part, shard), start, tensor_type(result).element_type)
            whole = part.place(emit, whole, rows, start)
        return whole

    def _sum(self, part: _Part, shards: Sequence[SSAValue]) -> SSAValue:
        """Return a product that sums over the gathered dimension; narrow floats are summed in 32 bits."""
        emit, element_type = before(part.product), tensor_type(part.product.result).element_type
        is_narrow = isinstance(element_type, AnyFloat) and element_type.bitwidth < f32.bitwidth
        total: SSAValue | None = None
        for step, shard in enumerate(shards):
            start = self.ring.start(emit, step, part.rows)
            term = part.multiply(emit, self._operands(part, shard), start, f32 if is_narrow else element_type)
            total = term if total is None else emit.add(total, term)
        assert total is not None
        return emit.convert(total, element_type)

    def _operands(self, part: _Part, shard: SSAValue) -> Sequence[SSAValue]:
        return [shard if value is self.collective.results[0] else value for value in part.product.operands]

    def _whole(self, emit: Emitter, shards: Sequence[SSAValue]) -> SSAValue:
        """Return the gathered value, which other operations read too."""
        [gathered], dim = self.collective.results, self.collective.all_gather_dim.value.data
        whole = emit.filled(tensor_type(gathered), 0)
        for step, shard in enumerate(shards):
            start = self.ring.start(emit, step, shape_of(shard)[dim])
            whole = emit.dynamic_update_slice(whole, shard, _starts(emit, whole, dim, start))
        return whole


@dataclass(frozen=True)
class _Scattered(Windowed):
    """A reduce-scatter of a product: partial sums move on, and each device adds its product to those that arrive."""

    collective: ReduceScatterOp
    part: _Part

    @property
    def products(self) -> Sequence[DotGeneralOp]:
        return [self.part.product]

    def expand(self, channels: Channels) -> None:
        emit, product = before(self.collective), self.part.product
        total: SSAValue | None = None
        for step in range(1, self.ring.size + 1):
            received = None if total is None else self.ring.receive(emit, total, channels)
            start = self.ring.start(emit, step, self.part.rows)
            term = self.part.multiply(emit, product.operands, start, tensor_type(product.result).element_type)
            total = term if received is None else emit.add(received, term)
        assert total is not None
        replace(self.collective, [total])
        erase(product)


def _gathered(gather: AllGatherOp, ring: _Ring) -> _Gathered | None:
    if len(gather.operands) != 1:
        return None
    found: list[_Part] = []
    for use in gather.results[0].uses:
        product = use.operation
        if isinstance(product, DotGeneralOp) and product.lhs is not product.rhs and product.parent is gather.parent:
            part = _Part.along(product, use.index, gather.all_gather_dim.value.data, ring.size)
            found += [] if part is None else [part]
    return _Gathered(gather, ring, found) if found else None


def _scattered(scatter: ReduceScatterOp, ring: _Ring) -> _Scattered | None:
    product, is_sum = scatter.operand.owner, region_reduction(scatter.computation) == "sum"
    if not isinstance(product, DotGeneralOp) or product.parent is not scatter.parent or not is_sum:
        return None
    part = _Part.along(product, 2, scatter.scatter_dimension.value.data, ring.size)
    return _Scattered(scatter, ring, part) if part is not None and product.result.has_one_use() else None
