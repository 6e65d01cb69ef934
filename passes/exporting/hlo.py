"""HLO, XLA's own form of a program, of a module without SDY.

XLA's partitioner takes each operation of the HLO for what one device does already, so that what is run is what the
module says. How many devices there are, the HLO itself only says as text: whoever compiles it tells XLA, as the number
of partitions, with `use_spmd_partitioning`.
"""

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from sdy.diagnostics import op_error
from sdy.ir.companions import clone
from sdy.ir.walking import operations
from sdy.passes.common.argument_attributes import attribute_names
from sdy.passes.gspmd.texts import HLO_SHARDING
from sdy.text import format
from sdy.text.bytecode.conversion import check_known, hlo_of

_MANUAL = StringAttr("{manual}")
_SDY = "sdy"


def to_hlo_proto(module: ModuleOp) -> bytes:
    """The HLO of `module` as XLA's tools take it, a serialized `HloModuleProto`, with its locations.

    `module` is a partitioned program after `sdy-plain`, which each device runs as it is; or one whose shardings are
    those of GSPMD, after `sdy-export-gspmd`, which XLA partitions. Raises DiagnosticError where there is SDY in it
    still, and where the installed jaxlib makes no HLO of it.
    """
    return hlo_of(_for_xla(module), "proto")


def to_hlo_text(module: ModuleOp) -> str:
    """The HLO of `module` as text, which says too how many partitions there are; see `to_hlo_proto`."""
    return hlo_of(_for_xla(module), "text").decode()


def _for_xla(module: ModuleOp) -> str:
    check_known(module)
    has_shardings = False
    for op in operations(module):
        names = {*op.attributes, *(attribute_names(op) if isinstance(op, FuncOp) else ())}
        if op.dialect_name() == _SDY or any(name.startswith(f"{_SDY}.") for name in names):
            raise op_error(op, "is or has what HLO has no words for: 'sdy-plain' takes SDY out")
        has_shardings |= HLO_SHARDING in names
    if not has_shardings:
        module = clone(module)
        _mark_as_manual(module)
    return format(module, generic=True, debuginfo=True)


def _mark_as_manual(module: ModuleOp) -> None:
    """Say of each operation, argument and result that it is for one device already."""
    for op in operations(module):
        if op.results and not isinstance(op, ModuleOp):
            op.attributes[HLO_SHARDING] = _MANUAL
        if isinstance(op, FuncOp):
            op.arg_attrs = _marked(op.arg_attrs, len(op.function_type.inputs))
            op.res_attrs = _marked(op.res_attrs, len(op.function_type.outputs))


def _marked(given: ArrayAttr[DictionaryAttr] | None, count: int) -> ArrayAttr[DictionaryAttr]:
    entries = given or (DictionaryAttr({}),) * count
    return ArrayAttr([DictionaryAttr({**entry.data, HLO_SHARDING: _MANUAL}) for entry in entries])
