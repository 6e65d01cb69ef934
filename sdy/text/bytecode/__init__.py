"""Conversion between MLIR text and bytecode, and from text to HLO, by jaxlib in a subprocess.

conversion.py          the caller: starts the subprocess and reports its errors
jaxlib_converter.py    the subprocess: it imports jaxlib, and nothing of this package

jaxlib aborts its process on damaged bytes. A subprocess turns that into an error that names the file; it is started
only for bytecode and HLO.
"""
