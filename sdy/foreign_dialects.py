"""Conversion of operations of other packages' dialect classes to this project's classes.

xDSL identifies operations by their Python class. Another package may define its own class for `stablehlo.add`, as
xdsl-jax does, and a context without StableHLO parses it as an unregistered operation. The passes here match neither;
both print as text that this project's parser reads.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnregisteredAttr, UnregisteredOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute

from sdy.ir.lazy_dialects import LazyContext
from sdy.ir.walking import attributes_in, invalidate, operations
from sdy.text import context, format, parse


def adopt(module: ModuleOp) -> None:
    """Convert the operations of `module` to this project's classes of the same names, in place.

    If some operation has a foreign class, `module` is printed in MLIR's generic form with locations and parsed again,
    and the parsed contents replace its own: references to its former operations and values become stale. Operations of
    dialects that this project does not define keep their classes. Without foreign operations, `module` is left alone.

    Raises:
        DiagnosticError: The printed text is not a valid program.
        TypeError: `module` is not a module.
    """
    check_module(module)
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


def check_module(program: object) -> None:
    """Raise if `program` is not a module.

    Raises:
        TypeError: It is not; the message says how to get one.
    """
    if not isinstance(program, ModuleOp):
        has_module = isinstance(getattr(program, "module", None), ModuleOp)
        way = "its `module` is one" if has_module else "sdy.from_jax converts a JAX program to one"
        raise TypeError(f"expected a module, not {type(program).__name__}; {way}")


def _is_foreign(op: Operation) -> bool:
    if type(op) is UnregisteredOp:
        return context().get_optional_op(op.op_name.data) is not None
    return _is_foreign_class(op.__class__)


@cache
def _is_foreign_class(op_class: type[Operation]) -> bool:
    return context().get_optional_op(op_class.name) not in (None, op_class)


def _load_others(module: ModuleOp, examples: Iterable[Operation], known: LazyContext) -> None:
    """Load the operation, attribute and type classes in use whose names `known` does not define."""
    for op in examples:
        if not isinstance(op, UnregisteredOp) and known.get_optional_op(op.name) is None:
            known.load_op(op.__class__)
    values = (value for op in operations(module) for value in (*op.results, *_arguments(op)))
    for kind in {each.__class__ for each in _nested((*attributes_in(module), *(value.type for value in values)))}:
        if "." not in kind.name:  # a parameter of other attributes, without text of its own
            continue
        find = known.get_optional_type if issubclass(kind, TypeAttribute) else known.get_optional_attr
        if not issubclass(kind, UnregisteredAttr) and find(kind.name) is None:
            known.load_attr_or_type(kind)


def _arguments(op: Operation) -> Iterator[SSAValue]:
    return (argument for region in op.regions for block in region.blocks for argument in block.args)


def _nested(attributes: Iterable[Attribute]) -> set[Attribute]:
    """Return `attributes` and all attributes nested in them."""
    nested: set[Attribute] = set()
    worklist = list(attributes)
    while worklist:
        if (attribute := worklist.pop()) not in nested:
            nested.add(attribute)
            worklist += _elements(attribute)
    return nested


def _elements(attribute: Attribute) -> Iterable[Attribute]:
    match attribute:
        case ParametrizedAttribute():
            return attribute.parameters
        case ArrayAttr(data=elements):
            return elements
        case DictionaryAttr(data=entries):
            return entries.values()
        case _:
            return ()
