"""All-reduces that XLA combines into one, so that all of their operands are in memory together.

    g1 = all_reduce(x)                x = ...; y = ...
    g2 = all_reduce(y)        ->      g1, g2 = all_reduce(x, y)

XLA's `AllReduceCombiner` (`all_reduce_combiner.cc`) combines independent all-reduces of one kind, element type and
groups of devices, such as the gradients of a data-parallel step. Their bytes are limited as on GPUs, by
`--xla_gpu_all_reduce_combine_threshold_bytes`; XLA for CPUs has no limit.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.kernel_dependences import Dependences
from sdy.passes.spmd.costs.kernels import Kernel
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.reducing_collectives import AllReduceOp

_MOST_BYTES = 30 * 1024**2
_MOST = 256


def combined_reductions(kernels: Sequence[Kernel], inputs: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """Yield the indices of the all-reduces that XLA combines, several for each combined one.

    Args:
        kernels: The kernels of a block.
        inputs: For each kernel, the indices of the earlier ones that it depends on.
    """
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, kernel in enumerate(kernels):
        if isinstance(kernel.operation, AllReduceOp):
            groups[_key(kernel.operation)].append(index)
    several = [group for group in groups.values() if len(group) > 1]
    bytes_of = {index: sum(map(value_bytes, kernels[index].operation.results)) for group in several for index in group}
    dependences = Dependences(bytes_of, inputs)
    for left in several:
        while left:
            combined = _first_combined(left, bytes_of, dependences)
            left = [index for index in left if index not in combined]
            if len(combined) > 1:
                dependences.merge(combined)
                yield combined


def _key(op: AllReduceOp) -> Hashable:
    reduction = tuple(inner.name for inner in op.regions[0].walk())
    return reduction, op.properties["replica_groups"], tensor_type(op.operands[0]).element_type


def _first_combined(left: Sequence[int], bytes_of: Mapping[int, int], dependences: Dependences) -> list[int]:
    """Return the first kernel of `left` and those after it that can be combined with it.

    This is a hot path: in a chain of all-reduces, each one is tried with all before it.
    """
    combined: list[int] = []
    size = together = needed = 0
    for index in left:
        if combined and (len(combined) == _MOST or size + bytes_of[index] > _MOST_BYTES):
            break
        bit = dependences.bits((index,))
        # An earlier all-reduce may need this one: it was combined with a later one, or needs one that was.
        if not dependences.follows_any(index, together) and not bit & needed:
            combined.append(index)
            together |= bit
            needed |= dependences.before(index)
            size += bytes_of[index]
    return combined
