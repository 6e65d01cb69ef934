"""`sdy.compiler(...) as c`: the programs that jax compiles in the block."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Location, location_of
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.bindings.from_jax import module_of
from sdy.passes.jax.compilation import Compilation, PropagatedProgram
from sdy.passes.jax.compiler_context import Compiler
from sdy.passes.jax.jax_internals import ToCompile
from sdy.passes.jax.stages import LoweredProgram
from sdy.passes.layouts import partitioner_for


@dataclass(frozen=True, repr=False, eq=False)
class CompiledInBlock(LoweredProgram):
    """A program that jax compiled in a block of `sdy.compiler`.

    `sdy.account`, `sdy.lint`, `sdy.report`, `sdy.explain` and `sdy.diff` take it in place of a function.

    Attributes:
        name: The name of the jitted function, such as `step`.
    """

    name: str
    _in_jax: ToCompile
    _compilers: tuple[Compiler, ...]

    def __repr__(self) -> str:
        return f"<{self.name}, compiled at {self.source or 'an unknown line'}>"

    @cached_property
    def source(self) -> Location | None:
        """The source line of the first operation, or None if it is unknown."""
        main = main_function(self._compilation.declared)
        return next((place for op in operations(main)[1:] if (place := location_of(op))), None)

    def from_jax(self) -> ModuleOp:
        return module_of(self._in_jax.module)

    @cached_property
    def _compilation(self) -> Compilation:
        partitioner = partitioner_for(self.memory_limit, warns=False)
        return PropagatedProgram.of(self._in_jax, self._compilers).partitioned(partitioner)


@dataclass(frozen=True)
class CompilerBlock:
    """A block of `sdy.compiler`.

    Attributes:
        programs: The programs that jax has compiled in the block so far, in order. They include those of one device,
            and the small ones by which jax runs single operations. A program that an earlier block with the same
            options has compiled is not compiled again: it is in `programs` of that block.
    """

    programs: list[CompiledInBlock] = field(default_factory=list[CompiledInBlock])


_blocks: ContextVar[tuple[CompilerBlock, ...]] = ContextVar("sdy_compiler_blocks", default=())


@contextmanager
def recording() -> Generator[CompilerBlock]:
    """Record the programs that jax compiles in a `with` block."""
    block = CompilerBlock()
    token = _blocks.set((*_blocks.get(), block))
    try:
        yield block
    finally:
        _blocks.reset(token)


def record(lowered: ToCompile, compilers: Sequence[Compiler]) -> None:
    """Add a program that jax is about to compile to the enclosing blocks."""
    for block in _blocks.get():
        block.programs.append(CompiledInBlock(lowered.function, lowered, tuple(compilers)))
