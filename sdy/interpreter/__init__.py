"""The reference interpreter, which defines the semantics of programs in NumPy.

values.py        tensors, tokens and tuples as Python values
quantization.py  quantized tensors
tables.py        tables of implementations for xDSL's interpreter, by operation:
                 elementwise.py, comparison.py, bits.py; bodies.py vectorizes scalar regions
                 shaping.py, indexing.py, reductions.py, sorting.py, products.py, linear_algebra.py, batch_norm.py,
                 random.py, control_flow.py, custom_calls.py
registry.py      implementations of operations of other dialects
grid.py          a grid of devices that run programs concurrently; fibers.py implements their coroutines
manual.py        manual computations; shards.py extracts and assembles the shards of an array
collectives.py   communication between devices; groups.py resolves replica groups
check_dialect.py the `check` and `interpreter` dialects of StableHLO's tests; checks.py implements them
machine.py       the interpreter of a module on a grid of devices
"""
