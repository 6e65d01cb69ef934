"""What makes an operation of the dialect wrong, in MLIR's words."""

from xdsl.ir import Operation


def verify_operation(op: Operation) -> None:
    """Check `op`."""
