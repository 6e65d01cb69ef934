"""The printer of MLIR text: `printer.py` and its parts."""
