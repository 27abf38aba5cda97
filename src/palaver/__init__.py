"""Palaver: a gateway between people and one AI agent.

The names below are the public library. Each is imported on first use, so that `palaver --version` and other small
commands start quickly.
"""

from __future__ import annotations

from importlib import import_module

from palaver.core.moved_modules import install_finder

__version__ = "0.1.0"

TYPE_CHECKING = False  # not that of `typing`: to import it would take a third of `palaver --version`
if TYPE_CHECKING:
    from palaver.core.clock import Clock as Clock
    from palaver.core.errors import PalaverError as PalaverError
    from palaver.core.source import Platform as Platform, SessionSource as SessionSource
    from palaver.core.titles import title_from as title_from
    from palaver.people.model import Principal as Principal, Role as Role
    from palaver.sessions.context import (
        SessionContext as SessionContext,
        build_session_context as build_session_context,
        build_session_context_prompt as build_session_context_prompt,
    )
    from palaver.sessions.events import Event as Event
    from palaver.sessions.gateway_config import GatewayConfig as GatewayConfig, HomeChannel as HomeChannel
    from palaver.sessions.keys import build_session_key as build_session_key
    from palaver.sessions.message import Message as Message
    from palaver.sessions.model import Session as Session, SessionEntry as SessionEntry
    from palaver.sessions.policy import ResetPolicy as ResetPolicy
    from palaver.sessions.store import SessionStore as SessionStore
    from palaver.sessions.usage import TurnUsage as TurnUsage
    from palaver.sessions.view import SessionView as SessionView

_PUBLIC_NAMES = {  # the module of each
    "Clock": "core.clock",
    "Event": "sessions.events",
    "GatewayConfig": "sessions.gateway_config",
    "HomeChannel": "sessions.gateway_config",
    "Message": "sessions.message",
    "PalaverError": "core.errors",
    "Platform": "core.source",
    "Principal": "people.model",
    "ResetPolicy": "sessions.policy",
    "Role": "people.model",
    "Session": "sessions.model",
    "SessionContext": "sessions.context",
    "SessionEntry": "sessions.model",
    "SessionSource": "core.source",
    "SessionStore": "sessions.store",
    "SessionView": "sessions.view",
    "TurnUsage": "sessions.usage",
    "build_session_context": "sessions.context",
    "build_session_context_prompt": "sessions.context",
    "build_session_key": "sessions.keys",
    "title_from": "core.titles",
}

install_finder()

__all__ = ["__version__", *_PUBLIC_NAMES]  # noqa: PLE0604  (every key is a string)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"palaver.{_PUBLIC_NAMES[name]}"), name)
    globals()[name] = value
    return value
