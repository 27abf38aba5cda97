"""Checks of settings that several platforms have, as notes of their types: `Annotated[SecretStr, check_text(…)]`.

What they raise is for people: what is wrong, and where the right value is found. It never contains the value of a
secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from palaver.core.http_url import is_http_url
from palaver.core.texts import join_texts, say

if TYPE_CHECKING:
    from collections.abc import Callable

# The example of Telegram's documentation, and what people leave in templates.
PLACEHOLDER: Final = r"ABC-DEF|your|placeholder|change|example|xxx|\.\.\.|…|[<>$]"


def check_text(
    rule: str | Callable[[str], object], problem: str, *, clean: Callable[[str], str] = str.strip
) -> AfterValidator:
    """Let a text or a secret match a pattern, or fulfill a condition, after `clean`."""
    is_valid = re.compile(rule).fullmatch if isinstance(rule, str) else rule

    def check(text: str) -> str:
        if not is_valid(text):
            raise ValueError(problem)
        return text

    return _check_cleaned(check, clean)


def check_token(
    name: str, pattern: str, problem: str, fix: str, *, clean: Callable[[str], str] = str.strip
) -> AfterValidator:
    """Let a token match a pattern; say whether it is empty or still a placeholder."""

    def check(token: str) -> str:
        if not token:
            raise ValueError(say("platform.token_empty", "The {name} is empty. {fix}", name=name, fix=fix))
        if re.fullmatch(pattern, token):
            return token
        if re.search(f"token|{PLACEHOLDER}", token, re.IGNORECASE):
            raise ValueError(
                say("platform.token_placeholder", "The {name} is still a placeholder. {fix}", name=name, fix=fix)
            )
        raise ValueError(join_texts(" ", (problem, fix)))

    return _check_cleaned(check, clean)


def check_api_url(server: str, example: str) -> AfterValidator:
    """Let an address be that of a platform's server; it becomes one without a slash at its end."""

    def check(url: str) -> str:
        if not is_http_url(url) or urlsplit(url).query or urlsplit(url).fragment:
            raise ValueError(
                say(
                    "platform.not_address_use_one",
                    "{value} is not the address of {server}; use one such as {example}.",
                    value=repr(url),
                    server=server,
                    example=example,
                )
            )
        return url.rstrip("/")

    return AfterValidator(check)


def _check_cleaned(check: Callable[[str], str], clean: Callable[[str], str]) -> AfterValidator:
    def validate(value: str | SecretStr) -> str | SecretStr:
        if isinstance(value, SecretStr):
            return SecretStr(check(clean(value.get_secret_value())))
        return check(clean(value))

    return AfterValidator(validate)
