"""nanobot-ai: SessionManager over JSONL files, one for each session.

A turn saves after the user's message and after the answer, as its agent loop does. Every save rewrites the whole file of
the session, by default without fsync. No search; listing sessions opens every file and has no message count.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchmarks.drivers import Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList


class Nanobot(Driver):
    venv = "nanobot"
    modules = ("nanobot",)

    def open(self) -> None:
        os.environ["HOME"] = str(self.root)
        from loguru import logger

        logger.remove()
        from nanobot.session.manager import SessionManager

        self.manager = SessionManager(self.root / "ws", sessions_root=self.root / "sessions")

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        session = self.manager.get_or_create(key)
        session.add_message("user", user)
        self.manager.save(session)
        session.add_message("assistant", assistant)
        usage = session.metadata.setdefault("usage", {"in": 0, "out": 0})
        usage["in"] += tin
        usage["out"] += tout
        self.manager.save(session)

    def append(self, key: str, role: str, content: str) -> None:
        session = self.manager.get_or_create(key)
        session.add_message(role, content)
        self.manager.save(session)

    def load(self, key: str) -> Messages:
        self.manager.invalidate(key)
        messages = self.manager.get_or_create(key).messages
        return [{"role": m["role"], "content": m["content"]} for m in messages]

    def list_recent(self, n: int) -> SessionList:
        return [(r["key"], r["updated_at"], None) for r in self.manager.list_sessions()[:n]]

    def undo(self, key: str) -> None:
        session = self.manager.get_or_create(key)
        del session.messages[-2:]
        self.manager.save(session)

    def seed(self, plan: Plan) -> None:
        from nanobot.session.manager import Session

        for key, messages in plan:
            session = Session(key=key)
            for role, text in messages:
                session.add_message(role, text)
            self.manager._jsonl_store._save_unlocked(session)
