"""The equations of a program's jaxpr, and their results' shardings after propagation."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, NameLoc, i64
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, Region

from sdy.dialect.ops import ManualComputationOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.companions import clone
from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import callee, main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.jax.bindings.from_jax import module_of
from sdy.passes.jax.jax_internals import function_of, label_equation, lower_with_placements
from sdy.passes.python_layouts.constrained import rewrite
from sdy.sharding import TensorSharding

_LABEL = re.compile(r"sdy_equation_(\d+)")
_NUMBERS = "sdy_equations"


@dataclass(frozen=True)
class Equation:
    """An equation of a jaxpr.

    Attributes:
        path: Its path, as `rewrite` gives it.
        results: The shapes of its results.
        operands: The shapes of its operands.
        dimensions: The contracted dimensions and the batch dimensions of both operands of a product of matrices.
    """

    path: str
    results: tuple[tuple[int, ...], ...]
    operands: tuple[tuple[int, ...], ...] = ()
    dimensions: Any = None

    @property
    def primitive(self) -> str:
        """The name of its primitive."""
        return self.path.partition("/")[0]


def number_equations(module: ModuleOp, jaxpr: Any) -> tuple[ModuleOp, Sequence[Equation]]:
    """Return a copy of a module with the numbers of the equations that its operations compute, and the equations.

    The numbers are in an attribute, which copies of an operation inherit. An operation in a function that is called
    twice belongs to two equations, and one in the lowering of an equation, or in a manual computation, to none.

    A jaxpr whose equations have numbers in their name scopes is lowered to a second module, which has the same
    operations as the first. If it does not have them, no operation is numbered.
    """
    equations: list[Equation] = []

    def label(equation: Any, path: str) -> Sequence[Any]:
        results, operands = (_shapes(each) for each in (equation.outvars, equation.invars))
        dimensions = equation.params["dimension_numbers"] if equation.primitive.name == "dot_general" else None
        equations.append(Equation(path, results, operands, dimensions))
        return [label_equation(equation, f"sdy_equation_{len(equations) - 1}")]

    function = function_of(rewrite(jaxpr, label, Counter()))
    arrays = [jax.ShapeDtypeStruct(each.shape, each.dtype, weak_type=each.weak_type) for each in jaxpr.in_avals]
    lowered = lower_with_placements(jax.jit(function).trace(*arrays))
    numbered = clone(module)
    last: dict[int, Operation] = {}
    for op, labelled in _Pairs(numbered, module_of(lowered.compiler_ir("stablehlo"))):
        if isinstance(labelled.location, NameLoc) and (found := _LABEL.findall(labelled.location.desc.data)):
            last[int(found[-1])] = op
    for number, op in last.items():
        if tuple(shape(result.type) for result in op.results) == equations[number].results:
            op.attributes[_NUMBERS] = DenseArrayBase.from_list(i64, [*_numbers(op), number])
    return numbered, equations


Shardings = tuple[TensorSharding | None, ...]
"""The shardings of an operation's operands and then of its results."""


def shardings_of_equations(module: ModuleOp) -> Mapping[int, Shardings]:
    """Return the shardings of numbered equations by number, without those whose copies differ."""
    found: dict[int, set[Shardings]] = {}
    for op in operations(module):
        for number in _numbers(op):
            found.setdefault(number, set()).add(tuple(map(get_sharding, (*op.operands, *op.results))))
    return {number: only for number, (only, *others) in found.items() if not others}


def _shapes(variables: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(getattr(each.aval, "shape", ())) for each in variables)


def _numbers(op: Operation) -> Sequence[int]:
    numbers = op.attributes.get(_NUMBERS)
    return [*map(int, numbers.get_values())] if isinstance(numbers, DenseArrayBase) else []


class _Pairs:
    """The pairs of equal operations of two modules in the order of execution, each after its regions and its callee.

    They end at the first operations that differ.
    """

    def __init__(self, one: ModuleOp, other: ModuleOp):
        self._modules = one, other
        self._symbols = Symbols(one), Symbols(other)

    def __iter__(self) -> Iterator[tuple[Operation, Operation]]:
        one, other = map(main_function, self._modules)
        return self._in_regions(one.body, other.body)

    def _in_regions(self, one: Region, other: Region) -> Iterator[tuple[Operation, Operation]]:
        for blocks in zip(one.blocks, other.blocks, strict=False):
            for op, same in zip(*(block.ops for block in blocks), strict=False):
                if (op.name, op.result_types) != (same.name, same.result_types):
                    return
                yield from self._inside(op, same)
                yield op, same

    def _inside(self, one: Operation, other: Operation) -> Iterator[tuple[Operation, Operation]]:
        if isinstance(one, CallOp) and isinstance(other, CallOp):
            callees = callee(one, self._symbols[0]), callee(other, self._symbols[1])
            yield from self._in_regions(callees[0].body, callees[1].body)
        elif not isinstance(one, ManualComputationOp):
            for regions in zip(one.regions, other.regions, strict=True):
                yield from self._in_regions(*regions)
