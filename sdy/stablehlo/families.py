"""A dialect is what the files of its families define."""

from types import ModuleType

from xdsl.ir import Attribute, Operation


def definitions(*families: ModuleType) -> tuple[list[type[Operation]], list[type[Attribute]]]:
    """The operations and the attributes that these modules define, without the bases that have no name of their own."""
    operations: list[type[Operation]] = []
    attributes: list[type[Attribute]] = []
    for family in families:
        for defined in vars(family).values():
            if isinstance(defined, type) and defined.__module__ == family.__name__ and "name" in vars(defined):
                if issubclass(defined, Operation):
                    operations.append(defined)
                elif issubclass(defined, Attribute):
                    attributes.append(defined)
    return operations, attributes
