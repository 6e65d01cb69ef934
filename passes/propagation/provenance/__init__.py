"""The provenance of shardings, derived on request from the log of a solution.

debug_info.py     the passes' debug options: edge_record.py records propagation edges, origin_record.py origins
history.py        the propagations of a module, its candidate layouts and replaced values, attached to it and its clones
explain.py        traces an axis back through the history; missed.py finds the conflicts of axes that did not arrive
explanation.py    the result of both, as printable values
present_names.py  the current names of the tensors that propagation saw; named_value.py looks up a value by name
axis_trace.py     the moves of all axes at once
"""
