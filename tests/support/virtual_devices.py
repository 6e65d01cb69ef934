"""Environment of JAX in tests: eight virtual CPU devices, and settings of XLA for fast compilation."""

import os

_FLAGS = (
    "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
    # The MLIR pipeline of XLA's fusion emitters takes most of the time of compilation; versions without the option skip it.
    "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters=true"
)


def set_up() -> None:
    """Set the environment variables for this process and its children."""
    os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
