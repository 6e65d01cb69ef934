"""Quality of `sdy.auto`: its layouts compared with the optimum, and with layouts of experts.

    python bench/auto.py small [COUNT]      random small programs, compared with an exhaustive search
    python bench/auto.py models [TEXT ...]  programs of real sizes, or those whose name contains one of the texts
    python bench/auto.py runs [TEXT ...]    small programs of the same kinds, run by XLA on eight virtual devices

Times are predicted. Each row is printed when it is measured:

    small       layouts: the number of layouts. plan, best: the milliseconds of a step, as planned and with the best
                layout; if they differ, both layouts follow below the row
    models      operations: the number of operations. search: the processor seconds of the search. plan, best: the
                milliseconds of a step, as planned and with the best expert's layout that fits. memory: the peak memory
                and the memory limit of a device
    runs        received: the bytes received by a device in XLA's program, as planned and with the expert's layout that
                is estimated to be the best. memory: the peak bytes of a device, reported by XLA

The exit status is 1 if a goal is missed. Small programs: a geometric mean of the ratios of at most 1.02, and none above
1.25. Models: none slower than the best expert's layout, and a plan that fits if an expert's layout does. Runs: equal
results.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

from auto_model_programs import MODELS, SMALL_MODELS
from auto_models import Planned, planned
from auto_runs import runs
from auto_small import tried
from virtual_devices import set_up

MEAN, WORST = 1.02, 1.25


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the layouts of sdy.auto with the optimum and experts'.")
    tables = parser.add_subparsers(dest="table", required=True)
    small = tables.add_parser("small", help="random small programs, by exhaustive search")
    small.add_argument(
        "count", nargs="?", type=int, default=100, metavar="COUNT", help="number of programs (default: 100)"
    )
    models = tables.add_parser("models", help="programs of real sizes, compared with layouts of experts")
    models.add_argument("texts", nargs="*", metavar="TEXT", help="only programs whose name contains one of these")
    models.add_argument("--devices", type=int, help="only this number of devices")
    models.add_argument("--time-limit", type=float, metavar="SECONDS", help="limit of a search (default: none)")
    models.add_argument("--list", action="store_true", help="print the names of the programs and exit")
    ran = tables.add_parser("runs", help="small programs, compiled and run on eight virtual devices")
    ran.add_argument("texts", nargs="*", metavar="TEXT", help="only programs whose name contains one of these")
    options = parser.parse_args()
    if options.table == "small":
        return _small(options.count)
    if options.table == "runs":
        return _runs(
            [name for name in SMALL_MODELS if not options.texts or any(text in name for text in options.texts)]
        )
    names = [name for name in MODELS if not options.texts or any(text in name for text in options.texts)]
    if options.list:
        print(*names, sep="\n")
        return 0
    return _models(names, options.devices, options.time_limit)


def _small(count: int) -> int:
    print("| program | mesh | hardware | layouts | plan, ms | best, ms | ratio |")
    print("| --- | --- | --- | --: | --: | --: | --: |")
    ratios: list[float] = []
    for each in tried(count):
        mesh = ",".join(f"{name}={size}" for name, size in each.mesh.axes)
        figures = f"{each.plan.cost.seconds * 1e3:.4g} | {each.best.seconds * 1e3:.4g} | {each.ratio:.3f}"
        print(f"| {each.name} | {mesh} | {each.hardware} | {each.layouts} | {figures} |", flush=True)
        if each.ratio > 1:
            print(f"|   planned {each.chosen}, best {each.best_layout} |", flush=True)
        ratios.append(each.ratio)
    mean, worst = _mean(ratios), max(ratios, default=math.nan)
    print(f"\n{len(ratios)} programs: geometric mean of the ratios {mean:.4f}, worst {worst:.3f}")
    return int(mean > MEAN or worst > WORST)


def _models(names: Sequence[str], devices: int | None, time_limit: float | None) -> int:
    print("| program | mesh | hardware | operations | search, s | plan, ms | best, ms | ratio | memory | expert |")
    print("| --- | --- | --- | --: | --: | --: | --: | --: | --: | --- |")
    rows: list[Planned] = []
    for each in planned(names, devices, time_limit):
        print(each.row(), flush=True)
        rows.append(each)
    ratios = [each.ratio for each in rows if each.ratio is not None]
    failed = [each for each in rows if each.is_wrong]
    print(f"\n{len(rows)} plans: geometric mean of the ratios {_mean(ratios):.4f}; {len(failed)} miss a goal")
    return int(bool(failed))


def _runs(names: Sequence[str]) -> int:
    set_up()  # before jax looks for devices
    print("| program | received, plan | expert | memory, plan | expert | numbers | expert |")
    print("| --- | --: | --: | --: | --: | --- | --- |")
    are_equal = True
    for each in runs(names):
        print(each.row(), flush=True)
        are_equal = are_equal and not each.plan.mismatch
    return int(not are_equal)


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean; NaN if there are no ratios."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


if __name__ == "__main__":
    sys.exit(main())
