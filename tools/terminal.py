"""Where tools write for people: text stands there as it is, whatever a module's names look like."""

from typing import Any

from rich.console import Console
from rich.text import Text

from sdy.shown_text import shown_lines


class Terminal(Console):
    """A console that knows no markup: `[bold]` and `:smile:` are what they are, and escape sequences are escaped."""

    def __init__(self, *, stderr: bool = False):
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """What is shown of a string, also one in a table."""
        return super().render_str(shown_lines(text), **options)
