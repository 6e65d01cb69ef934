"""Values captured by the regions of an operation."""

from xdsl.ir import Operation, SSAValue

from sdy.ir.walking import nesting_operations, operations


def captured_values(op: Operation) -> list[SSAValue]:
    """Return the values defined outside `op` that its regions use, each once, in the order of first use."""
    inside = operations(op)
    own = set[SSAValue](result for inner in inside for result in inner.results)
    for nesting in nesting_operations(op):
        own.update(argument for region in nesting.regions for block in region.blocks for argument in block.args)
    used = (operand for inner in inside if inner is not op for operand in inner.operands)
    return list(dict.fromkeys(value for value in used if value not in own))
