"""Pipelines: schedules, and their cost before anything runs.

schedules.py     orders of forwards and backwards on each device, and their checks
simulation.py    execution of a schedule in time
prediction.py    step time, bubble, memory and bytes of a pipeline: `sdy.mpmd.predict` and `sdy.mpmd.compare`
"""
