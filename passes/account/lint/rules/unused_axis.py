"""An axis of the mesh that splits no large tensor.

Devices along it compute the same and hold the same: of a mesh of 4 x 2 devices whose second axis nobody names, one half
repeats what the other does.

Before::

    batch = jax.device_put(batch, NamedSharding(mesh, P("data")))  # the mesh is ("data", "model")

After::

    batch = jax.device_put(batch, NamedSharding(mesh, P(("data", "model"))))
"""

from collections.abc import Iterator

from sdy.dialect.ops import ManualComputationOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.num_bytes import num_bytes
from sdy.stablehlo.constants import ConstantOp

_PART = 8
"""What is as large as this part of the largest tensor counts too: an axis that splits what there is is used."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The axes that no large tensor and no manual computation has, at the tensor of which devices hold most."""
    values = [value for value in program.values if not isinstance(value.owner, ConstantOp)]
    if not values:
        return
    large = min(program.thresholds.large, max(num_bytes(value.type) for value in values) // _PART)
    shardings = [get_sharding(value) for value in values if num_bytes(value.type) >= large]
    used = {axis.name for sharding in shardings if sharding for axis in sharding.axes()}
    used |= {name for manual in operations_of(program.module, ManualComputationOp) for name in manual.manual_axes.data}
    largest = max(values, key=lambda value: program.local_bytes(value, get_sharding(value)))
    local = program.local_bytes(largest, get_sharding(largest))
    for name, size in program.mesh.axes:
        if size > 1 and name not in used:
            yield Suspicion(
                largest,
                f'axis "{name}" of the mesh, of {size} devices, splits no large tensor: these devices compute the same',
                f'split {program.called(largest)}, {largest.type}, by it too, or make a mesh without "{name}"',
                held=local - local // size,
            )
