"""The limit of memory of a program: an option of a pass, or an attribute of the module."""

from xdsl.dialects.builtin import I64, IntegerAttr, ModuleOp, StringAttr, i64

from sdy.diagnostics import error
from sdy.dialect.attributes import HARDWARE, MEMORY_LIMIT
from sdy.formatting import parse_bytes


def limit_of(module: ModuleOp, memory: str, pass_name: str) -> int | None:
    """Return the limit in bytes that the option `memory` of a pass gives, by default that of `module`, or None.

    Raises:
        DiagnosticError: The option is not a size.
    """
    limit = module.attributes.get(MEMORY_LIMIT)
    if not memory:
        return limit.value.data if isinstance(limit, IntegerAttr) else None
    try:
        return parse_bytes(memory)
    except ValueError as problem:
        raise error(module, f"option 'memory' of '{pass_name}': {problem}") from None


def set_memory_limit(module: ModuleOp, limit: int, hardware: str) -> None:
    """Set the most bytes of a device's memory that `module` may use, and the hardware file that it is planned for."""
    module.attributes[MEMORY_LIMIT] = IntegerAttr[I64](limit, i64)
    if hardware:
        module.attributes[HARDWARE] = StringAttr(hardware)
