"""Environment of JAX in tests: eight virtual CPU devices, and XLA without optimizations, for fast compilation."""

import os

_FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


def set_up() -> None:
    """Set the environment variables for this process and its children."""
    os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
