"""xDSL operations -> MLIR text: `printer.py`, and what it is made of."""
