"""Escaping of text from files for terminals.

Names in a module may contain anything: escape sequences that a terminal obeys, or marks that reverse the following
text. `escape_line` escapes a single line, such as a name; `escape_lines` escapes text of several lines.
"""


def escape_line(text: str) -> str:
    r"""Return `text` with each unprintable character except tabs escaped as in Python, `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def escape_lines(text: str) -> str:
    """Return `text` with each of its lines escaped by `escape_line`."""
    return "\n".join(map(escape_line, text.split("\n")))
