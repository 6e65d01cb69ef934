"""Environment of JAX in tests: eight virtual CPU devices, and settings of XLA for fast compilation."""

import os

FAST_COMPILATION = (
    "--xla_backend_optimization_level=0 "
    # XLA's fusion emitters take most of the compile time. Versions of XLA without the option ignore it.
    "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters=true"
)
"""Flags of XLA, for `XLA_FLAGS`."""


def set_up() -> None:
    """Set the environment variables for this process and its children."""
    flags = f"--xla_force_host_platform_device_count=8 {FAST_COMPILATION}"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
