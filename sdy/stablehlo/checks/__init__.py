"""Checks and type inference shared by several verifiers, with MLIR's messages."""
