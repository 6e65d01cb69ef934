"""Settings that every test shares."""

import os

# Before anything initialises JAX: programs run on eight virtual CPU devices.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
