"""Operations made from what another one is made of.

What there is to check, or to add where nothing is said, was done when the first was made; and one that was just made
stands nowhere yet. To do without takes half the time of xDSL's own functions, for each operation of a large text.
"""

# What xDSL keeps to itself is written here as it writes it, so that its own functions find it.
# pyright: reportPrivateUsage=false

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues, Use


def make(
    op_class: type[Operation],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
    regions: Sequence[Region],
    location: LocationAttr,
) -> Operation:
    """An operation without successors, of which nothing is left to be filled in, as `op_class.create` makes it."""
    op = op_class.__new__(op_class)
    op._operands = SSAValues(operands)
    uses: list[Use] = []
    for index, operand in enumerate(operands):
        use = Use(op, index)
        first = operand.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        operand.first_use = use
        uses.append(use)
    op._operand_uses = (*uses,)
    op.results = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    op.properties = {**properties}
    op.attributes = {**attributes}
    op.location = location
    op._successors = op._successor_uses = ()
    op.regions = (*regions,)
    for region in regions:
        region.parent = op
    return op


def append(block: Block, op: Operation) -> None:
    """Put `op`, which stands nowhere and has nothing in it that `block` is in, at the end, as `block.add_op` does."""
    op.parent = block
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


def copy(region: Region, location: LocationAttr) -> Region:
    """A copy of a region in which no value is used before it is defined; all in it stands at `location`."""
    return _Copier(location).region(region)


def copy_body(region: Region) -> Region:
    """A copy of a region that uses no values from outside."""
    copier = _Copier()
    copied = copier.region(region)
    copier.resolve(region.walk(), copied.walk())
    return copied


def clone(top: Operation) -> Operation:
    """A copy of `top` and of all in it, in two thirds of the time that `top.clone()` takes.

    What it uses from outside, the copy uses too.
    """
    return _Copier().whole(top)


class _Copier:
    """Copies operations to where they stand, or to one `location`.

    What has been copied so far is there by `id`: what xDSL's objects are hashed by is a function of Python.
    """

    def __init__(self, location: LocationAttr | None = None) -> None:
        self.location = location
        self.values: dict[int, SSAValue] = {}
        self.blocks: dict[int, Block] = {}
        self.met_unknown = False
        """Whether an operand is from outside, or defined further down."""

    def whole(self, top: Operation) -> Operation:
        copied = self.operation(top)
        self.resolve(top.walk(), copied.walk())
        return copied

    def resolve(self, ops: Iterable[Operation], copies: Iterable[Operation]) -> None:
        """Let the copies use copies of what was defined further down, too."""
        if self.met_unknown:
            for op, new in zip(ops, copies, strict=True):
                new.operands = [self.values.get(id(operand), operand) for operand in op._operands]

    def operation(self, op: Operation) -> Operation:
        values, used = self.values, op._operands
        operands = [values.get(id(operand), operand) for operand in used]
        types = [result._type for result in op.results]
        new = make(op.__class__, operands, types, op.properties, op.attributes, (), self.location or op.location)
        for operand, given in zip(operands, used, strict=True):
            if operand is given:
                self.met_unknown = True
        for result, new_result in zip(op.results, new.results, strict=True):
            if result.name_hint is not None:
                new_result.name_hint = result.name_hint
            values[id(result)] = new_result
        if op._successors:
            new.successors = [self.blocks.get(id(block), block) for block in op._successors]
        if op.regions:
            new.regions = (*[self.region(region) for region in op.regions],)
            for region in new.regions:
                region.parent = new
        return new

    def region(self, region: Region) -> Region:
        blocks = [*region.blocks]
        copies = [Block(arg_types=block.arg_types) for block in blocks]
        self.blocks.update(zip(map(id, blocks), copies, strict=True))
        for block, copied in zip(blocks, copies, strict=True):
            copied.name_hint = block.name_hint
            for argument, new_argument in zip(block.args, copied.args, strict=True):
                new_argument.location, new_argument.name_hint = self.location or argument.location, argument.name_hint
                self.values[id(argument)] = new_argument
            op = block._first_op
            while op is not None:
                append(copied, self.operation(op))
                op = op._next_op
        return Region(copies)
