"""Importing this project has no side effects on the process."""

import subprocess
import sys

CHECK = """
import atexit, gc, importlib, locale, logging, os, pkgutil, signal, sys, threading, warnings
import dask.distributed, flatbuffers, graphviz, greenlet, jax, jax.export, lark, numba, numpy, pytoulbar2, rich.console
import jax.experimental.custom_partitioning, scipy.special, xdsl.dialects.builtin, xdsl.interpreter

def settings():
    return {
        "functions to call at exit": atexit._ncallbacks(),
        "garbage collection": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)),
        "the most calls within calls": sys.getrecursionlimit(),
        "the stacks of threads": threading.stack_size(),
        "threads": threading.active_count(),
        "the turns of threads": sys.getswitchinterval(),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, sys.gettrace(), sys.getprofile()),
        "filters of warnings": list(warnings.filters),
        "loggers": (logging.root.level, list(logging.root.handlers), logging.getLogger("sdy").level),
        "variables of the environment": dict(os.environ),
        "places to import from": list(sys.path),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the settings of jax": dict(jax.config.values),
    }

before = settings()
import sdy
names = [found.name for found in pkgutil.walk_packages(sdy.__path__, "sdy.")]
assert len(names) > 400, names
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as problem:
        assert problem.name in ("torch", "torchax"), problem
    for what, value in settings().items():
        assert value == before[what], f"{name} changes {what}: {before[what]} -> {value}"
"""


def test_importing_changes_no_setting_of_the_process():
    subprocess.run([sys.executable, "-c", CHECK], check=True)
