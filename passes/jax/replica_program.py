"""The program of one device for XLA alone: jax lowers something that stands for it.

What jax lowers says where arguments and results lie. It is an operation that nothing could run: before it is compiled,
the program takes its place, as what `sdy.jit` makes of a function does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AbstractMesh
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp

from sdy import collector
from sdy.ir.companions import clone_alone
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.device_order import renumber_devices
from sdy.passes.jax.jax_internals import keep_alive
from sdy.passes.jax.local_program import LocalProgram
from sdy.passes.jax.python_callbacks import callback_problem
from sdy.passes.jax.replica_module import make_replicas
from sdy.passes.jax.sharded_program import ShardedProgram, make_local

_stand_in = Primitive("sdy_stand_in")
_stand_in.multiple_results = True


@dataclass(frozen=True, eq=False, repr=False)
class ReplicaProgram(ShardedProgram):
    """A program whose devices are replicas: to be lowered and compiled, but not to be a part of another one."""

    @classmethod
    @collector.paused()
    def of(
        cls,
        module: ModuleOp,
        devices: Sequence[Device] | None = None,
        like: AbstractMesh | None = None,
        tokens: int = 0,
    ) -> "ReplicaProgram":
        """As `ShardedProgram.of` has it."""
        local = clone_alone(module)
        made = make_local(local, jax.devices() if devices is None else devices, like, tokens)
        renumber_devices(local, made.mesh)
        problem = callback_problem(local)
        program = LocalProgram.of(make_replicas(local, made, module).text, made.interface.main, tokens)
        inputs, outputs = made.interface.ports(made.devices)
        return cls(program, tuple(inputs), tuple(outputs), made.devices.mesh, problem)

    def __call__(self, *arguments: jax.Array) -> tuple[jax.Array, ...]:
        if self.problem is not None:
            raise self.problem
        return tuple(_stand_in.bind(*arguments, program=self))


@_stand_in.def_abstract_eval
def _results(*_: Any, program: ReplicaProgram) -> list[ShapedArray]:
    return [ShapedArray(port.shape, port.dtype) for port in program.outputs]


def _lower(ctx: mlir.LoweringRuleContext, *arguments: ir.Value, program: ReplicaProgram) -> Sequence[ir.Value]:
    keep_alive(ctx, program)
    types = [ir.RankedTensorType.get(port.shape, mlir.dtype_to_ir_type(port.dtype)) for port in program.outputs]
    # Of MLIR's own operations, the one that has operands and results of any types.
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=types, operands=arguments).results


mlir.register_lowering(_stand_in, _lower)
