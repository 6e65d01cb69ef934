"""The memory limit of a module, for which its per-device program recomputes values."""

from xdsl.dialects.builtin import I64, IntegerAttr, ModuleOp, i64

from sdy.dialect.attributes import MEMORY_LIMIT


def memory_limit(module: ModuleOp) -> int | None:
    """Return the most bytes of a device's memory that `module` may use, or None without a limit."""
    limit = module.attributes.get(MEMORY_LIMIT)
    return limit.value.data if isinstance(limit, IntegerAttr) else None


def set_memory_limit(module: ModuleOp, limit: int) -> None:
    """Set the most bytes of a device's memory that `module` may use."""
    module.attributes[MEMORY_LIMIT] = IntegerAttr[I64](limit, i64)
