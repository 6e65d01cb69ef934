"""Programs as Python: a printer from StableHLO to files that import JAX alone.

program.py       the file of a module
scope.py         the values of a function; statements.py for its statements, broadcasting.py for what they leave to
                 NumPy's rules, names.py for names, expressions.py for expressions and their lines, literals.py for
                 types and constants, device_axes.py for the mesh
tables           a printer for each operation: elementwise.py, shaping.py, products.py, reductions.py (with
                 comparators.py for sorts), indexing.py, control_flow.py (with loops.py, and scans.py for the loops that
                 are scans), collectives.py, library_calls.py, shardings.py
"""

from sdy.passes.python.program import to_python

__all__ = ["to_python"]
