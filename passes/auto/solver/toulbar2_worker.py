"""A program that solves the problem on its input by toulbar2: its loops hear no interrupts and outlast their limits."""

import pickle
import sys
from time import monotonic

from pytoulbar2 import CFN


def main() -> None:
    """Reads a problem, and writes strategies or None, a bound, and the seconds that it took."""
    start = monotonic()
    problem = pickle.load(sys.stdin.buffer)
    network = CFN(problem["cutoff"], 0, vac=1)
    for i, costs in enumerate(problem["costs"]):
        network.AddVariable(f"x{i}", [f"s{s}" for s in range(len(costs))])
        network.AddFunction([i], costs)
    for i, j, costs in problem["pairs"]:
        network.AddFunction([i, j], costs)
    for taken, capacity in problem["limits"]:
        if taken:
            network.AddGeneralizedLinearConstraint([(i, s, -memory) for i, s, memory in taken], ">=", -capacity)
    solution = network.Solve(timeLimit=problem["seconds"])
    seconds = monotonic() - start
    if solution is not None:
        answer = [int(s) for s in solution[0]], float(network.GetDDualBound()), seconds
    elif seconds < problem["seconds"]:
        answer = None, float(problem["cutoff"]), seconds
    else:
        answer = None, float(network.GetDDualBound()), seconds
    pickle.dump(answer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
