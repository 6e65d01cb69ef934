"""StableHLO and CHLO as xDSL dialects, one file per family of operations.

Parsing a program loads only the families that it uses. Import a few operations from the files of their families; any
operation is also available from here by the name of its MLIR class, which loads all families.

types/        element types, tensor types, quantized, sparse and bounded types
attributes/   enumerations, dimension numbers, windows, replica groups
syntax/       directives of the assembly formats
checks/       checks and type inference shared by several verifiers
chlo/         the CHLO dialect
classes.py    all operations and attributes
"""

from typing import TYPE_CHECKING

from sdy.ir.lazy_dialects import LazyDialect
from sdy.lazy_names import lazy_names

if TYPE_CHECKING:
    from sdy.stablehlo.classes import *  # noqa: F403

_DEFINITIONS = {
    "asynchronous": "async_done async_start",
    "attributes.conv_dimensions": "conv",
    "attributes.dot_algorithm": "dot_algorithm",
    "attributes.enums": (
        "comparison_direction comparison_type fft_type precision result_accuracy_mode rng_algorithm "
        "rng_distribution transpose"
    ),
    "attributes.operation_attributes": (
        "bounds channel_handle dot gather output_operand_alias result_accuracy scatter type_extensions"
    ),
    "attributes.replica_groups": "axis_ref mesh mesh_axis replica_group_mesh_axes",
    "batch_norm": "batch_norm_grad batch_norm_inference batch_norm_training",
    "broadcast": "broadcast broadcast_in_dim dynamic_broadcast_in_dim",
    "collectives": "all_gather all_to_all collective_broadcast collective_permute",
    "composite": "composite",
    "constants": "constant iota partition_id replica_id",
    "control_flow": "case if optimization_barrier return while",
    "convolution": "convolution dynamic_conv",
    "custom_call": "custom_call",
    "dot": "dot dot_general einsum unary_einsum",
    "dynamic_shape": "dynamic_iota dynamic_reshape get_dimension_size set_dimension_size",
    "elementwise": (
        "abs add and atan2 cbrt ceil convert cosine count_leading_zeros divide exponential exponential_minus_one "
        "floor imag log log_plus_one logistic maximum minimum multiply negate not or popcnt power real remainder "
        "round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign "
        "sine sqrt subtract tan tanh xor"
    ),
    "gather": "dynamic_gather gather torch_index_select",
    "linear_algebra": "cholesky fft triangular_solve",
    "mapping": "map",
    "mixed_elementwise": "clamp compare complex is_finite reduce_precision select uniform_dequantize uniform_quantize",
    "padding": "dynamic_pad pad",
    "random": "rng rng_bit_generator",
    "reducing_collectives": "all_reduce collective_reduce cross-replica-sum reduce_scatter",
    "reduction": "reduce",
    "scatter": "scatter",
    "shape": "bitcast_convert concatenate reshape reverse transpose",
    "slicing": "dynamic_slice dynamic_update_slice real_dynamic_slice slice",
    "sort": "sort",
    "tokens": "after_all create_token infeed outfeed recv send",
    "tuples": "get_tuple_element tuple",
    "types.special": "future token",
    "windows": "reduce_window select_and_scatter",
}
"""The names that each file defines, without the dialect; `tests/project/test_lazy_dialects.py` checks them."""

STABLEHLO = LazyDialect("stablehlo", __name__, _DEFINITIONS)

__getattr__, __dir__ = lazy_names(__name__, globals(), {}, classes=f"{__name__}.classes")
