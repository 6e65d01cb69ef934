"""The names of kernels, which are written in Python and reach a program as custom calls of one target."""

from xdsl.dialects.builtin import DictionaryAttr, NameLoc, StringAttr

from sdy.rules.call_targets import KERNELS
from sdy.stablehlo.custom_call import CustomCallOp

_PALLAS_CALL = "/pallas_call"


def kernel_name(op: CustomCallOp) -> str | None:
    """The name of the kernel that `op` calls; None for another call, and for a kernel without a name.

    For a TPU it is `kernel_name`, for Triton in the configuration of the call; for Mosaic on a GPU it is at most in the
    name of the location, as in `jit(step)/flash_attention/pallas_call`.
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
