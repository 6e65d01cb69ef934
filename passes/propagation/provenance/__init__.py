"""Where shardings come from: told from the log of a solution, after it, and only to those who ask.

moves.py          what one step moved, from its factors before and after
debug_info.py     what the passes' debug options write into a module; edge_record.py and origin_record.py, one each
history.py        the propagations of a module, kept with it and its clones; explain.py follows an axis back
                  through them, missed.py tells what kept the axes that did not come, explanation.py is what
                  they find, present_names.py what tensors are called, named_value.py the tensor that is called so;
                  travels.py has the ways of all axes at once
"""
