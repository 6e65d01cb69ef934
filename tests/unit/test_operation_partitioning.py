"""The registry of partitioning by operation: the entries of families, and of a third-party dialect."""

from itertools import product

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.utils.test_value import create_ssa_value

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.driver import run_passes
from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
from sdy.passes.partitioning.pad_for_divisibility import PadForDivisibilityPass
from sdy.passes.partitioning.resolve_permutation_factors import ResolvePermutationFactorsPass
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.operation_partitioning import OperationPartitioning
from sdy.passes.spmd.emit.resolution import Resolution
from sdy.passes.spmd.ops import partitioning_of, register_partitioning
from sdy.passes.spmd.shards.layout import Layout
from sdy.rules import RuleBuilder, register, shape_of
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.elementwise import NegOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp
from sdy.text import context, format, parse

MESH = Mesh.of({"x": 2})
SPLIT = TensorSharding(MESH, (DimSharding((AxisRef("x"),)),))


@irdl_op_definition
class MirrorOp(IRDLOperation):
    name = "ours.mirror"
    input = operand_def(TensorType)
    result = result_def(TensorType)


MIRRORED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = "ours.mirror"(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
      : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_an_operation_from_outside_is_exchanged_padded_and_lowered_as_it_says():
    asked: list[str] = []

    @register(MirrorOp.name)
    def rule(op: MirrorOp, rule: RuleBuilder) -> None:
        rule.add_pointwise(shape_of(op.result))

    def exchange(op: MirrorOp, resolution: Resolution) -> bool:
        asked.append("exchange")
        return True

    def pad(conversion: PaddedConversion[MirrorOp]) -> bool:
        asked.append(f"pad to {conversion.results[0].padded_shape}")
        return True

    def lower(conversion: OpConversion[MirrorOp]) -> None:
        asked.append("lower")
        conversion.replace(
            conversion.before().insert(
                NegOp.create(operands=conversion.op.operands, result_types=conversion.op.result_types)
            )
        )

    partitioning = OperationPartitioning(exchange=exchange, pad=pad, lower=lower)
    register_partitioning(MirrorOp, partitioning)
    with pytest.raises(ValueError, match=r"'ours\.mirror' operations already have a registered partitioning"):
        register_partitioning(MirrorOp, partitioning)

    ctx = context()
    ctx.load_op(MirrorOp)
    module = parse(MIRRORED, ctx=ctx)
    passes = [ResolvePermutationFactorsPass(), PadForDivisibilityPass(pad_function_io=True), ConvertGlobalToLocalPass()]
    run_passes(module, passes, ctx=ctx)
    assert asked == ["exchange", "pad to (4,)", "lower"]
    assert "stablehlo.negate %arg0 : tensor<2xf32>" in format(module)


def illegality(op: Operation) -> Illegality | None:
    before, after = (Layout(value.type, SPLIT, MESH) for value in (op.operands[0], op.results[0]))
    operands = [before, *(Layout(value.type) for value in op.operands[1:])]
    return partitioning_of(op).illegality(op, operands, [after])


def test_a_slice_is_computed_in_parts_where_all_that_a_part_takes_is_its_own():
    value = create_ssa_value(TensorType(f32, [8]))
    outcomes = set[bool]()
    for start, size, stride in product(range(8), (2, 4), (1, 2, 3)):
        limit = start + (size - 1) * stride + 1
        if limit > 8:
            continue
        properties = {
            "start_indices": i64_array(start),
            "limit_indices": i64_array(limit),
            "strides": i64_array(stride),
        }
        op = SliceOp.create(operands=[value], properties=properties, result_types=[TensorType(f32, [size])])
        stays = all((start + place * stride) // 4 == place // (size // 2) for place in range(size))
        assert (illegality(op) is None) == stays, (start, limit, stride)
        outcomes.add(stays)
    assert outcomes == {True, False}


def test_a_pad_is_computed_in_parts_where_all_that_a_part_shows_is_its_own():
    value, zero = create_ssa_value(TensorType(f32, [6])), create_ssa_value(TensorType(f32, []))
    outcomes = set[bool]()
    for low, high, interior in product(range(-7, 8), range(-7, 8), range(3)):
        size = low + high + 6 + 5 * interior
        if size <= 0 or size % 2:
            continue
        op = PadOp(value, zero, [low], [high], [interior])
        places = {low + row * (interior + 1): row for row in range(6)}
        stays = all(row // 3 == place // (size // 2) for place, row in places.items() if 0 <= place < size)
        assert (illegality(op) is None) == stays, (low, high, interior)
        outcomes.add(stays)
    assert outcomes == {True, False}
