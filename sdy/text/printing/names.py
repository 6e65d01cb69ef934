"""The names MLIR prints for values and blocks: `%arg0`, `%0`, `%0:2`, `%cst_0`, `^bb1`.

A subclass of the trait `AsmNames` suggests names for an operation's results and for the arguments of its regions, as
MLIR's `OpAsmOpInterface` does; unnamed values are numbered:

    class ConstantNames(AsmNames):
        def result_names(self, op):
            return {0: "cst"}

    @irdl_op_definition
    class ConstantOp(IRDLOperation):
        traits = traits_def(ConstantNames())

A name already in use gets a suffix, `%cst_0`, from one counter for all names, as in MLIR. Values are numbered region by
region: first everything directly inside a region, then each nested region, continuing from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import OpTrait

from sdy.ir.walking import operations_in_block


@dataclass(frozen=True)
class AsmNames(OpTrait):
    """Suggested names of the values that an operation defines, as MLIR's `OpAsmOpInterface`."""

    default_dialect: str = ""
    """The dialect whose prefix is omitted inside the operation's regions."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return names by result number, without `%`. Each name starts a group up to the next one, as `%name:2`."""
        return {}

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """Return names of the arguments of a region's entry block by number, without `%`."""
        return {}


class ArithConstantNames(AsmNames):
    """Names of constants: `%c5`, `%c5_i32`, `%true`, `%cst`."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return the name, which contains the value of an integer."""
        value = op.properties.get("value")
        if not isinstance(value, IntegerAttr):
            return {0: "f" if value is None else "cst"}
        value = cast(IntegerAttr[IntegerType | IndexType], value)
        if isinstance(value.type, IndexType):
            return {0: f"c{value.value.data}"}
        if value.type.width.data == 1:
            return {0: "true" if value.value.data else "false"}
        return {0: f"c{value.value.data}_{value.type}"}


@dataclass(frozen=True)
class ResultName(AsmNames):
    """A fixed name of the first result, such as `%extracted`."""

    name: str = ""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return the name of the first result."""
        return {0: self.name}


@dataclass(frozen=True)
class StructuredNames(ResultName):
    """Names `%in` and `%out` of the arguments of a structured operation's body."""

    output: str = "out"

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return the name of the first result, if there are results."""
        return {0: self.name} if self.name and op.results else {}

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """Return the name of each argument."""
        # xDSL's linalg.reduce has a single input, in a field with another name.
        inputs = len(getattr(region.parent, "inputs", ("input",)))
        return {number: "in" if number < inputs else self.output for number in range(len(region.block.args))}


_XDSL_OPERATIONS: dict[str, AsmNames] = {
    "builtin.module": AsmNames("builtin"),
    "func.func": AsmNames("func"),
    "arith.constant": ArithConstantNames(),
    "linalg.broadcast": ResultName(name="broadcasted"),
    "linalg.generic": StructuredNames(),
    "linalg.reduce": StructuredNames(name="reduced", output="init"),
    "linalg.transpose": ResultName(name="transposed"),
    "tensor.cast": ResultName(name="cast"),
    "tensor.collapse_shape": ResultName(name="collapsed"),
    "tensor.concat": ResultName(name="concat"),
    "tensor.dim": ResultName(name="dim"),
    "tensor.expand_shape": ResultName(name="expanded"),
    "tensor.extract": ResultName(name="extracted"),
    "tensor.extract_slice": ResultName(name="extracted_slice"),
    "tensor.from_elements": ResultName(name="from_elements"),
    "tensor.insert": ResultName(name="inserted"),
    "tensor.insert_slice": ResultName(name="inserted_slice"),
    "tensor.pad": ResultName(name="padded"),
    "tensor.reshape": ResultName(name="reshape"),
    "tensor.splat": ResultName(name="splat"),
}
"""Suggested names for operations that xDSL defines, which cannot carry the trait."""

_NO_NAMES = AsmNames()
_NO_HINTS: Mapping[int, str] = {}
_names_of_type: dict[type[Operation], AsmNames] = {}


def asm_names(op_type: type[Operation]) -> AsmNames:
    """Return the suggested names of an operation class."""
    names = _names_of_type.get(op_type)
    if names is None:
        own = op_type.get_trait(AsmNames) if hasattr(op_type, "traits") else None
        names = own or _XDSL_OPERATIONS.get(op_type.name, _NO_NAMES)
        _names_of_type[op_type] = names
    return names


@dataclass
class Names:
    """The names of all values and blocks in an operation, without `%` and `^`."""

    generic: bool
    """In the generic form no names are suggested: entry arguments are `%arg0`, all other values are numbered."""

    values: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The name of each value at its uses, such as `arg0`, `3` or `3#1`."""

    results: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """The left-hand side of each operation with results, such as `%3:2`."""

    blocks: dict[Block, str] = field(default_factory=dict[Block, str])

    def add(self, top: Operation) -> None:
        """Name the results of `top` and all values and blocks in its regions."""
        _Numbering(self).operations(top)


