"""The layouts that `sdy.auto` chooses, beside the best there are, and beside those of experts.

    python bench/auto.py small [COUNT]      small programs drawn by chance, of which all layouts are tried
    python bench/auto.py models [TEXT ...]  real programs, or those whose name contains one of the texts
    python bench/auto.py runs [TEXT ...]    small ones of these kinds, compiled by XLA and run on eight virtual devices

Times are predicted, of what a device would run. A row is printed as soon as it is there:

    small       layouts: how many there are. plan, best: the milliseconds of a step as planned, and with the best of all
                layouts; where they are not equal, both follow below the row
    models      operations: of the program. search: the seconds that a processor worked on it. plan, best: the
                milliseconds of a step as planned, and with the best of the layouts of experts that fits, as estimated.
                memory: what a device needs, of what it may use
    runs        received: the bytes that a device receives, of XLA's program as planned, and with the layout of the
                expert that is estimated to be the best. memory: the most bytes of a device at once, as XLA tells

The exit status is 1 where a goal is missed: of small programs, a ratio of 1.02 in the geometric mean and 1.25 in the
worst case; of models, that none is slower than the best expert, and all fit of which an expert's layout does; of runs,
that numbers are equal.
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
    parser = argparse.ArgumentParser(description="Compare what sdy.auto chooses with the best layouts, and experts'.")
    tables = parser.add_subparsers(dest="table", required=True)
    small = tables.add_parser("small", help="small programs, of which all layouts are tried")
    small.add_argument("count", nargs="?", type=int, default=100, metavar="COUNT", help="how many (default: 100)")
    models = tables.add_parser("models", help="real programs, beside layouts of experts")
    models.add_argument("texts", nargs="*", metavar="TEXT", help="those whose name contains one of these")
    models.add_argument("--devices", type=int, help="on so many alone")
    models.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="of a search (default: 60)")
    models.add_argument("--list", action="store_true", help="print the names instead")
    ran = tables.add_parser("runs", help="small programs, compiled and run on eight virtual devices")
    ran.add_argument("texts", nargs="*", metavar="TEXT", help="those whose name contains one of these")
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


def _models(names: Sequence[str], devices: int | None, time_limit: float) -> int:
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
    """The geometric mean; NaN of none."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


if __name__ == "__main__":
    sys.exit(main())
