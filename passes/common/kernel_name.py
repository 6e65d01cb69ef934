"""Names of Pallas and Triton kernels, which all lower to custom calls of the same targets."""

from xdsl.dialects.builtin import DictionaryAttr, NameLoc, StringAttr

from sdy.rules.call_targets import KERNELS
from sdy.stablehlo.custom_call import CustomCallOp

_PALLAS_CALL = "/pallas_call"


def kernel_name(op: CustomCallOp) -> str | None:
    """Return the name of the kernel that `op` calls; None for other calls and unnamed kernels.

    On TPU it is the attribute `kernel_name`, for Triton an entry of the backend_config; for Mosaic on GPU it is only in
    the location's name, as in `jit(step)/flash_attention/pallas_call`.
    """
    if op.call_target_name.data not in KERNELS:
        return None
    config = op.attributes.get("mhlo.backend_config")
    named = config.data.get("name") if isinstance(config, DictionaryAttr) else op.attributes.get("kernel_name")
    if isinstance(named, StringAttr):
        return named.data
    path = op.location.desc.data if isinstance(op.location, NameLoc) else ""
    scope = path.removesuffix(_PALLAS_CALL).rpartition("/")[2] if path.endswith(_PALLAS_CALL) else ""
    return scope if scope.isidentifier() else None
