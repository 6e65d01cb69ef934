"""Execution of MPMD programs: several programs on several meshes, in one process or in many.

fragments.py   the programs of the fragments, compiled for their meshes
value_places.py  the devices and the sharding of each value
pipeline.py    the list of steps as a function on jax arrays
run.py         `sdy.mpmd.run`
circular.py    `sdy.mpmd.circular`

Their front end, with Shardy's compiler:

named_computations.py  stages and microbatches of a JAX program as MPMD operations
shardy_compiler.py     Shardy's compiler, in a process of its own
front_end.py           `sdy.mpmd.stages`
"""
