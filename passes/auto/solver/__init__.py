"""Chooses a strategy for each node of a graph, so that costs are least and memory suffices at each time."""

from sdy.passes.auto.solver.problem import Problem as Problem
from sdy.passes.auto.solver.solution import Shortage as Shortage
from sdy.passes.auto.solver.solution import Solution as Solution
from sdy.passes.auto.solver.solve import solve as solve
