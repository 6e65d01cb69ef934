"""Keywords of the analysis functions: options, or arguments of the function that is analyzed."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from sdy.passes.account.name_lists import joined

_SIMILAR = 0.75
"""The similarity from which a keyword is a misspelled option, although the analyzed function takes any keyword."""


def check_keywords(
    analysis: Callable[..., Any], program: object, keywords: Iterable[str], nested: Mapping[str, str] | None = None
) -> None:
    """Check the keywords of a call of `analysis` that are not its options: `program` must take them.

    Args:
        analysis: An analysis function, such as `sdy.lint`. Its keyword-only parameters are its options.
        program: The function that is analyzed, or another program, which takes none.
        keywords: The keywords.
        nested: The arguments for the options of an option, by their names.

    Raises:
        TypeError: `program` does not take a keyword, or it takes any, and the keyword is similar to an option.
    """
    parameters = inspect.signature(analysis).parameters.values()
    options = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    spelled = {**(nested or {}), **{name: f"{name}=..." for name in options}}
    for keyword in keywords:
        similar = get_close_matches(keyword, spelled, n=1, cutoff=_SIMILAR)
        is_taken = _takes(program, keyword)
        if is_taken or (is_taken is None and not similar):
            continue
        name = getattr(program, "__name__", "the program")
        suggestion = f" Did you mean {spelled[similar[0]]}?" if similar else ""
        plural = "s" if len(options) > 1 else ""
        has = f"has the option{plural} {joined(options)}" if options else "has no options"
        raise TypeError(
            f"{analysis.__name__}() got an unexpected keyword argument '{keyword}'.{suggestion} "
            f"{analysis.__name__}() {has}; other keywords are arguments of {name}"
        )


def _takes(program: object, keyword: str) -> bool | None:
    """Return whether `program` has a parameter of this name; None if it takes any keyword."""
    if not callable(program):
        return False
    try:
        parameters = inspect.signature(program).parameters
    except (TypeError, ValueError):
        return None
    if keyword in parameters and parameters[keyword].kind not in _NOT_BY_NAME:
        return True
    return None if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()) else False


_NOT_BY_NAME = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)
