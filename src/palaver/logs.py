"""What the process says about itself: one event a line on standard error, with every secret removed.

At a terminal the lines are for people, elsewhere each is a JSON document. Whatever is logged goes through here, by
structlog or by the standard library, by us or by others.

Always true: secrets are removed at the sink, from every text of a line and its traceback, so that it does not matter
who logged them or how. What is removed: values of fields with telling names, tokens of ours and of others, the secret
of a sign-in link, and passwords inside addresses.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

import structlog

GONE: Final = "[removed]"

# A field is secret when its name ends like this; `input_tokens` is not, `token` and `api_token` are.
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:authorization|cookies?|set-cookie|password|passwd|passphrase|secrets?|token|credentials?"
    r"|api[_-]?key|private[_-]?key|access[_-]?key)$",
    re.IGNORECASE,
)

_SAID = r"""\\*["']?\s*[:=]\s*"""
_QUOTED = r"""\\*"[^"]*"|\\*'[^']*'"""

_SECRETS: Final = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, flags, replacement in (
        # A header or an assignment, in text: `Authorization: Bearer x`, `password=x`, `"api_key": "x"`.
        (rf"""((?:authorization|set-cookie|cookie){_SAID})(?:{_QUOTED}|[^"'\\\r\n]+)""", re.IGNORECASE, rf"\1{GONE}"),
        (
            rf"""((?:password|passwd|passphrase|secret|token|api[_-]?key){_SAID})(?:{_QUOTED}|[^\s"',;&}})\]]+)""",
            re.IGNORECASE,
            rf"\1{GONE}",
        ),
        (r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE, rf"\1 {GONE}"),
        (r"(sign-in#)[\w-]+", 0, rf"\1{GONE}"),
        (r"(/shared/)[\w-]{8,}", 0, rf"\1{GONE}"),
        (r"([a-z][a-z0-9+.-]*://[^\s/:@\"']*:)[^\s/@\"']+(@)", re.IGNORECASE, rf"\1{GONE}\2"),
        (r"\bpal_[A-Za-z0-9_-]{16,}", 0, GONE),
        (r"\b(?:sk|pk|rk|xox[abposr]|gh[pousr]|github_pat|AIza|glpat|hf)[-_][A-Za-z0-9_-]{8,}", 0, GONE),
        (r"\bAIza[A-Za-z0-9_-]{30,}", 0, GONE),
        (r"\b\d{6,}:[A-Za-z0-9_-]{30,}", 0, GONE),  # a Telegram bot
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", 0, GONE),  # a JSON web token
    )
)


def without_secrets(text: str) -> str:
    """A text with whatever looks like a secret removed."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def configure_logs(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Let everything that is logged from now on go to standard error, or to another stream."""
    out = stream or sys.stderr
    for_people = out.isatty()
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.UnicodeDecoder(),
    ]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(_Sink(before, for_people=for_people))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    for name in ("httpx", "httpx2", "httpcore", "httpcore2", "uvicorn.error", "mcp", "asyncio"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))  # they tell of every request


class _Sink(structlog.stdlib.ProcessorFormatter):
    """The last step before the stream."""

    def __init__(self, before: list[Any], *, for_people: bool) -> None:
        super().__init__(
            foreign_pre_chain=before,
            processors=[
                self.remove_processors_meta,
                structlog.processors.format_exc_info,
                _without_secrets,
                structlog.dev.ConsoleRenderer() if for_people else structlog.processors.JSONRenderer(),
            ],
        )


def _without_secrets(_logger: object, _name: str, event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cleaned(name, value) for name, value in event.items()}


def _cleaned(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return GONE if value is not None and _SECRET_NAME.search(name) else value
    if _SECRET_NAME.search(name):
        return GONE
    if isinstance(value, Mapping):
        return {str(key): _cleaned(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_cleaned("", inner) for inner in value]
    return without_secrets(str(value))
