"""Whether what was read is a valid program: `verifier.py`, and what it is made of."""
