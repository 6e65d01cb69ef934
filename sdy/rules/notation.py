"""A small language of strings: its grammar, and errors that say what to write instead.

An error shows the string with a caret below the mistake. Before that it says what to write, if the mistake is like one
of those that the language lists, or else what could stand there.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedToken

from sdy.rules.annotated_factors import AnnotationError


class Notation:
    """A language for lark.

    `grammar` begins at the rule `annotation`, `words` are what its terminals are called in messages, and `mistakes`
    what to write instead of each of the strings that want that said; what is listed first counts.
    """

    def __init__(self, grammar: str, words: Mapping[str, str], mistakes: Mapping[str, Sequence[str]]) -> None:
        self._words = words
        self._mistakes = mistakes
        self._parser = Lark(grammar, start="annotation", parser="lalr")

    def parse(self, text: str) -> Tree[Token]:
        """The tree of `text`.

        Raises:
            AnnotationError: it is not of the language.
        """
        try:
            return self._parse(text)
        except UnexpectedInput as unexpected:
            shown = unexpected.get_context(text).rstrip()
            raise AnnotationError(self._advice(unexpected), shown, unexpected.pos_in_stream or 0) from None

    def _parse(self, text: str) -> Tree[Token]:
        return self._parser.parse(text)  # pyright: ignore[reportUnknownMemberType]

    def _advice(self, unexpected: UnexpectedInput) -> str:
        """What to write instead of a mistake that is known, or else what could stand where it is."""
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
        """The advice for a situation, and for any other token in the same place."""
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
    """Where in the grammar a mistake is made, and the type of the token that is wrong there."""
    state = mistake.state.position, frozenset(mistake.accepts)
    return state, cast(Token, mistake.token).type
