"""The CHLO dialect, one file per family of operations."""

from sdy.ir.lazy_dialects import LazyDialect

_DEFINITIONS = {
    "attributes": "comparison_direction comparison_type precision ragged_dot",
    "broadcast": (
        "broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide "
        "broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or "
        "broadcast_polygamma broadcast_power broadcast_remainder broadcast_select broadcast_shift_left "
        "broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_xor "
        "broadcast_zeta"
    ),
    "creation": "constant constant_like top_k",
    "elementwise": (
        "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf "
        "is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta"
    ),
    "ragged_dot": "ragged_dot",
    "scan": "scan",
}
"""The names that each file defines, without the dialect; `tests/project/test_lazy_dialects.py` checks them."""

CHLO = LazyDialect("chlo", __name__, _DEFINITIONS)
