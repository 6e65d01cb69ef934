"""Bytes received by small programs under `sdy.jit` and `jax.jit`: `sdy.jit` never receives more.

case.py        a program built from random choices: operands, a function, shardings of operands and results
measure.py     both compilations of a case: bytes received, and results
moves.py, resizes.py, indexed.py, ordered.py, windows.py
               families of programs: functions from choices to a case, a file for each kind of operation
campaign.py    many cases, counted by family: `python -m dearer.campaign --help` from tests/support
"""
