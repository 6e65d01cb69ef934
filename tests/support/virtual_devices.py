"""Environment of JAX in tests: eight virtual CPU devices, and settings of XLA for fast compilation."""

import os

_FLAGS = (
    "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
    # XLA's fusion emitters take most of the compile time. Versions of XLA without the option ignore it.
    "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters=true"
)


def set_up() -> None:
    """Set the environment variables for this process and its children."""
    os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
