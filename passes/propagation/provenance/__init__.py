"""Where shardings come from: told from the changes that the fixed point keeps, after it, and only to those who ask.

moves.py          what one step moved, from its factors before and after
debug_info.py     what the passes' debug options write into a module; edge_record.py and origin_record.py, one each
history.py        the propagations of a module, kept with it; explain.py follows an axis back through them,
                  explanation.py is what it finds, present_names.py what tensors are called
"""
