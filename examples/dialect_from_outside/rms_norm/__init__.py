"""A plugin dialect for sdy with one operation, `norm.rms`."""
