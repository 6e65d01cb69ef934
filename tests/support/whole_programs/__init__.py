"""Random programs of several operations, whatever a person may write: compiled, run, and held against the whole.

values.py      a tensor by its name, and what is known of its numbers
arrays.py      the numbers that programs run with
block.py       a list of operations that is being written, by choices, and the module around it
operands.py    the operands that an operation wants: found among the values there are, or made
elementwise.py, conversions.py, shaping.py, slicing.py, indexing.py, windows.py, reductions.py, contractions.py,
control_flow.py
               families of operations, each a function that adds one to a block
program.py     a whole program, by choices
check.py       a program partitioned, and run by the interpreter or by XLA, beside the whole of it
shrink.py      the least choices that still make a program which fails in the same way
campaign.py    many programs, counted: `python -m whole_programs.campaign --help` from tests/support
"""
