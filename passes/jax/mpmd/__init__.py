"""Execution of MPMD programs: several programs on several meshes, in one process or in many.

steps.py       a function of fragment calls and transfers as one list of steps
fragments.py   the programs of the fragments, compiled for their meshes
value_places.py  the devices and the sharding of each value
pipeline.py    the list of steps as a function on jax arrays
run.py         `sdy.mpmd.run`
"""
