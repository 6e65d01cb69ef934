"""StableHLO and CHLO, MLIR's dialects of machine learning programs, as xDSL dialects: a file for each family.

A program loads the families that it names. Code that works with a few operations imports them from the files of their
families; any can be had from here by the name of its MLIR class, which loads them all.

types/        what tensors and other values are
attributes/   what operations say besides their operands
syntax/       the pieces of syntax that operations share
checks/       what verifiers of several families check and infer
chlo/         the other dialect, CHLO
classes.py    all operations and attributes together
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sdy.ir.families import FamilyDialect

if TYPE_CHECKING:
    from sdy.stablehlo.classes import *  # noqa: F403

STABLEHLO = FamilyDialect(
    "stablehlo",
    __name__,
    operations={
        "asynchronous": "async_done async_start",
        "batch_norm": "batch_norm_grad batch_norm_inference batch_norm_training",
        "broadcast": "broadcast broadcast_in_dim dynamic_broadcast_in_dim",
        "collectives": "all_gather all_to_all collective_broadcast collective_permute",
        "composite": "composite",
        "constants": "constant iota partition_id replica_id",
        "control_flow": "case if optimization_barrier return while",
        "convolution": "convolution dynamic_conv",
        "custom_call": "custom_call",
        "dot": "dot dot_general",
        "dynamic_shape": "dynamic_iota dynamic_reshape get_dimension_size set_dimension_size",
        "einsum": "einsum unary_einsum",
        "elementwise": """
            abs add and atan2 cbrt ceil convert cosine count_leading_zeros divide exponential exponential_minus_one
            floor imag log log_plus_one logistic maximum minimum multiply negate not or popcnt power real remainder
            round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine
            sqrt subtract tan tanh xor
        """,
        "fft": "fft",
        "gather": "dynamic_gather gather torch_index_select",
        "linear_algebra": "cholesky triangular_solve",
        "mapping": "map",
        "mixed_elementwise": "clamp compare complex is_finite reduce_precision select",
        "padding": "dynamic_pad pad",
        "quantize": "uniform_dequantize uniform_quantize",
        "random": "rng rng_bit_generator",
        "reduce_window": "reduce_window",
        "reducing_collectives": "all_reduce collective_reduce cross-replica-sum reduce_scatter",
        "reduction": "reduce",
        "scatter": "scatter",
        "select_and_scatter": "select_and_scatter",
        "shape": "bitcast_convert concatenate reshape reverse transpose",
        "slicing": "dynamic_slice dynamic_update_slice real_dynamic_slice slice",
        "sort": "sort",
        "tokens": "after_all create_token infeed outfeed recv send",
        "tuples": "get_tuple_element tuple",
    },
    attributes={
        "attributes.conv_dimensions": "conv",
        "attributes.dot_algorithm": "dot_algorithm",
        "attributes.enums": """
            comparison_direction comparison_type fft_type precision result_accuracy_mode rng_algorithm rng_distribution
            transpose
        """,
        "attributes.operation_attributes": """
            bounds channel_handle dot gather output_operand_alias result_accuracy scatter type_extensions
        """,
        "attributes.replica_groups": "axis_ref mesh mesh_axis replica_group_mesh_axes",
        "types.special": "future token",
    },
)


def __getattr__(name: str) -> Any:
    if not name[0].isupper():
        raise AttributeError(f"module '{__name__}' has no class '{name}'")
    return getattr(import_module(f"{__name__}.classes"), name)
