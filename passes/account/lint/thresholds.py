"""From where on something counts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bytes of one device, and how many are many; each is an option of the tool."""

    large: int = 2**20
    """What costs fewer bytes, in all places that are alike, is not told."""
    replicated: int = 2**28
    """The same of bytes that devices hold alike: layouts that are good replicate what is not very large."""
    small: int = 2**16
    """A collective of fewer bytes takes as long as its messages do, however few the bytes are."""
    many: int = 32
    """So many of those, in one line, are many."""
