"""Worker process that solves a problem from standard input with toulbar2.

toulbar2 runs in its own process because its loops ignore interrupts and can exceed their time limit.
"""

import pickle
import sys
from time import monotonic

from pytoulbar2 import CFN


def main() -> None:
    """Read a pickled problem, and write the strategies or None, a lower bound, and the seconds taken."""
    start = monotonic()
    problem = pickle.load(sys.stdin.buffer)
    network = CFN(problem["cutoff"], 0, vac=1)
    for i, costs in enumerate(problem["costs"]):
        network.AddVariable(f"x{i}", [f"s{s}" for s in range(len(costs))])
        network.AddFunction([i], costs)
    for i, j, costs in problem["pairs"]:
        network.AddFunction([i, j], costs)
    for usage, capacity in problem["limits"]:
        if usage:
            network.AddGeneralizedLinearConstraint([(i, s, -memory) for i, s, memory in usage], ">=", -capacity)
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
