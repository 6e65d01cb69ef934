"""Access to xDSL: the only package that reads, writes or replaces xDSL's private members.

    fields.py          fast access to the fields of operations, values and uses
    walking.py         walks over all operations nested in an operation, cached between edits
    traits.py          the traits of an operation
    operation_key.py   memoization of functions of operations, by everything but their operands
    building.py        fast construction and cloning of operations
    editing.py         insertion, erasure and replacement of operations
    rewriting.py       a pattern rewrite walker with a seeded worklist
    companions.py      side tables: Python objects attached to a module and copied with it
    shapes.py          the shapes of values and types
    elements.py        the elements of constants
    captures.py        the values that regions capture from outside
    type_constraints.py, attribute_constraints.py
                       constraints on types and attributes, with their MLIR descriptions
    shared.py          interned attributes that hold plain values
    lazy_dialects.py   dialects whose definitions are loaded lazily
    parsing.py         xDSL's parsers, with replaceable steps
    printing.py        xDSL's printer, with replaceable steps

No other file names a private member of xDSL, which `tests/project/test_xdsl_door.py` checks; that test states for each
member named here why it is needed.
"""
