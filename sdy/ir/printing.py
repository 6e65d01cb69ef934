"""xDSL's printer, of which the steps below can be called and replaced, under names of their own."""

# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.printer import Printer


class OpenPrinter(Printer):
    """xDSL's printer."""

    @property
    def indentation(self) -> int:
        """How many steps the next line is indented."""
        return self._indent

    @indentation.setter
    def indentation(self, steps: int) -> None:
        self._indent = steps

    def print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        """End a line, and indent the next one by `indent` steps, or as what is around it."""
        super()._print_new_line(indent, print_message)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self.print_new_line(indent, print_message)


def print_element(attribute: DenseIntOrFPElementsAttr, element: Any, printer: Printer) -> None:
    """Print one element of `attribute`."""
    attribute._print_one_elem(element, printer)


def print_elements(attribute: DenseIntOrFPElementsAttr, elements: Sequence[Any], printer: Printer) -> None:
    """Print the elements of `attribute`, in brackets for each dimension."""
    attribute._print_dense_list(elements, attribute.get_shape(), printer)
