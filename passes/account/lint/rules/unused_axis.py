"""A mesh axis that shards no large tensor.

Devices along the axis hold the same data and repeat the same computation: on a mesh of 4 x 2 devices whose second axis
is unused, one half repeats the work of the other.

Before::

    batch = jax.device_put(batch, NamedSharding(mesh, P("data")))  # the mesh is ("data", "model")

After::

    batch = jax.device_put(batch, NamedSharding(mesh, P(("data", "model"))))
"""

from collections.abc import Iterator

from sdy.dialect.ops import ManualComputationOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.properties import num_bytes
from sdy.stablehlo.constants import ConstantOp

_FRACTION = 8
"""A tensor also counts as large if it has 1/8 of the bytes of the largest one, so that small programs have large
tensors."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find axes that no large tensor and no manual computation uses, at the tensor with the most local bytes."""
    values = [value for value in program.values if not isinstance(value.owner, ConstantOp)]
    if not values:
        return
    large = min(program.thresholds.large, max(num_bytes(value.type) for value in values) // _FRACTION)
    shardings = [get_sharding(value) for value in values if num_bytes(value.type) >= large]
    used = {axis.name for sharding in shardings if sharding for axis in sharding.axes()}
    used |= {name for manual in operations_of(program.module, ManualComputationOp) for name in manual.manual_axes.data}
    largest = max(values, key=lambda value: program.local_bytes(value, get_sharding(value)))
    local = program.local_bytes(largest, get_sharding(largest))
    for name, size in program.mesh.axes:
        if size > 1 and name not in used:
            yield Suspicion(
                largest,
                f'mesh axis "{name}" of size {size} shards no large tensor; devices along it repeat the same work',
                f'shard {program.called(largest)}, {largest.type}, over it as well, or make a mesh without "{name}"',
                held=local - local // size,
            )
