"""What a warning about a program is of, as classes by which Python's `warnings` are filtered.

warnings.filterwarnings("ignore", category=sdy.ComputedWholeWarning)   # not to be told
warnings.filterwarnings("error", category=sdy.ShardingWarning)         # to refuse such a program
"""


class ShardingWarning(UserWarning):
    """What a program does otherwise than a person would think, though nothing is wrong. All others are such."""


class ComputedWholeWarning(ShardingWarning):
    """Devices compute more than their part of something: they receive, or hold, more bytes than their parts have."""


class LostShardingWarning(ShardingWarning):
    """A sharding that was asked for somewhere is not the one that is there."""


class UnknownOperationWarning(ShardingWarning):
    """An operation has no sharding rule, so that shardings stop there."""
