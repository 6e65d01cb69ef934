"""MLIR text -> xDSL operations: `parser.py`, and what it is made of."""
