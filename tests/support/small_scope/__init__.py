"""Small programs, all of them: each operation with small sizes, split in every way over small meshes.

choices.py     a case as a sequence of choices, of which all can be taken in turn, or some at random
shardings.py   the meshes, and the ways in which a tensor can be split over them
program.py     the text of a case, and the arrays to run it with
shaping.py, indexing.py, windows.py, contractions.py, reductions.py, elementwise.py, linear_algebra.py,
control_flow.py, manual.py, reshards.py
               families of operations, each a function of choices to a program
collectives.py the collectives in the bodies of manual computations
check.py       a case partitioned and interpreted on all devices, beside the whole of it
found.py       cases that once came out wrong, invalid, or not at all
campaign.py    many cases, counted: `python -m small_scope.campaign --help` from tests/support
"""
