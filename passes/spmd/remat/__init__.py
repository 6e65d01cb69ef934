"""Rematerialization: recompute values instead of keeping them in memory until their last use.

program.py   a per-device program under a memory limit; stacks.py, the values that a loop stacks for a later loop
search.py    the limit of temporaries and the order of kernels with which it fits; early.py, updates as soon as possible
choice.py    the values to recompute, by the memory over time that kernel_timeline.py has
recompute.py copies of the kernels that compute them, before the kernels that read them; order.py, barriers between
recomputed.py  what was recomputed, the bytes that it saves, and the products that it adds
"""
