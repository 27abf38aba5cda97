"""hermes-agent: `gateway.session.SessionStore` over `hermes_state.SessionDB`, defaults untouched.

A turn is what its gateway and its conversation loop do for one message with one model call:
get_or_create_session, two transcript appends, update_token_counts, update_session. The routing index of all
sessions is rewritten (a table and sessions.json) twice per turn; every message is stored three times: its
row, a full-text copy, a trigram copy.
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
    from benchmarks.drivers import Listed, Said

_SESSION = (
    "INSERT INTO sessions(id,source,user_id,session_key,chat_id,chat_type,display_name,origin_json,started_at,"
    "message_count,model,billing_provider,api_call_count,input_tokens,output_tokens)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_MESSAGE = "INSERT INTO messages(session_id,role,content,timestamp,observed,active) VALUES (?,?,?,?,0,1)"


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

    def _source(self, key: str) -> Any:
        return self.source(platform=self.platform, chat_id=key, chat_name=key, chat_type="dm", user_id=key)

    def _sid(self, key: str) -> str:
        """Read-only, as its gateway peeks: no write to the routing index."""
        sid = self.store.peek_session_id(f"agent:main:telegram:dm:{key}")
        return str(sid or self.store.get_or_create_session(self._source(key)).session_id)

    def turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        entry = self.store.get_or_create_session(self._source(key))
        sid = entry.session_id
        self.store.append_to_transcript(sid, {"role": "user", "content": user, "timestamp": time.time()})
        self.store.append_to_transcript(sid, {"role": "assistant", "content": assistant, "timestamp": time.time()})
        self.db.update_token_counts(
            sid, input_tokens=tin, output_tokens=tout, model="m", billing_provider="p", api_call_count=1
        )
        self.store.update_session(entry.session_key, last_prompt_tokens=tin)

    def append(self, key: str, role: str, content: str) -> None:
        self.store.append_to_transcript(self._sid(key), {"role": role, "content": content})

    def load(self, key: str) -> Said:
        said = self.store.load_transcript(self._sid(key))
        return [{"role": m["role"], "content": m["content"]} for m in said]

    def tail(self, key: str, n: int) -> Said:
        sid = self._sid(key)
        total = self.db.message_count(sid)
        said = self.db.get_messages(sid, limit=n, offset=max(0, total - n))
        return [{"role": m["role"], "content": m["content"]} for m in said]

    def recent(self, n: int) -> Listed:
        rows = self.db.list_sessions_rich(limit=n, order_by_last_active=True, compact_rows=True)
        return [(r["chat_id"], r["last_active"], r["message_count"]) for r in rows]

    def search(self, word: str, n: int) -> list[Any]:
        found: list[Any] = self.db.search_messages(word, limit=n)
        return found

    def undo(self, key: str) -> None:
        assert self.store.rewind_session(self._sid(key), 1)["rewound_count"] == 2

    def rewrite(self, key: str) -> None:
        sid = self._sid(key)
        assert self.store.rewrite_transcript(sid, self.store.load_transcript(sid)[:-2])

    def seed(self, plan: Plan) -> None:
        from gateway.session import SessionEntry

        c = self.db._conn
        began = time.time() - 20_000
        recently = datetime.fromtimestamp(time.time() - 60)
        c.execute("BEGIN IMMEDIATE")
        self.store._ensure_loaded()
        for i, (key, said) in enumerate(plan):
            at = began + i * 0.1
            sid, lane, source = f"20261101_000000_{i:08x}", f"agent:main:telegram:dm:{key}", self._source(key)
            origin = json.dumps(source.to_dict())
            row = (sid, "telegram", key, lane, key, "dm", key, origin, at, len(said), "m", "p", 1, 10, 10)
            c.execute(_SESSION, row)
            c.executemany(_MESSAGE, [(sid, role, text, at + j * 1e-3) for j, (role, text) in enumerate(said)])
            self.store._entries[lane] = SessionEntry(
                session_key=lane,
                session_id=sid,
                created_at=recently,
                updated_at=recently,
                origin=source,
                display_name=key,
                platform=self.platform,
                chat_type="dm",
            )
        c.execute("COMMIT")
        self.db.optimize_fts()
        self.store._save()


class HermesNoJson(Hermes):
    """`write_sessions_json: false`, the documented opt-out of the mirror; the routing table is still rewritten."""

    sessions_json = False
