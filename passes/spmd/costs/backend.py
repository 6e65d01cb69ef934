"""The back ends of XLA, between which the memory of a program differs."""

from enum import Enum


class Backend(Enum):
    """The kind of devices that XLA compiles for; the value is its name in hardware files.

    Both fuse operations into kernels by similar rules.
    """

    CPU = "cpu"
    """Runs kernels breadth-first, and gives large reductions to a library."""
    ACCELERATOR = "accelerator"
    """GPUs and TPUs: runs kernels in an order that needs little memory."""
