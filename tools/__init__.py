"""What a person runs: commands, each a process that lives for seconds."""

import atexit
import gc

# Python would look through what a command imports for garbage, a hundred times, and through all there is at its end.
gc.set_threshold(100_000)
atexit.register(gc.freeze)
