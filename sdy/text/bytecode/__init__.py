"""MLIR bytecode in and out, and HLO out, which jaxlib reads and writes, in a process of its own.

conversion.py   what this process asks: the text of a file of bytecode, and the bytecode or the HLO of a text
by_jaxlib.py    what the other process answers; it alone has jaxlib, and shares nothing with this package

jaxlib ends the process that it is in where it meets damaged bytes. That should be an error that names the file, so it
is another process, started for files of bytecode alone.
"""
