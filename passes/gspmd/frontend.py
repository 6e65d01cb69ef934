"""What XLA keeps of SDY in `mhlo.frontend_attributes`, as texts: meshes, and the shardings on them."""

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import ParseError

from sdy.diagnostics import DiagnosticError, error
from sdy.dialect.attributes import SHARDING, MeshAttr, TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.ops import MeshOp, ShardingConstraintOp
from sdy.ir.editing import insert, replace
from sdy.ir.walking import operations
from sdy.passes.common.argument_attributes import set_result_attribute
from sdy.passes.common.symbols import Symbols
from sdy.passes.gspmd.texts import SHARDING_CALL, text_in, without_text
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.text import Parser

MESHES = "xla.sdy.meshes"
"""The attribute of a module with its meshes by name, as a text."""
_SHARDING = "xla.sdy.sharding"
"""The attribute with the sharding of an argument, or those of the results of an operation, as a text."""
_RESULT = "xla.sdy.FuncResultSharding"
"""The custom call that says which sharding a result of the function has, which returns what it makes."""
_APART = ("xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape")
"""The custom calls around a manual computation that XLA has taken apart."""


def import_frontend_attributes(module: ModuleOp, ctx: Context) -> None:
    """Make these texts of `module` what they say; DiagnosticError for one that cannot be read."""
    meshes = text_in(module.attributes, MESHES)
    if meshes is not None:
        _add_meshes(module, _parsed(meshes, module, ctx))
        module.attributes = without_text(module.attributes, MESHES)
    for op in list(operations(module)):
        if isinstance(op, FuncOp):
            _import_arguments(op, ctx)
            continue
        target = op.call_target_name.data.removeprefix("local_") if isinstance(op, CustomCallOp) else ""
        if target in _APART:
            raise error(
                op,
                "a manual computation that XLA has taken apart for its round trip is not put together again: "
                "give the module as it was before",
            )
        if (text := text_in(op.attributes, _SHARDING)) is not None:
            _import_operation(op, target, _shardings(text, op, ctx))


def _add_meshes(module: ModuleOp, meshes: Attribute) -> None:
    symbols = Symbols(module)
    place = InsertPoint.at_start(module.body.block)
    for name, mesh in meshes.data.items() if isinstance(meshes, DictionaryAttr) else ():
        if isinstance(mesh, MeshAttr) and symbols.lookup(name) is None:
            op = MeshOp(name, mesh.data)
            insert(op, place)
            symbols.insert(op)


def _import_arguments(function: FuncOp, ctx: Context) -> None:
    for name, given in (("arg_attrs", function.arg_attrs), ("res_attrs", function.res_attrs)):
        if given is None:
            continue
        entries: list[DictionaryAttr] = []
        for entry in given:
            if (text := text_in(entry.data, _SHARDING)) is not None:
                (sharding,) = _shardings(text, function, ctx)
                entry = DictionaryAttr({**without_text(entry.data, _SHARDING), SHARDING: TensorShardingAttr(sharding)})
            entries.append(entry)
        function.properties[name] = ArrayAttr(entries)


def _import_operation(op: Operation, target: str, shardings: tuple[TensorSharding, ...]) -> None:
    if target == _RESULT:
        for use in op.results[0].uses:
            function = use.operation.parent_op()
            if isinstance(function, FuncOp):
                set_result_attribute(function, use.index, SHARDING, TensorShardingAttr(shardings[0]))
        replace(op, [op.operands[0]])
    elif target == SHARDING_CALL:
        constraint = ShardingConstraintOp(op.operands[0], shardings[0])
        constraint.location = op.location
        replace(op, constraint)
    else:
        op.attributes = {**without_text(op.attributes, _SHARDING), SHARDING: TensorShardingPerValueAttr(shardings)}


def _shardings(text: str, where: Operation, ctx: Context) -> tuple[TensorSharding, ...]:
    match _parsed(text, where, ctx):
        case TensorShardingAttr() as one:
            return (one.data,)
        case TensorShardingPerValueAttr() as several if several.data:
            return several.data
        case other:
            raise error(where, f"'{_SHARDING}' is a sharding, and not '{other}'")


def _parsed(text: str, where: Operation, ctx: Context) -> Attribute:
    # What went through HLO has a backslash before each quote.
    try:
        return Parser(ctx, text.replace("\\", ""), "mhlo.frontend_attributes").parse_attribute()
    except (DiagnosticError, ParseError) as problem:
        raise error(where, f"the frontend attribute '{text}' cannot be read: {problem}") from None
