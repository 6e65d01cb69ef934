"""Conversion to HLO, for modules without the SDY dialect.

All operations of a partitioned module are marked manual, so XLA's partitioner leaves them unchanged. Only the text form
of HLO states the number of devices: to compile the HLO, pass it to XLA as the number of partitions, with
`use_spmd_partitioning`.
"""

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from sdy.diagnostics import op_error
from sdy.ir.companions import clone
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import attribute_names
from sdy.passes.gspmd.sharding_texts import HLO_SHARDING
from sdy.text import format
from sdy.text.bytecode import check_known, hlo_of

_MANUAL = StringAttr("{manual}")
_SDY = "sdy"


def to_hlo_proto(module: ModuleOp) -> bytes:
    """Convert `module` to HLO.

    Args:
        module: A per-device program after `sdy-plain`, or a program with GSPMD shardings after `sdy-export-gspmd`,
            which XLA partitions.

    Returns:
        The serialized `HloModuleProto`, with source locations.

    Raises:
        DiagnosticError: `module` has operations or attributes of the SDY dialect, or the installed jaxlib cannot
            convert it.
    """
    return hlo_of(_for_xla(module), "proto")


def to_hlo_text(module: ModuleOp) -> str:
    """Convert `module` to HLO text, which also states the number of partitions; see `to_hlo_proto`."""
    return hlo_of(_for_xla(module), "text").decode()


def _for_xla(module: ModuleOp) -> str:
    check_known(module)
    has_shardings = False
    for op in operations(module):
        names = {*op.attributes, *(attribute_names(op) if isinstance(op, FuncOp) else ())}
        if op.dialect_name() == _SDY or any(name.startswith(f"{_SDY}.") for name in names):
            raise op_error(op, "belongs to the SDY dialect or has its attributes; run 'sdy-plain' first")
        has_shardings |= HLO_SHARDING in names
    if not has_shardings:
        module = clone(module)
        _mark_as_manual(module)
    return format(module, generic=True, debuginfo=True)


def _mark_as_manual(module: ModuleOp) -> None:
    """Give each operation, argument and result the GSPMD sharding `{manual}`."""
    for op in operations(module):
        if op.results and not isinstance(op, ModuleOp):
            op.attributes[HLO_SHARDING] = _MANUAL
        if isinstance(op, FuncOp):
            op.arg_attrs = _marked(op.arg_attrs, len(op.function_type.inputs))
            op.res_attrs = _marked(op.res_attrs, len(op.function_type.outputs))


def _marked(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> ArrayAttr[DictionaryAttr]:
    entries = attributes or (DictionaryAttr({}),) * count
    return ArrayAttr([DictionaryAttr({**entry.data, HLO_SHARDING: _MANUAL}) for entry in entries])
