"""The one door to xDSL: what is read, written or replaced of its parts that it keeps to itself.

    fields.py          what an operation, a value or a use holds, read where it is read for each operation of a program
    walking.py         all operations in an operation
    traits.py          the traits of an operation
    operation_key.py   what an operation is, apart from which values it works on
    building.py        operations made from what another one is made of
    editing.py         operations put somewhere, taken away, replaced
    rewriting.py       patterns applied where they can apply
    companions.py      what is known of a module beside its text, which is copied with it
    shapes.py          the shapes of values and types
    elements.py        the elements of constants
    captures.py        the values from outside that the regions of an operation use
    described.py       constraints on types, and attribute_constraints.py on attributes, that MLIR has words for
    shared.py          attributes around plain values
    families.py        dialects whose definitions are loaded when they are named
    parsing.py         xDSL's parsers, of which each step can be replaced
    printing.py        xDSL's printer, likewise

No other file names a private part of xDSL, which `tests/project/test_xdsl_door.py` checks; it says of each that is
named here what would break without it.
"""
