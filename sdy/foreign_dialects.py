"""Modules of other packages: their operations become those of the dialects that this project has.

xDSL tells operations apart by their Python classes. Another package may have a class of its own for `stablehlo.add`, as
xdsl-jax has, and a context that was told of no StableHLO keeps it as unregistered. Passes here know neither; the text
that such operations print as, they do.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnregisteredAttr, UnregisteredOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute

from sdy.ir.families import FamilyContext
from sdy.ir.walking import attributes_in, invalidate, operations
from sdy.text import context, format, parse


def adopt(module: ModuleOp) -> None:
    """Make the operations of `module` that are called as this project's those of this project, in place.

    Where some are of other classes, `module` is printed in MLIR's generic form with its locations, and what is read
    from that takes the place of its contents: operations and values that were had from it before are no longer in it.
    Operations of other dialects keep their classes. A module of this project's operations is left alone. Raises
    DiagnosticError where what is printed is not valid.
    """
    examples = {op.__class__: op for op in operations(module)}.values()
    if not any(map(_is_foreign, examples)):
        return
    known = context()
    _load_others(module, examples, known)
    known.allow_unregistered = True
    read = parse(format(module, generic=True, debuginfo=True), "<module>", known)
    module.detach_region(module.body)
    module.add_region(read.detach_region(read.body))
    module.attributes, module.properties = read.attributes, read.properties
    invalidate()


def _is_foreign(op: Operation) -> bool:
    if type(op) is UnregisteredOp:
        return context().get_optional_op(op.op_name.data) is not None
    return _is_foreign_class(op.__class__)


@cache
def _is_foreign_class(op_class: type[Operation]) -> bool:
    return context().get_optional_op(op_class.name) not in (None, op_class)


def _load_others(module: ModuleOp, examples: Iterable[Operation], known: FamilyContext) -> None:
    """Tell `known` of the operations, attributes and types that it has none of the same name for."""
    for op in examples:
        if not isinstance(op, UnregisteredOp) and known.get_optional_op(op.name) is None:
            known.load_op(op.__class__)
    values = (value for op in operations(module) for value in (*op.results, *_arguments(op)))
    for kind in {each.__class__ for each in _nested((*attributes_in(module), *(value.type for value in values)))}:
        if "." not in kind.name:  # a part of others, which has no text of its own
            continue
        find = known.get_optional_type if issubclass(kind, TypeAttribute) else known.get_optional_attr
        if not issubclass(kind, UnregisteredAttr) and find(kind.name) is None:
            known.load_attr_or_type(kind)


def _arguments(op: Operation) -> Iterator[SSAValue]:
    return (argument for region in op.regions for block in region.blocks for argument in block.args)


def _nested(attributes: Iterable[Attribute]) -> set[Attribute]:
    """`attributes` and those in them."""
    found: set[Attribute] = set()
    left = list(attributes)
    while left:
        if (attribute := left.pop()) not in found:
            found.add(attribute)
            left += _parts(attribute)
    return found


def _parts(attribute: Attribute) -> Iterable[Attribute]:
    match attribute:
        case ParametrizedAttribute():
            return attribute.parameters
        case ArrayAttr(data=elements):
            return elements
        case DictionaryAttr(data=entries):
            return entries.values()
        case _:
            return ()
