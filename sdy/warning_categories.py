"""Warning categories, for Python's `warnings` filters.

warnings.filterwarnings("ignore", category=sdy.ComputedWholeWarning)   # silence replicated computation
warnings.filterwarnings("error", category=sdy.ShardingWarning)         # reject programs with any warning
"""


class ShardingWarning(UserWarning):
    """Base class of all warnings: a program is valid, but its shardings may not be the intended ones."""


class ComputedWholeWarning(ShardingWarning):
    """Computation or storage is replicated: devices receive or hold more bytes than their shards have."""


class LostShardingWarning(ShardingWarning):
    """A requested sharding is not the one used."""


class UnknownOperationWarning(ShardingWarning):
    """An operation has no sharding rule, so that propagation stops at it."""
