"""llm: LogStore over logs.db.

A turn logs one finished response: thread_messages for the history, then LogStore.log. llm keeps a log of responses: it
writes the user's message together with the answer, looks up every earlier message when it logs, and lists and searches
turns, not conversations.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver

if TYPE_CHECKING:
    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages

_SEED_TIME = "2026-01-01T00:00:00"
_INSERT_TURN = (
    "INSERT INTO turns(id,thread_id,parent_message_hash,tip_message_hash,model,input_tokens,output_tokens,"
    f"datetime_utc) VALUES (?,?,?,?,'fake',10,10,'{_SEED_TIME}')"
)


class LlmLogs(Driver):
    venv = "llm"
    modules = ("llm",)

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        import llm
        import sqlite_utils
        from llm.logs import LogStore, log_rows
        from llm.parts import Message, TextPart

        self.message, self.part, self.log_rows = Message, TextPart, log_rows

        class FakeModel(llm.Model):  # type: ignore[misc]
            """Answers with `reply`."""

            model_id = "fake"
            can_stream = False
            reply = ""
            usage = (0, 0)

            def execute(self, prompt: Any, stream: Any, response: Any, conversation: Any) -> Any:
                response.set_usage(input=self.usage[0], output=self.usage[1])
                yield self.reply

        self.local = threading.local()
        self.fake, self.database, self.log_store = FakeModel, sqlite_utils.Database, LogStore
        self._get_store()

    def _get_store(self) -> Any:
        """Return the store of this thread, because connections of sqlite_utils cannot be shared between threads."""
        if not hasattr(self.local, "store"):
            self.local.model = self.fake()
            self.local.store = self.log_store(self.database(str(self.root / "logs.db")))
        return self.local.store

    def close(self) -> None:
        self._get_store().db.conn.close()

    def _build_message(self, role: str, text: str) -> Any:
        return self.message(role=role, parts=[self.part(text=text)])

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        store = self._get_store()
        store.ensure_thread(key, name=key)
        history = store.thread_messages(key)
        model = self.local.model
        model.reply, model.usage = assistant, (tin, tout)
        response = model.prompt(messages=[*history, self._build_message("user", user)])
        response.text()
        store.log(response, thread_id=key)

    def append(self, key: str, role: str, content: str) -> None:
        store = self._get_store()
        store.ensure_thread(key, name=key)
        store.append(key, [self._build_message(role, content)])

    def load(self, key: str) -> Messages:
        messages = self._get_store().thread_messages(key)
        return [{"role": m.role, "content": "".join(p.text for p in m.parts)} for m in messages]

    def search(self, word: str, n: int) -> list[Any]:
        return list(self.log_rows(self._get_store(), query=word, count=n))

    def seed(self, plan: Plan) -> None:
        c = self._get_store().db.conn
        c.execute("BEGIN")
        n = 0
        for key, messages in plan:
            thread = f"INSERT INTO threads(id,name,datetime_utc) VALUES (?,?,'{_SEED_TIME}')"
            c.execute(thread, (key, key))
            n = self._seed_thread(c, key, messages, n)
        c.execute("COMMIT")

    def _seed_thread(self, c: Any, key: str, messages: list[tuple[str, str]], n: int) -> int:
        from llm.logs import message_hash

        parent = previous_text = None
        for role, text in messages:
            tip = message_hash(self._build_message(role, text), parent)
            message = "INSERT OR IGNORE INTO messages(hash,parent_hash,role) VALUES (?,?,?)"
            c.execute(message, (tip, parent, role))
            c.execute("INSERT INTO parts(message_hash,position,type,text) VALUES (?,0,'text',?)", (tip, text))
            if role == "assistant":
                n += 1
                turn = f"{n:026d}"
                c.execute(_INSERT_TURN, (turn, key, parent, tip))
                words = "INSERT INTO turn_search(turn_id,prompt,response) VALUES (?,?,?)"
                c.execute(words, (turn, previous_text, text))
            parent, previous_text = tip, text
        c.execute("UPDATE threads SET tip_message_hash=? WHERE id=?", (parent, key))
        return n
