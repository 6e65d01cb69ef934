"""Rematerialization: recompute values instead of keeping them in memory until their last use.

`timeline` has the memory of a per-device program over time, `choice` chooses the values to recompute, and `recompute`
copies the operations that compute them.
"""
