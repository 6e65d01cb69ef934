"""A dialect of one operation, `norm.rms`, brought to sdy from outside."""
