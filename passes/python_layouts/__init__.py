"""Layouts as Python: the shardings of a program as `PartitionSpec`s, and a file that applies them without sdy.

specs.py     `sdy.specs`; layout_specs.py, the shardings as trees; received.py, what a program receives with them
paths.py     the paths of arguments and results in their trees
rules.py     the fewest patterns of paths that tell all shardings apart
equations.py the equations of a jaxpr and their shardings; equation_rules.py, their rules; constrained.py applies them
file.py      the parts of a file; of each format: for_jax.py, for_flax.py, for_equinox.py, for_torch.py
"""
