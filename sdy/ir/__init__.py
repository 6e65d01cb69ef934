"""Access to xDSL: the only package that reads, writes or replaces xDSL's private members.

    fast_access.py     fast access to fields of operations, values and uses, to traits and verifiers
    walking.py         walks over all operations nested in an operation, cached between edits; captured values
    operation_key.py   memoization of functions of operations, by everything but their operands
    building.py        fast construction and cloning of operations, and of attributes
    editing.py         insertion, erasure, replacement and rewriting of operations; moving and inlining of regions
    companions.py      side tables: Python objects attached to a module and copied with it
    shapes.py          the shapes of values and types
    elements.py        the elements of constants
    constraints.py     constraints on types and attributes, with their MLIR descriptions
    lazy_dialects.py   dialects whose definitions are loaded lazily
    open_syntax.py     xDSL's parsers and printer, with replaceable steps

No other file names a private member of xDSL, which `tests/project/test_xdsl_door.py` checks; that test states for each
member named here why it is needed.
"""
