"""Exhaustive small programs: each operation with small shapes, in every sharding over small meshes.

choices.py     a case as a sequence of choices, to enumerate or to sample
shardings.py   the meshes, and all shardings of a tensor over them
program.py     builder of a case's text and inputs
shaping.py, indexing.py, windows.py, contractions.py, reductions.py, elementwise.py, linear_algebra.py,
control_flow.py, manual.py, reshards.py
               families of operations: functions from choices to a program
collectives.py collectives in the bodies of manual computations
check.py       a case partitioned, interpreted on all devices, and compared with the unpartitioned program
found.py       regression cases: once wrong, invalid, or refused
campaign.py    many cases, counted: `python -m small_scope.campaign --help` from tests/support
"""
