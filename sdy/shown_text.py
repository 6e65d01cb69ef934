"""Text from a file as a person is shown it: what would act on a terminal, not appear on it, is escaped.

Names in a module may hold anything: escape sequences, which a terminal obeys, or marks that turn the text after them
around. `shown` is for what is one line, such as a name; `shown_lines` for text that may have several.
"""


def shown(text: str) -> str:
    r"""`text` with each character that is not printed spelled as in Python, `\x1b` or `\u202e`; tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def shown_lines(text: str) -> str:
    """`text` with each of its lines as `shown` has it."""
    return "\n".join(map(shown, text.split("\n")))
