"""Console output of text that contains arbitrary names."""

from typing import Any

from rich.console import Console
from rich.text import Text

from sdy.formatting import escape_lines


class Terminal(Console):
    """A console without markup: `[bold]` and `:smile:` are printed literally, and escape sequences are escaped."""

    def __init__(self, *, stderr: bool = False):
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a string for display; rich also calls this for strings in tables."""
        return super().render_str(escape_lines(text), **options)
