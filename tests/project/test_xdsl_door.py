"""Only `sdy/ir` uses private members of xDSL; each exists, and the table gives the reason for its use."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import xdsl
from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects import test
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.parser import AffineParser, Parser
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.printer import Printer

import sdy
from sdy.ir.fast_access import own_verifier
from sdy.ir.open_syntax import OPEN_STEPS

ROOT = Path(sdy.__file__).parent
FILES = sorted(
    file
    for folder in (ROOT, ROOT / "passes", ROOT / "tools")  # rglob does not follow links
    for file in folder.rglob("*.py")
    if file.parent != ROOT / "ir" and file.name != "jax_internals.py"  # the module for private members of jax
)

BLOCK = Block(arg_types=[i32])
OP = test.TestOp([BLOCK.args[0]], [i32])
BLOCK.add_op(OP)
PARSER = Parser(Context(), "")
PRINTER = Printer()
WALKER = PatternRewriteWalker(GreedyRewritePatternApplier([]))

PRIVATE: dict[str, tuple[object, str]] = {
    "_blob_storage": (OpAsmDialectInterface(), "a resource keeps the contents that an earlier text gave it"),
    "_first_op": (BLOCK, "appending a copied operation takes longer"),
    "_get_known_op": (Context(), "the operations of a lazy dialect are not found"),
    "_indent": (PRINTER, "lines are not indented"),
    "_last_op": (BLOCK, "as `_first_op`"),
    "_loaded_attrs": (Context(), "a file of a lazy dialect is loaded at every look-up"),
    "_loaded_dialects": (Context(), "all files of a lazy dialect are loaded"),
    "_loaded_ops": (Context(), "a file of a lazy dialect is loaded at every look-up"),
    "_loaded_types": (Context(), "a file of a lazy dialect is loaded at every look-up"),
    "_next_op": (OP, "a walk through a block takes twice as long"),
    "_next_use": (BLOCK.args[0].first_use, "traversal of a use list takes twice as long"),
    "_operand_uses": (OP, "copied operations are created with all checks"),
    "_operation": (BLOCK.args[0].first_use, "as `_next_use`"),
    "_operands": (OP, "each access to operands creates a view, and each replacement a new one"),
    "_parser_state": (PARSER, "a parser cannot switch to another lexer"),
    "_populate_worklist": (WALKER, "each rewriting visits all operations"),
    "_prev_op": (OP, "as `_first_op`"),
    "_prev_use": (BLOCK.args[0].first_use, "a new operation is added to use lists by a call per operand"),
    "_print_dense_list": (DenseIntOrFPElementsAttr, "0.0 and -0.0 among the elements of a constant are printed alike"),
    "_print_new_line": (PRINTER, "new lines bypass the collected text"),
    "_print_one_elem": (DenseIntOrFPElementsAttr, "the element of a splat is printed as a list"),
    "_registered_dialects": (Context(), "all files of a lazy dialect are loaded"),
    "_ssa_values": (PRINTER, "xDSL's printer has other names for a loop's values in its condition than in its body"),
    "_successor_uses": (OP, "copied operations are created with all checks"),
    "_successors": (OP, "as `_operands`"),
    "_type": (BLOCK.args[0], "each access to a type calls a property"),
    "_worklist": (WALKER, "as `_populate_worklist`"),
}
"""Private members that `sdy/ir` uses: an owner of each, and the defect or slowdown without it."""

STEPS = "this step of the parser cannot have MLIR's syntax and messages"


@pytest.mark.parametrize("name", PRIVATE)
def test_private_part_is_there(name: str):
    owner, what_breaks = PRIVATE[name]
    assert what_breaks
    assert hasattr(owner, name)


@pytest.mark.parametrize("step", sorted(OPEN_STEPS))
def test_step_is_there(step: str):
    """`STEPS` gives one reason for the use of all parser methods."""
    assert hasattr(Parser, f"_{step}") or hasattr(AffineParser, f"_{step}")


def test_the_verifier_of_a_class_is_found_behind_the_checks_of_its_definition():
    assert own_verifier(FuncOp) is not FuncOp.verify_
    assert own_verifier(FuncOp).__qualname__ == "FuncOp.verify_"


def test_the_offer_to_xdsl_names_each():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "xdsl.md").read_text()
    table = page.partition("### Private names")[2].partition("### ")[0]
    assert set(re.findall(r"`(_\w+)`", table)) == PRIVATE.keys()


def test_private_names_used_in_sdy_ir_are_in_the_table():
    named = {name for file in (ROOT / "ir").glob("*.py") for name in re.findall(r"\b_[a-z]\w*", _code(file))}
    assert named & _private_names() - {f"_{step}" for step in OPEN_STEPS} == PRIVATE.keys()


def test_no_other_file_uses_a_private_attribute():
    for file in FILES:
        text = file.read_text()
        if _private_names().isdisjoint(re.findall(r"\.(_[a-z]\w*)", text)):
            continue
        nodes = ast.walk(ast.parse(text))
        private = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in _private_names()]
        assert all(ast.unparse(node.value) in ("self", "cls", "super()") for node in private), file


def test_no_other_class_uses_or_overrides_a_private_member():
    for kind in _classes():
        parts = {name for base in kind.__mro__ if base.__module__.startswith("xdsl.") for name in _parts(base)}
        if parts:
            named = re.findall(r"\b(?:self\.|cls\.|super\(\)\.|def )(_[a-z]\w*)", _source(kind))
            assert not parts.intersection(named), kind


def _classes() -> Iterator[type]:
    """Yield the classes that these files define, except those that need torch if it is not installed."""
    for file in FILES:
        name = ".".join(("sdy", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        try:
            module = import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name not in ("torch", "torchax"):
                raise
            continue
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == name:
                yield kind


def _parts(kind: type) -> set[str]:
    """Return the private members of one class of xDSL and of its instances."""
    return {name for name in (*vars(kind), *inspect.get_annotations(kind)) if re.match(r"_[a-z]", name)}


@cache
def _private_names() -> frozenset[str]:
    """Return the private names in the modules of xDSL that this project uses."""
    package = Path(xdsl.__file__).parent
    files = [package / name for name in ("context.py", "pattern_rewriter.py", "printer.py", "dialects/builtin.py")]
    for folder in ("dialect_interfaces", "ir", "parser", "utils"):
        files += (package / folder).glob("*.py")
    return frozenset(
        name for file in files for name in re.findall(r"(?:\.|def |^    )(_[a-z]\w*)", _code(file), re.MULTILINE)
    )


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # created by a decorator or by type(), without source text
        return ""


def _code(file: Path) -> str:
    """Return the text of a file without its comments."""
    return re.sub(r"#.*", "", file.read_text())
