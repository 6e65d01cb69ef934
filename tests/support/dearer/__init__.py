"""Received bytes of small programs, `sdy.jit` beside `jax.jit`: nowhere dearer.

case.py        a program that is being drawn: operands, a function, layouts of operands and results
measure.py     both compilations of a case: received bytes, and numbers
moves.py, resizes.py, indexed.py, ordered.py, windows.py
               families of programs, each a function of choices to a case, in one file for each kind of operation
campaign.py    many cases, counted by family: `python -m dearer.campaign --help` from tests/support
"""
