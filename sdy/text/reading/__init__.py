"""The parser of MLIR text: `parser.py` and its mixins."""
