"""Every operation of the dialects, changed in ways that its definition alone forbids.

Each case isolates an operation of a program, with the function's arguments as its operands, and changes it. The result
is text in the generic form, as a user might write it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType, f32, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from jax_programs import PROGRAMS, lowered
from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect import MeshOp
from sdy.stablehlo import STABLEHLO
from sdy.stablehlo.chlo import CHLO
from sdy.text import context, parse
from sdy.text import format as print_module
from sdy.text.reading.parser import parse_module

ROOT = Path(__file__).parents[2]
SCALAR = TensorType(f32, ())
SHORT = 400
"""Length of a text for which no shorter one is looked for."""


def _programs() -> Iterator[ModuleOp]:
    texts = [lowered(name).pretty for name in PROGRAMS]
    for folder in ("stablehlo", "dialect"):
        for path in sorted((ROOT / "lit_tests" / folder).glob("*.mlir")):
            texts += path.read_text().split("// -----\n")
    for text in texts:
        try:
            with capture():
                yield parse(text)
        except DiagnosticError:
            continue


def _alone(op: Operation, module: ModuleOp, known: str | None) -> str | None:
    """Return a module with a function of this operation only; `known` if it is as short, or `op` cannot be isolated."""
    if known is not None and len(known) <= SHORT:
        return known
    if op.has_trait(IsTerminator) or op.parent is None:
        return known
    inside = {value for nested in op.walk() for value in (*nested.results, *_arguments(nested))}
    outside = dict.fromkeys(value for nested in op.walk() for value in nested.operands if value not in inside)
    block = Block(arg_types=[value.type for value in outside])
    block.add_ops((op.clone(dict(zip(outside, block.args, strict=True))), ReturnOp()))
    function = FuncOp("alone", ([value.type for value in outside], []), Region(block))
    meshes = [mesh.clone() for mesh in module.ops if isinstance(mesh, MeshOp)]
    text = print_module(ModuleOp([*meshes, function]), generic=True)
    if known is not None and len(known) <= len(text):
        return known
    try:
        with capture():
            parse(text)
    except DiagnosticError:  # it refers to functions that the module does not define
        return known
    return text


def _arguments(op: Operation) -> Iterator[SSAValue]:
    return (argument for region in op.regions for block in region.blocks for argument in block.args)


def operations() -> dict[str, str]:
    """Return, for each operation name, a short module with only that operation."""
    names = {op.name for dialect in (STABLEHLO, CHLO) for op in dialect.operations}
    shortest: dict[str, str] = {}
    for module in _programs():
        for op in module.walk():
            if op.name in names or op.name.startswith("sdy."):
                text = _alone(op, module, shortest.get(op.name))
                if text is not None:
                    shortest[op.name] = text
    return shortest


def mutilations(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each change to the operation `name` of its module."""
    whole = _read(text, name)[1]
    changes: list[tuple[str, Callable[[Operation], None]]] = [
        ("an operand more", lambda op: _replace(op, operands=[*op.operands, _argument(op, SCALAR)])),
        ("a result more", lambda op: _replace(op, result_types=[*op.result_types, SCALAR])),
        ("a region more", lambda op: op.add_region(Region())),
    ]
    if whole.operands:
        changes.append(("an operand less", lambda op: _replace(op, operands=op.operands[:-1])))
        changes.append(("a bare number", lambda op: _replace(op, operands=[_argument(op, i32), *op.operands[1:]])))
    if whole.results:
        changes.append(("a number made", lambda op: _replace(op, result_types=[i32, *op.result_types[1:]])))
    for key in whole.properties:
        changes.append((f"without {key}", partial(_without, key=key)))
        changes.append((f"{key} a word", partial(_with_word, key=key)))
    for change, apply in changes:
        module, op = _read(text, name)
        if name != "sdy.mesh" or "operand" not in change:
            apply(op)
            yield change, print_module(module, generic=True)


def _read(text: str, name: str) -> tuple[ModuleOp, Operation]:
    module = parse_module(text, "alone.mlir", context())
    *_, op = (op for op in module.walk() if op.name == name)
    return module, op


def _argument(op: Operation, type_: Attribute) -> SSAValue:
    """Add an argument to the function that contains `op`."""
    function, block = op.parent_op(), op.parent
    assert isinstance(function, FuncOp)
    assert block is not None
    argument = block.insert_arg(type_, len(block.args))
    function.properties["function_type"] = FunctionType.from_lists(block.arg_types, [])
    return argument


def _without(op: Operation, key: str) -> None:
    del op.properties[key]


def _with_word(op: Operation, key: str) -> None:
    op.properties[key] = StringAttr("word")


def _replace(
    op: Operation, *, operands: Iterable[SSAValue] | None = None, result_types: Sequence[Attribute] | None = None
) -> None:
    block = op.parent
    assert block is not None
    changed = op.create(
        operands=tuple(op.operands if operands is None else operands),
        result_types=op.result_types if result_types is None else result_types,
        properties=op.properties,
        attributes=op.attributes,
        regions=[op.detach_region(region) for region in tuple(op.regions)],
    )
    block.insert_op_before(changed, op)
    op.detach()
