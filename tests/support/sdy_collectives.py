"""SDY collectives by the resharding that they perform, and their programs for one device."""

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
from sdy.text import context, parse

DEVICE_ORDERS = {"natural": "", "permuted": ", device_ids=[3, 1, 0, 2, 7, 5, 6, 4]"}
"""Device orders of a mesh of eight, as the text of `sdy.mesh`."""

COLLECTIVES = {
    "all_gather": ('{"x"}, {}, {}, {}', 'sdy.all_gather [{"x"}, {}, {}, {}]', "{}, {}, {}, {}"),
    "all_gather of two dimensions": ('{"y"}, {}, {"x"}, {}', 'sdy.all_gather [{"y"}, {}, {"x"}, {}]', "{}, {}, {}, {}"),
    "all_gather of minor axes": ('{"x", "y"}, {}, {}, {}', 'sdy.all_gather [{"y"}, {}, {}, {}]', '{"x"}, {}, {}, {}'),
    "all_gather of a sub-axis": (
        '{"x"}, {"y"}, {}, {}',
        'sdy.all_gather [{}, {"y":(2)2}, {}, {}]',
        '{"x"}, {"y":(1)2}, {}, {}',
    ),
    "all_slice": ("{}, {}, {}, {}", 'sdy.all_slice [{"x"}, {}, {}, {"y"}]', '{"x"}, {}, {}, {"y"}'),
    "all_slice of sub-axes": (
        '{"y":(2)2}, {}, {}, {}',
        'sdy.all_slice [{}, {"y":(1)2, "x"}, {}, {}]',
        '{"y":(2)2}, {"y":(1)2, "x"}, {}, {}',
    ),
    "all_to_all": ('{"x", "y"}, {}, {}, {}', 'sdy.all_to_all [{"y"}: 0->1]', '{"x"}, {"y"}, {}, {}'),
    "all_to_all of several": (
        '{"x"}, {}, {"y"}, {}',
        'sdy.all_to_all [{"x"}: 0->3, {"y"}: 2->1]',
        '{}, {"y"}, {}, {"x"}',
    ),
    "collective_permute": (
        '{"x"}, {"y"}, {}, {}',
        "sdy.collective_permute",
        '{"y":(1)2}, {"x", "y":(2)2}, {}, {}',
    ),
    "collective_permute of some axes": ('{"x"}, {}, {}, {}', "sdy.collective_permute", '{"y":(2)2}, {}, {}, {}'),
}
"""Each: sharding before, collective, sharding after, of a tensor of rank 4 over <["x"=2, "y"=4]>."""


def convert(text: str) -> ModuleOp:
    """Return the program of one device for a module of all these collectives."""
    module = parse(text, "test.mlir")
    ConvertGlobalToLocalPass(compute_whole=True).apply(context(), module)
    return module
