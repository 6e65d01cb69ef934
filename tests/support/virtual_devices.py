"""What JAX is told before anything initialises it: eight virtual CPU devices, and to compile soon, not for speed."""

import os

_FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


def set_up() -> None:
    """Say so in the environment, for this process and those that it starts."""
    os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
