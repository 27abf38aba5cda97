"""Palaver: a gateway between people and one AI agent.

The names below are the public library. Each is imported on first use, so that `palaver --version` and other small
commands start quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from palaver.domain.clock import Clock as Clock
    from palaver.domain.context import SessionContext as SessionContext
    from palaver.domain.context import build_session_context as build_session_context
    from palaver.domain.context import build_session_context_prompt as build_session_context_prompt
    from palaver.domain.errors import PalaverError as PalaverError
    from palaver.domain.events import Event as Event
    from palaver.domain.gateway_config import GatewayConfig as GatewayConfig
    from palaver.domain.gateway_config import HomeChannel as HomeChannel
    from palaver.domain.keys import build_session_key as build_session_key
    from palaver.domain.message import Message as Message
    from palaver.domain.person import Principal as Principal
    from palaver.domain.person import Role as Role
    from palaver.domain.policy import ResetPolicy as ResetPolicy
    from palaver.domain.session import Session as Session
    from palaver.domain.session import SessionEntry as SessionEntry
    from palaver.domain.source import Platform as Platform
    from palaver.domain.source import SessionSource as SessionSource
    from palaver.domain.titles import title_from as title_from
    from palaver.domain.usage import TurnUsage as TurnUsage
    from palaver.services.store import SessionStore as SessionStore
    from palaver.services.view import SessionView as SessionView

_PUBLIC_NAMES = {  # the module of each
    "Clock": "domain.clock",
    "Event": "domain.events",
    "GatewayConfig": "domain.gateway_config",
    "HomeChannel": "domain.gateway_config",
    "Message": "domain.message",
    "PalaverError": "domain.errors",
    "Platform": "domain.source",
    "Principal": "domain.person",
    "ResetPolicy": "domain.policy",
    "Role": "domain.person",
    "Session": "domain.session",
    "SessionContext": "domain.context",
    "SessionEntry": "domain.session",
    "SessionSource": "domain.source",
    "SessionStore": "services.store",
    "SessionView": "services.view",
    "TurnUsage": "domain.usage",
    "build_session_context": "domain.context",
    "build_session_context_prompt": "domain.context",
    "build_session_key": "domain.keys",
    "title_from": "domain.titles",
}

__all__ = ["__version__", *_PUBLIC_NAMES]  # noqa: PLE0604  (every key is a string)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"palaver.{_PUBLIC_NAMES[name]}"), name)
    globals()[name] = value
    return value
