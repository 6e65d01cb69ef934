"""From a module to a snapshot, all that asks operations something.

reader.py      all operations, once each, in the order of the text
nodes.py       which node holds the sharding of a value
data_flow.py   what flows along edges, into and out of regions and called functions
kinds.py       what a step does at an operation
routes.py      what the change of a node reaches further than its readers, in the order of use lists
use_lists.py   the order of readers
dead_code.py   what is trivially dead, and what erasing it takes away from others
"""
