"""Custom calls with known semantics."""

from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.interpreter.lapack import LAPACK
from sdy.interpreter.tables import Implementation


def _same(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    return args


_KNOWN: dict[str, Implementation] = {
    "Sharding": _same,
    "annotate_device_placement": _same,
    "mhlo.sharding": _same,
    **LAPACK,
}


def _custom_call(interpreter: Interpreter, op: stablehlo.CustomCallOp, args: PythonValues) -> PythonValues:
    target = op.call_target_name.data
    known = _KNOWN.get(target)
    if known is None:
        raise op_error(op, f"calls the custom target '{target}', which cannot be interpreted")
    return known(interpreter, op, args)


CUSTOM_CALLS: dict[type[Operation], Implementation] = {stablehlo.CustomCallOp: _custom_call}
