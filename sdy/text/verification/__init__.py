"""Verification of programs, with MLIR's messages: `verifier.py` and its checks."""