@dataclass(frozen=True, slots=True)
class _Counters:
    value: int
    argument: int
    conflict: int


class _Numbering:
    def __init__(self, names: Names):
        self.names = names
        self.value = self.argument = self.conflict = 0
        self.scopes: tuple[set[str], ...] = (set(),)
        """The names used in the region and in each enclosing one; the sets may be large and are not copied."""

    def operations(self, top: Operation) -> None:
        self._operation(top)
        waiting = [(region, self._counters(), self.scopes) for region in top.regions]
        while waiting:
            region, counters, around = waiting.pop()
            if not self.names.generic:  # in the generic form numbers are unique in the program
                self.value, self.argument, self.conflict = counters.value, counters.argument, counters.conflict
            self.scopes = (*around, set())
            self._region(region)
            waiting += [
                (inner, self._counters(), self.scopes)
                for block in region.blocks
                for op in operations_in_block(block)
                for inner in op.regions
            ]

    def _counters(self) -> _Counters:
        return _Counters(self.value, self.argument, self.conflict)

    def _region(self, region: Region) -> None:
        parent = region.parent
        hints = (
            _NO_HINTS if self.names.generic or parent is None else asm_names(type(parent)).block_argument_names(region)
        )
        entry = region.blocks.first
        if entry is not None:
            for number, name in hints.items():
                self.names.values[entry.args[number]] = self._name(name)
        for number, block in enumerate(region.blocks):
            self.names.blocks[block] = f"bb{number}"
            for argument in block.args:
                if argument in self.names.values:
                    continue
                if block is entry:
                    self.names.values[argument] = self._name(f"arg{self.argument}")
                    self.argument += 1
                else:
                    self.names.values[argument] = self._name("")
            for op in operations_in_block(block):
                if op.results:
                    self._operation(op)

    def _operation(self, op: Operation) -> None:
        results = op.results
        if not results:
            return
        hints = _NO_HINTS if self.names.generic else asm_names(type(op)).result_names(op)
        if not hints and len(results) == 1:
            name = str(self.value)
            self.value += 1
            self.names.values[results[0]] = name
            self.names.results[op] = f"%{name}"
            return
        starts = {number: self._name(name) for number, name in sorted(hints.items())}
        if 0 not in starts:
            starts[0] = self._name("")
        bounds = [*sorted(starts), len(results)]
        groups: list[str] = []
        for start, end in pairwise(bounds):
            name, size = starts[start], end - start
            groups.append(f"%{name}" if size == 1 else f"%{name}:{size}")
            for offset in range(size):
                self.names.values[results[start + offset]] = name if size == 1 else f"{name}#{offset}"
        self.names.results[op] = ", ".join(groups)

    def _name(self, suggested: str) -> str:
        if not suggested:
            self.value += 1
            return str(self.value - 1)
        name = suggested
        while any(name in names for names in self.scopes):
            name = f"{suggested}_{self.conflict}"
            self.conflict += 1
        self.scopes[-1].add(name)
        return name
