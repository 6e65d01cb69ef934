"""Random programs of several operations: partitioned, compiled, run, and compared with the unpartitioned program.

values.py      a tensor by its name, and bounds on its elements
arrays.py      the arrays that programs run with
block.py       builder of a list of operations, driven by choices, and of the module around it
operands.py    choice of an operation's operands among the values of a block, or new ones
elementwise.py, conversions.py, shaping.py, slicing.py, indexing.py, windows.py, reductions.py, contractions.py,
control_flow.py
               families of operations: functions that append an operation to a block
program.py     a complete program, driven by choices
check.py       a program partitioned, run by the interpreter or by XLA, and compared
shrink.py      minimization of a failing program
campaign.py    many programs, counted: `python -m whole_programs.campaign --help` from tests/support
"""
