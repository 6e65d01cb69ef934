"""Parser of annotation languages, with error messages that give advice.

An error shows the annotation with a caret below the error. The message is the advice for a listed example of the same
error, or else the tokens that are expected at that position.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedToken

from sdy.rules.annotated_factors import AnnotationError


class Notation:
    """An annotation language.

    Args:
        grammar: The grammar in lark's format; the start rule is `annotation`.
        words: The names of the grammar's terminals in messages.
        mistakes: Advice -> examples of wrong annotations; the first matching example counts.
    """

    def __init__(self, grammar: str, words: Mapping[str, str], mistakes: Mapping[str, Sequence[str]]) -> None:
        self._words = words
        self._mistakes = mistakes
        self._parser = Lark(grammar, start="annotation", parser="lalr")

    def parse(self, text: str) -> Tree[Token]:
        """Parse `text` to a tree.

        Raises:
            AnnotationError: The text cannot be parsed.
        """
        try:
            return self._parse(text)
        except UnexpectedInput as unexpected:
            shown = unexpected.get_context(text).rstrip()
            raise AnnotationError(self._advice(unexpected), shown, unexpected.pos_in_stream or 0) from None

    def _parse(self, text: str) -> Tree[Token]:
        return self._parser.parse(text)  # pyright: ignore[reportUnknownMemberType]

    def _advice(self, unexpected: UnexpectedInput) -> str:
        """Return the advice for a known mistake, or else the expected tokens."""
        if isinstance(unexpected, UnexpectedToken):
            state, token = _situation(unexpected)
            advice = self._known_mistakes.get((state, token)) or self._known_mistakes.get((state, None))
            if advice:
                return advice
        # lark does not declare all of its types.
        possible: set[str] = (
            unexpected.accepts if isinstance(unexpected, UnexpectedToken) else cast(Any, unexpected).allowed
        )
        return f"expected {' or '.join(word for name, word in self._words.items() if name in possible)}"

    @cached_property
    def _known_mistakes(self) -> dict[tuple[object, str | None], str]:
        """The advice for each parser state and wrong token, and for each state with any other token (None)."""
        advices: dict[tuple[object, str | None], str] = {}
        for advice, examples in self._mistakes.items():
            for example in examples:
                try:
                    self._parse(example)
                except UnexpectedToken as mistake:
                    state, token = _situation(mistake)
                    advices.setdefault((state, token), advice)
                    advices.setdefault((state, None), advice)
                except UnexpectedInput:
                    pass
        return advices


def _situation(mistake: UnexpectedToken) -> tuple[object, str]:
    """Return the state of the parser at a mistake, and the type of the wrong token."""
    state = mistake.state.position, frozenset(mistake.accepts)
    return state, cast(Token, mistake.token).type
