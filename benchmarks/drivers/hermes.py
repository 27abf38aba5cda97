"""hermes-agent: `gateway.session.SessionStore` over `hermes_state.SessionDB`, with default settings.

A turn does what its gateway and its conversation loop do for one message with one model call: get_or_create_session, two
transcript appends, update_token_counts, update_session. It rewrites the routing index of all sessions (a table and
sessions.json) twice per turn, and stores every message three times: a row, a full-text copy, a trigram copy.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList

_INSERT_SESSION = (
    "INSERT INTO sessions(id,source,user_id,session_key,chat_id,chat_type,display_name,origin_json,started_at,"
    "message_count,model,billing_provider,api_call_count,input_tokens,output_tokens)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_INSERT_MESSAGE = "INSERT INTO messages(session_id,role,content,timestamp,observed,active) VALUES (?,?,?,?,0,1)"


class Hermes(Driver):
    venv = "hermes"
    modules = ("gateway", "hermes_state")
    sessions_json = True  # the default

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        os.environ["HERMES_HOME"] = str(self.root)
        import logging

        logging.disable(logging.CRITICAL)
        from gateway.config import GatewayConfig, Platform
        from gateway.session import SessionSource, SessionStore

        self.source, self.platform = SessionSource, Platform.TELEGRAM
        config = GatewayConfig()
        config.write_sessions_json = self.sessions_json
        self.store = SessionStore(self.root / "sessions", config)
        self.db = self.store._db
        assert self.db is not None

    def close(self) -> None:
        self.db.close()

    def _build_source(self, key: str) -> Any:
        return self.source(platform=self.platform, chat_id=key, chat_name=key, chat_type="dm", user_id=key)

    def _find_session_id(self, key: str) -> str:
        """Look the session up without writing to the routing index, as its gateway does."""
        session_id = self.store.peek_session_id(f"agent:main:telegram:dm:{key}")
        return str(session_id or self.store.get_or_create_session(self._build_source(key)).session_id)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        entry = self.store.get_or_create_session(self._build_source(key))
        session_id = entry.session_id
        self.store.append_to_transcript(session_id, {"role": "user", "content": user, "timestamp": time.time()})
        self.store.append_to_transcript(
            session_id, {"role": "assistant", "content": assistant, "timestamp": time.time()}
        )
        self.db.update_token_counts(
            session_id, input_tokens=tin, output_tokens=tout, model="m", billing_provider="p", api_call_count=1
        )
        self.store.update_session(entry.session_key, last_prompt_tokens=tin)

    def append(self, key: str, role: str, content: str) -> None:
        self.store.append_to_transcript(self._find_session_id(key), {"role": role, "content": content})

    def load(self, key: str) -> Messages:
        messages = self.store.load_transcript(self._find_session_id(key))
        return [{"role": m["role"], "content": m["content"]} for m in messages]

    def load_last(self, key: str, n: int) -> Messages:
        session_id = self._find_session_id(key)
        total = self.db.message_count(session_id)
        messages = self.db.get_messages(session_id, limit=n, offset=max(0, total - n))
        return [{"role": m["role"], "content": m["content"]} for m in messages]

    def list_recent(self, n: int) -> SessionList:
        rows = self.db.list_sessions_rich(limit=n, order_by_last_active=True, compact_rows=True)
        return [(r["chat_id"], r["last_active"], r["message_count"]) for r in rows]

    def search(self, word: str, n: int) -> list[Any]:
        hits: list[Any] = self.db.search_messages(word, limit=n)
        return hits

    def undo(self, key: str) -> None:
        assert self.store.rewind_session(self._find_session_id(key), 1)["rewound_count"] == 2

    def rewrite(self, key: str) -> None:
        session_id = self._find_session_id(key)
        assert self.store.rewrite_transcript(session_id, self.store.load_transcript(session_id)[:-2])

    def seed(self, plan: Plan) -> None:
        from gateway.session import SessionEntry

        c = self.db._conn
        start = time.time() - 20_000
        recent_time = datetime.fromtimestamp(time.time() - 60)
        c.execute("BEGIN IMMEDIATE")
        self.store._ensure_loaded()
        for i, (key, messages) in enumerate(plan):
            at = start + i * 0.1
            session_id, lane, source = (
                f"20261101_000000_{i:08x}",
                f"agent:main:telegram:dm:{key}",
                self._build_source(key),
            )
            origin = json.dumps(source.to_dict())
            row = (session_id, "telegram", key, lane, key, "dm", key, origin, at, len(messages), "m", "p", 1, 10, 10)
            c.execute(_INSERT_SESSION, row)
            c.executemany(
                _INSERT_MESSAGE, [(session_id, role, text, at + j * 1e-3) for j, (role, text) in enumerate(messages)]
            )
            self.store._entries[lane] = SessionEntry(
                session_key=lane,
                session_id=session_id,
                created_at=recent_time,
                updated_at=recent_time,
                origin=source,
                display_name=key,
                platform=self.platform,
                chat_type="dm",
            )
        c.execute("COMMIT")
        self.db.optimize_fts()
        self.store._save()


class HermesNoJson(Hermes):
    """`write_sessions_json: false`, the documented way to turn the copy off; the routing table is still rewritten."""

    sessions_json = False
