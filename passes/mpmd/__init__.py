"""Pipelines: schedules, and their cost before anything runs.

schedules.py     orders of forwards and backwards on each device, and their checks
simulation.py    execution of a schedule in time
prediction.py    step time, bubble, memory and bytes of a pipeline: `sdy.mpmd.predict` and `sdy.mpmd.compare`
timeline.py      a step as text and for Perfetto; timeline_picture.py draws it

Programs that Shardy's MPMD compiler has partitioned:

programs.py          the forms in which they are given, and the function to run
scheduled_calls.py   its calls in the order of a schedule
steps.py             that function as one list of steps
fragment_modules.py  the functions that it calls, as modules
step_execution.py    execution of the steps in time, and in memory
plan.py              their cost: `sdy.mpmd.plan`
"""
