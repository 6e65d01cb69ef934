"""Escaping of text from files for terminals.

Names in a module may contain anything: escape sequences that a terminal obeys, or marks that reverse the following
text. `shown` escapes a single line, such as a name; `shown_lines` escapes text of several lines.
"""


def shown(text: str) -> str:
    r"""Return `text` with each unprintable character except tabs escaped as in Python, `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def shown_lines(text: str) -> str:
    """Return `text` with each of its lines escaped by `shown`."""
    return "\n".join(map(shown, text.split("\n")))
