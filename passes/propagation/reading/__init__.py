"""Read a module into a propagation snapshot: all code of propagation that inspects operations.

reader.py      the pass over all operations, in pre-order
nodes.py       the node that holds the sharding of each value
data_flow.py   the data-flow edges into and out of regions and called functions
kinds.py       the kind of each operation, which determines its steps
routes.py      the operations beyond a node's readers that a change of the node affects
use_lists.py   the order of readers, by use list
dead_code.py   the operations that are trivially dead, or become so
"""
