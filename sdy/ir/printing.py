"""xDSL's printer with replaceable steps, under public names."""

# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.printer import Printer


class OpenPrinter(Printer):
    """xDSL's printer."""

    @property
    def indentation(self) -> int:
        """The indentation of the next line, in steps."""
        return self._indent

    @indentation.setter
    def indentation(self, steps: int) -> None:
        self._indent = steps

    def print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        """End a line, and indent the next one by `indent` steps, or by the current indentation."""
        super()._print_new_line(indent, print_message)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self.print_new_line(indent, print_message)


def print_element(attribute: DenseIntOrFPElementsAttr, element: Any, printer: Printer) -> None:
    """Print one element of `attribute`."""
    attribute._print_one_elem(element, printer)


def print_elements(attribute: DenseIntOrFPElementsAttr, elements: Sequence[Any], printer: Printer) -> None:
    """Print the elements of `attribute`, in brackets for each dimension."""
    attribute._print_dense_list(elements, attribute.get_shape(), printer)
