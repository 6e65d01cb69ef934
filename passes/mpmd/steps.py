"""A partitioned MPMD function as a list of steps, which every process walks in the same order.

    %0 = mpmd.fragment_call<mesh="m1", origin=["f"]> @f(%arg0)      Call("f", "m1", "F", (0,), (1,))
    %1 = mpmd.transfer %0                                           Transfer((1,), (2,))
                                                                    Free((1,))
    return %1

Values are numbered in the order of their definition. A value is freed after its last use. Transfers that follow each
other and do not depend on each other are one step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import error, op_error
from sdy.ir.walking import operations_in_block
from sdy.mpmd import FragmentCallOp, MeshTensorType, TransferOp


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the function `callee` on the mesh `mesh`.

    Attributes:
        phase: "F" for the forward of a stage, "B" for its backward, "U" for operations outside of stages.
    """

    callee: str
    mesh: str
    phase: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfers of independent values, started together."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Free:
    """Release of values that no later step uses."""

    values: tuple[int, ...]


Step: TypeAlias = Call | Transfer | Free


@dataclass(frozen=True)
class StepList:
    """The steps of a function.

    Attributes:
        types: The type of each value.
        inputs: The values of the arguments.
        outputs: The values of the results.
        steps: The steps in program order.
    """

    types: tuple[MeshTensorType, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, main: FuncOp) -> "StepList":
        """Return the steps of `main`.

        Raises:
            DiagnosticError: `main` has other operations than fragment calls and transfers: it is not partitioned.
        """
        numbers: dict[SSAValue, int] = {}
        types: list[MeshTensorType] = []

        def define(values: Sequence[SSAValue], where: Operation) -> tuple[int, ...]:
            for value in values:
                if not isinstance(value.type, MeshTensorType):
                    raise error(where, f"a value of type '{value.type}' is on no mesh; {_PARTITION_FIRST}")
                numbers[value] = len(types)
                types.append(value.type)
            return tuple(numbers[value] for value in values)

        inputs = define(main.args, main)
        steps: list[Call | Transfer] = []
        outputs: tuple[int, ...] = ()
        for op in operations_in_block(main.body.block):
            operands = tuple(numbers[operand] for operand in op.operands)
            match op:
                case FragmentCallOp():
                    results = define(op.results, op)
                    steps.append(Call(op.callee.string_value(), op.mesh_name.data, _phase(op), operands, results))
                case TransferOp():
                    steps.append(Transfer(operands, define(op.results, op)))
                case ReturnOp():
                    outputs = operands
                case _:
                    raise op_error(op, f"cannot be executed; {_PARTITION_FIRST}")
        return cls(tuple(types), inputs, outputs, tuple(_with_frees(_batched(steps), inputs, outputs)))


def _phase(op: FragmentCallOp) -> str:
    """Return "B" if a computation of the fragment is transposed, "F" if none is, "U" if it has none."""
    counts = [origin.data.transpose_count for origin in op.origin]
    return "B" if any(counts) else "F" if counts else "U"


_PARTITION_FIRST = "the phase PARTITION of Shardy's compiler leaves calls of fragments and transfers alone"


def _batched(steps: Sequence[Call | Transfer]) -> Iterator[Call | Transfer]:
    """Yield the steps with consecutive independent transfers merged."""
    pending: Transfer | None = None
    for step in steps:
        if isinstance(step, Transfer) and pending is not None and set(step.inputs).isdisjoint(pending.outputs):
            pending = Transfer(pending.inputs + step.inputs, pending.outputs + step.outputs)
            continue
        if pending is not None:
            yield pending
        pending = step if isinstance(step, Transfer) else None
        if pending is None:
            yield step
    if pending is not None:
        yield pending


def _with_frees(steps: Iterator[Call | Transfer], inputs: Sequence[int], outputs: Sequence[int]) -> Iterator[Step]:
    """Yield the steps, and after each the release of values that are not used again."""
    ordered = list(steps)
    last_use = dict.fromkeys(inputs, -1)
    for position, step in enumerate(ordered):
        last_use.update(dict.fromkeys((*step.outputs, *step.inputs), position))
    dying: dict[int, list[int]] = {}
    for value, position in last_use.items():
        if value not in outputs:
            dying.setdefault(position, []).append(value)
    if -1 in dying:
        yield Free(tuple(dying[-1]))
    for position, step in enumerate(ordered):
        yield step
        if position in dying:
            yield Free(tuple(sorted(dying[position])))
