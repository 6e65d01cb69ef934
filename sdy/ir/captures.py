"""The values from outside that the regions of an operation use."""

from xdsl.ir import Operation, SSAValue

from sdy.ir.walking import nesting_operations, operations


def captured_values(op: Operation) -> list[SSAValue]:
    """What the regions of `op` use of the values around it, each once, in the order of the text."""
    inside = operations(op)
    own = set[SSAValue](result for inner in inside for result in inner.results)
    for nesting in nesting_operations(op):
        own.update(argument for region in nesting.regions for block in region.blocks for argument in block.args)
    used = (operand for inner in inside if inner is not op for operand in inner.operands)
    return list(dict.fromkeys(value for value in used if value not in own))
