"""The reference interpreter: what a program means, in NumPy, and nothing else.

values.py        tensors, tokens and tuples as Python values
quantization.py  quantized ones
tables.py        implementations as tables for xDSL's interpreter
                 elementwise.py, comparison.py, bits.py; bodies.py runs such functions on many elements at once
                 shaping.py, indexing.py, reductions.py, sorting.py, products.py, linear_algebra.py, batch_norm.py,
                 random.py, control_flow.py, custom_calls.py
registry.py      what operations of other dialects compute
grid.py          devices that run programs together; fibers.py lets one of them compute at a time
manual.py        what one device does inside of a program of all of them; shards.py tells which part it has
collectives.py   what the devices do together; groups.py says which of them
check_dialect.py the dialects of tests that run programs and compare what they give; checks.py does so
machine.py       all of it as an interpreter
interpret.py     a module, whole or partitioned, as a function of arrays
"""
