"""Many small collectives that one collective could replace.

The time of a small collective is latency, whatever its size: a thousand scalars that are summed one by one take a
thousand times as long as one vector. The rule reports independent collectives of one source line, the lines of one kind
together, and hundreds of one kind anywhere, that take a part of the step time. XLA combines many all-reduces, so that
only hundreds of them are reported, and no other kinds of collectives. In a loop, collectives count once per iteration
if no iteration needs the results of earlier ones, as in `jax.lax.map`, or if each has several of a line.

Before::

    largest = [jnp.max(y[:, column]) for column in range(256)]

After::

    largest = jnp.max(y[:, :256], axis=0)
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from sdy.diagnostics import Location
from sdy.ir.fast_access import operands_of
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.places import python_line
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.loops import arguments_behind, loop_trips, values_behind
from sdy.passes.common.properties import value_bytes
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.control_flow import WhileOp

_HUNDREDS = 4
"""The number of small collectives of one kind in a program that is reported, in units of `--many`."""

_IN_ITERATION = 8
"""The number of small collectives of one line in an iteration that count in each iteration."""

_LEAST_TIME = 0.05
"""The part of the step time that small collectives take if they are reported."""

Kind = tuple[str, tuple[str, ...], Location | tuple[str, Attribute], Block | None]


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find small collectives of the same kind and axes that stem from one line of Python, or from equal operations."""
    kinds: dict[Kind, list[Collective]] = {}
    for each in program.collectives:
        if sum(map(value_bytes, each.op.results)) < program.thresholds.small:
            op = each.source or each.op
            # A line of another program than a Python file is one operation: equal ones stand for it.
            where = python_line(program.place(op)) or (op.name, each.op.results[0].type)
            kinds.setdefault((each.kind, each.axes, where, each.op.parent), []).append(each)
    by_line: dict[tuple[str, tuple[str, ...]], list[Collective]] = {}
    many = {
        key: alike
        for key, alike in kinds.items()
        if _are_many(alike, program.thresholds.many * (_HUNDREDS if key[0] == "all-reduce" else 1))
    }
    lines = [
        (line, together)
        for line, together in zip(many.items(), _independent([*many.values()]), strict=True)
        if together and program.seconds({each.op for each in together}) >= _LEAST_TIME * program.costs.seconds
    ]
    for ((kind, axes, *_), _), together in lines:
        by_line.setdefault((kind, axes), []).extend(together)
    for ((kind, axes, where, _), alike), together in lines:
        yield Suspicion(
            where if isinstance(where, Location) else alike[0].source or alike[0].op,
            f"independent small {kind}s over {quoted_axes(axes)} run one by one",
            "stack their operands into one tensor, so that one collective suffices",
            received=sum(each.bytes for each in together),
            times=sum(each.times for each in together),
            collectives=[each.op for each in together],
            cures=_replicated(program, by_line[kind, axes]),
            cause=(kind, axes),
        )
    explained = {each for together in by_line.values() for each in together}
    others = [each for alike in kinds.values() for each in alike if each not in explained]
    yield from _anywhere(program, others)


def _replicated(program: LintedProgram, collectives: Sequence[Collective]) -> Sequence[Cure]:
    """Return the fix that replicates the small arguments that are gathered; none for other tensors."""
    candidates, arguments = Candidates(program), dict[BlockArgument, None]()
    for each in collectives if collectives[0].kind == "all-gather" else ():
        origin = each.cause and each.cause.tensor and _origin(program, each.cause.tensor)
        if not isinstance(origin, BlockArgument) or origin.owner is not program.main.body.block:
            return ()
        arguments.update(dict.fromkeys(candidates.with_state(origin)))
    edits = tuple(candidates.shard(each, ((),) * len(value_dims(each))) for each in arguments)
    return [Cure(edits)] if edits else []


def _origin(program: LintedProgram, value: SSAValue) -> SSAValue:
    """Return the value that a value is moved or broadcast from."""
    *_, origin = program.use_def.trace(value)
    owner = origin.owner
    return _origin(program, owner.operands[0]) if isinstance(owner, BroadcastInDimOp) else origin


def _are_many(alike: Sequence[Collective], least: int) -> bool:
    """Return whether at least `least` collectives of one line could be one, counted in all iterations of a loop."""
    loop = alike[0].op.parent_op()
    if len(alike) >= least:
        return True
    if not isinstance(loop, WhileOp) or len(alike) * (loop_trips(loop) or 1) < least:
        return False
    are_several = len(alike) >= _IN_ITERATION and alike[0].kind != "all-reduce"
    return are_several or not _continues(loop.body.block, [each.op for each in alike])


def _continues(body: Block, collectives: Sequence[Operation]) -> bool:
    """Return whether one of these collectives of a loop's body needs the result of one in an earlier iteration."""
    returned = operands_of(body.last_op) if body.last_op else ()
    carried = arguments_behind([operand for op in collectives for operand in operands_of(op)], body)
    while more := arguments_behind([returned[index] for index in carried], body) - carried:
        carried |= more
    next_values = values_behind([returned[index] for index in carried], body)
    return any(result in next_values for op in collectives for result in op.results)


def _anywhere(program: LintedProgram, collectives: list[Collective]) -> Iterator[Suspicion]:
    """Find hundreds of small collectives of one kind, without the all-reduces that XLA combines."""
    kinds: dict[tuple[str, tuple[str, ...], Block | None], list[Collective]] = {}
    for each in collectives:
        kinds.setdefault((each.kind, each.axes, each.op.parent), []).append(each)
    hundreds = {key: alike for key, alike in kinds.items() if len(alike) >= _HUNDREDS * program.thresholds.many}
    independent = _independent([*hundreds.values()])
    least = _LEAST_TIME * program.costs.seconds
    for ((kind, axes, _), alike), together in zip(hundreds.items(), independent, strict=True):
        combined = {*together} if kind == "all-reduce" else set[Collective]()
        left = [each for each in alike if each not in combined]
        if len(left) < _HUNDREDS * program.thresholds.many or program.seconds({each.op for each in left}) < least:
            continue
        types = Counter(each.op.results[0].type for each in left)
        type_, count = types.most_common(1)[0]
        often = f"{count:,} of them with result {type_}"
        example = next(each for each in left if each.op.results[0].type == type_)
        yield Suspicion(
            example.source or example.op,
            f"{len(left):,} small {kind}s over {quoted_axes(axes)} run one by one, {often}",
            "leave small tensors replicated, or stack them into one tensor, so that one collective suffices",
            received=sum(each.bytes for each in left),
            times=len(left),
            collectives=[each.op for each in left],
            cures=_replicated(program, left),
        )


def _independent(groups: Sequence[Sequence[Collective]]) -> list[list[Collective]]:
    """Return the collectives of each group that do not depend on the result of another one of the group."""
    bits: dict[Operation | Block, int] = {each.op: 1 << number for number, group in enumerate(groups) for each in group}
    before: dict[Operation | Block, int] = {}
    """The groups whose results each operation depends on, as bits."""
    for block in dict.fromkeys(each.op.parent for group in groups for each in group):
        for op in block.ops if block else ():
            before[op] = 0
            inside = op.walk() if op.regions else (op,)
            for owner in {operand.owner for inner in inside for operand in operands_of(inner)}:
                before[op] |= before.get(owner, 0) | bits.get(owner, 0)
    return [[each for each in group if not before[each.op] & bits[each.op]] for group in groups]
