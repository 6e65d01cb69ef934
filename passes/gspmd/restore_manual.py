"""Restoration of manual computations from XLA's form: a call of a function between two custom calls."""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.diagnostics import error
from sdy.dialect.attributes import ManualAxesAttr
from sdy.dialect.ops import ManualComputationOp, ReturnOp
from sdy.ir.editing import erase, insert
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import functions
from sdy.passes.common.symbols import Symbols
from sdy.passes.gspmd.calls import inline_calls_in
from sdy.passes.gspmd.frontend_texts import FrontendTexts
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.tuples import GetTupleElementOp

_BODIES = ("xla.sdy.manual_computation_body", "xla.sdy.inlinable_manual_computation_body")
"""Prefixes of the names of functions that are bodies of manual computations."""
_BEGIN, _END = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_IN, _OUT, _AXES = "xla.sdy.in_shardings", "xla.sdy.out_shardings", "xla.sdy.manual_axes"


def restore_manual_computations(module: ModuleOp, texts: FrontendTexts) -> None:
    """Replace each call of such a function by the original `sdy.manual_computation`.

    Before, with the shardings and axes in frontend attributes of the custom calls, or of the call::

        %0:2 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x, %y)
        %1 = call @xla.sdy.manual_computation_body(%0#0, %0#1)
        %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1)

    After::

        %2 = sdy.manual_computation(%x, %y) in_shardings=[...] out_shardings=[...] manual_axes={...} { ... }

    A computation without arguments has no custom call before it, one without results none after it. After a round trip
    through HLO, multiple values are a tuple.

    Raises:
        DiagnosticError: If a custom call or an attribute is missing.
    """
    calls = [call for call in operations_of(module, CallOp) if _is_body(call.callee.root_reference.data)]
    inline_calls_in([_restore(call, texts) for call in calls], module)
    called = {call.callee.root_reference.data for call in operations_of(module, CallOp)}
    symbols = Symbols(module)
    for function in functions(module):
        if _is_body(function.sym_name.data) and function.sym_name.data not in called:
            symbols.erase(function)
    for op in operations_of(module, CustomCallOp):
        if texts.target(op) in (_BEGIN, _END):
            raise error(op, f"is the boundary of a manual computation, but no function @{_BODIES[0]} is called")


def _is_body(name: str) -> bool:
    return name.removeprefix("local_").startswith(_BODIES)


def _restore(call: CallOp, texts: FrontendTexts) -> ManualComputationOp:
    """Replace `call` by its manual computation, with the call inside."""
    begin = _only_call((value.owner for value in call.arguments), _BEGIN, texts, call)
    end = _only_call((use.operation for value in call.res for use in value.uses), _END, texts, call)
    operands, locals_ = (begin.inputs, [*_values(begin).values()]) if begin else ((), [])
    if [*call.arguments] != locals_ or [*call.res] != [*(end.inputs if end else ())]:
        raise error(call, f"must take all results of {_BEGIN}, and return all operands of {_END}, in order")
    block = Block(arg_types=[value.type for value in locals_])
    inner = call.clone(dict(zip(call.arguments, block.args, strict=True)))
    block.add_ops([inner, ReturnOp(*inner.results)])
    types = _types(end) if end else ()
    sources = [op for op in (call, begin, end) if op is not None]
    computation = ManualComputationOp(
        operands,
        Region(block),
        types,
        _shardings(sources, _IN, len(operands), texts),
        _shardings(sources, _OUT, len(types), texts),
        _axes(sources, texts),
    )
    computation.location = call.location
    insert(computation, InsertPoint.before(call))
    for index, value in _values(end).items() if end else ():
        value.replace_all_uses_with(computation.outputs[index])
    for op in (*_with_elements(end), call, *_with_elements(begin)):
        erase(op)
    return computation


def _only_call(
    ops: Iterable[Operation | Block], target: str, texts: FrontendTexts, call: CallOp
) -> CustomCallOp | None:
    """Return the single custom call of this target among `ops`, looking through tuple elements; None without `ops`."""
    calls = {op.operand.owner if isinstance(op, GetTupleElementOp) else op: None for op in ops}
    match [*calls]:
        case []:
            return None
        case [CustomCallOp() as found] if texts.target(found) == target:
            return found
        case _:
            raise error(call, f"calls the body of a manual computation, but there is no single custom call @{target}")


def _types(boundary: CustomCallOp) -> Sequence[Attribute]:
    """Return the types of the tensors that `boundary` returns, in a tuple or not."""
    first = boundary.result_types[0]
    return first.types.data if isinstance(first, TupleType) else boundary.result_types


def _values(boundary: CustomCallOp) -> dict[int, SSAValue]:
    """Return the tensors that `boundary` returns, by number, without unused elements of a tuple."""
    if not isinstance(boundary.result_types[0], TupleType):
        return dict(enumerate(boundary.results))
    elements = [op for op in _with_elements(boundary) if isinstance(op, GetTupleElementOp)]
    return dict(sorted((op.index.value.data, op.result) for op in elements))


def _with_elements(boundary: CustomCallOp | None) -> Sequence[Operation]:
    """Return the operations that extract elements of the tuple of `boundary`, then `boundary`."""
    if boundary is None:
        return ()
    users = [use.operation for result in boundary.results for use in result.uses]
    return [*(op for op in users if isinstance(op, GetTupleElementOp)), boundary]


def _shardings(sources: Sequence[Operation], name: str, count: int, texts: FrontendTexts) -> Sequence[TensorSharding]:
    for op in sources:
        shardings = texts.shardings(op.attributes, name, op)
        if shardings is not None and len(shardings) != count:
            raise error(op, f"'{name}' has {len(shardings)} shardings for {count} values")
        if shardings is not None:
            return shardings
    if count:
        raise error(sources[0], f"belongs to a manual computation with {count} values, but has no '{name}'")
    return ()


def _axes(sources: Sequence[Operation], texts: FrontendTexts) -> Sequence[str]:
    axes_lists = [texts.read(op.attributes, _AXES, ManualAxesAttr, op) for op in sources]
    return next((axes.data for axes in axes_lists if axes is not None), ())
