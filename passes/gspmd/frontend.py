"""Import of the SDY attributes that XLA stores as text in `mhlo.frontend_attributes`.

XLA serializes meshes, shardings and rules this way before the conversion to HLO, and parses them afterwards. It also
writes `mhlo.sharding`, with less detail, for tools that know only GSPMD.
"""

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import (
    SHARDING,
    SHARDING_RULE,
    MeshAttr,
    OpShardingRuleAttr,
    TensorShardingAttr,
)
from sdy.dialect.enums import PropagationDirection
from sdy.dialect.ops import MeshOp, PropagationBarrierOp, ShardingConstraintOp, ShardingGroupOp
from sdy.dialect.shardings import set_result_shardings
from sdy.ir.editing import erase, insert, replace
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import remove_from_arguments_and_results, set_result_attribute
from sdy.passes.common.symbols import Symbols
from sdy.passes.gspmd.frontend_texts import MESHES, FrontendTexts
from sdy.passes.gspmd.restore_manual import restore_manual_computations
from sdy.passes.gspmd.sharding_texts import HLO_SHARDING, SHARDING_CALL, is_call, without_text
from sdy.stablehlo.custom_call import CustomCallOp

_SHARDING = "xla.sdy.sharding"
"""Key of the sharding of an argument, or of an operation's results."""
_RULE = "xla.sdy.sharding_rule"
"""Key of an operation's sharding rule."""
_GROUP = "xla.sdy.sharding_group_id"
_DIRECTION = "xla.sdy.allowed_direction"


def import_frontend_attributes(module: ModuleOp, ctx: Context) -> None:
    """Replace the frontend attributes of `module` by SDY attributes and operations.

    Raises:
        DiagnosticError: If an attribute cannot be parsed.
    """
    texts = FrontendTexts(ctx)
    meshes = texts.read(module.attributes, MESHES, DictionaryAttr, module)
    if meshes is not None:
        _add_meshes(module, meshes)
        module.attributes = without_text(module.attributes, MESHES)
        _drop_redundant_shardings(module)
    for op in list(operations(module)):
        if isinstance(op, FuncOp):
            _import_arguments(op, texts)
        elif isinstance(op, CustomCallOp) and (importing := _CALLS.get(texts.target(op))) is not None:
            importing(op, texts)
        else:
            _import_operation(op, texts)
    restore_manual_computations(module, texts)


def _add_meshes(module: ModuleOp, meshes: DictionaryAttr) -> None:
    symbols = Symbols(module)
    place = InsertPoint.at_start(module.body.block)
    for name, mesh in meshes.data.items():
        if isinstance(mesh, MeshAttr) and symbols.lookup(name) is None:
            op = MeshOp(name, mesh.data)
            insert(op, place)
            symbols.insert(op)


def _drop_redundant_shardings(module: ModuleOp) -> None:
    """Remove the redundant `mhlo.sharding` attributes, except of sharding constraints."""
    for op in operations(module):
        if not is_call(op, SHARDING_CALL):
            op.attributes = without_text(op.attributes)
        if isinstance(op, FuncOp):
            remove_from_arguments_and_results(op, {HLO_SHARDING})


def _import_arguments(function: FuncOp, texts: FrontendTexts) -> None:
    for name, entries in (("arg_attrs", function.arg_attrs), ("res_attrs", function.res_attrs)):
        if entries is not None:
            function.properties[name] = ArrayAttr(_import_entry(entry, function, texts) for entry in entries)


def _import_entry(entry: DictionaryAttr, function: FuncOp, texts: FrontendTexts) -> DictionaryAttr:
    sharding = texts.read(entry.data, _SHARDING, TensorShardingAttr, function)
    if sharding is None:
        return entry
    return DictionaryAttr({**without_text(entry.data, _SHARDING), SHARDING: sharding})


def _import_operation(op: Operation, texts: FrontendTexts) -> None:
    shardings = texts.shardings(op.attributes, _SHARDING, op)
    rule = texts.read(op.attributes, _RULE, OpShardingRuleAttr, op)
    if shardings is not None:
        op.attributes = without_text(op.attributes, _SHARDING)
        set_result_shardings(op, shardings)
    if rule is not None:
        op.attributes = {**without_text(op.attributes, _RULE), SHARDING_RULE: rule}


def _import_constraint(call: CustomCallOp, texts: FrontendTexts) -> None:
    shardings = texts.shardings(call.attributes, _SHARDING, call)
    if shardings is None:
        return  # specified only in `mhlo.sharding`
    constraint = ShardingConstraintOp(call.inputs[0], shardings[0])
    constraint.location = call.location
    replace(call, constraint)


def _import_result(call: CustomCallOp, texts: FrontendTexts) -> None:
    """Move the sharding of this call's result to the results of the function that return it."""
    shardings = texts.shardings(call.attributes, _SHARDING, call) or ()
    for sharding in shardings:
        for use in call.results[0].uses:
            function = use.operation.parent_op()
            if isinstance(function, FuncOp):
                set_result_attribute(function, use.index, SHARDING, TensorShardingAttr(sharding))
    replace(call, [call.inputs[0]])


def _import_group(call: CustomCallOp, texts: FrontendTexts) -> None:
    number = texts.required(call.attributes, _GROUP, IntegerAttr, call)
    group = ShardingGroupOp(call.inputs[0], number.value.data)
    group.location = call.location
    insert(group, InsertPoint.before(call))
    erase(call)


def _import_barrier(call: CustomCallOp, texts: FrontendTexts) -> None:
    number = texts.required(call.attributes, _DIRECTION, IntegerAttr, call)
    barrier = PropagationBarrierOp(call.inputs[0], PropagationDirection(number.value.data))
    barrier.location = call.location
    replace(call, barrier)


_CALLS: dict[str, Callable[[CustomCallOp, FrontendTexts], None]] = {
    SHARDING_CALL: _import_constraint,
    "xla.sdy.FuncResultSharding": _import_result,
    "xla.sdy.ShardingGroup": _import_group,
    "xla.sdy.PropagationBarrier": _import_barrier,
}
"""Importers of custom calls, by target."""
