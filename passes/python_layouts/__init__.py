"""Layouts as Python: the shardings of a program as `PartitionSpec`s, and a file that applies them without sdy.

specs.py     `sdy.specs`; layout_specs.py, the shardings as trees; received.py, what a program receives with them alone
paths.py     the paths of arguments and results in their trees
rules.py     the fewest patterns of paths that tell all shardings apart
file.py      the file; formats.py for Flax, MaxText, Equinox and PyTorch
"""
