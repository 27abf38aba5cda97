"""langgraph-checkpoint-sqlite: SqliteSaver as the memory of a chat.

A turn is the minimum that a chat graph does: get_tuple, put after the user's message, put after the answer. A real graph
run adds one more checkpoint and its pending writes (`LangGraphGraph`), so these numbers favor the peer. Every checkpoint
stores the whole message list again, and old ones are never pruned; list() iterates over checkpoints, not threads; there is
no search.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from benchmarks.drivers import Driver

if TYPE_CHECKING:
    from typing import ClassVar

    from benchmarks.corpus import Plan
    from benchmarks.drivers import Messages, SessionList


class LangGraph(Driver):
    venv = "langgraph"
    modules: ClassVar[tuple[str, ...]] = ("langgraph.checkpoint.sqlite",)

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        from langchain_core.messages import AIMessage, HumanMessage
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.base.id import uuid6
        from langgraph.checkpoint.sqlite import SqliteSaver

        self.human, self.ai, self.empty, self.uuid6 = HumanMessage, AIMessage, empty_checkpoint, uuid6
        self.conn = sqlite3.connect(self.root / "checkpoints.sqlite", check_same_thread=False)
        self.saver = SqliteSaver(self.conn)
        self.saver.setup()

    def close(self) -> None:
        self.conn.close()

    def _load_thread(self, key: str) -> tuple[Any, list[Any], int]:
        thread = {"configurable": {"thread_id": key, "checkpoint_ns": ""}}
        checkpoint_tuple = self.saver.get_tuple(thread)
        if checkpoint_tuple is None:
            return thread, [], -1
        messages = checkpoint_tuple.checkpoint["channel_values"]["messages"]
        return checkpoint_tuple.config, messages, checkpoint_tuple.metadata.get("step", 0)

    def _save_checkpoint(self, config: Any, messages: list[Any], step: int) -> Any:
        checkpoint = self.empty()
        checkpoint["id"] = str(self.uuid6(clock_seq=step))
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": f"{step + 1:032}.0"}
        return self.saver.put(config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {})

    def _build_message(self, role: str, text: str) -> Any:
        return (self.human if role == "user" else self.ai)(content=text)

    def _build_answer(self, text: str, tin: int, tout: int) -> Any:
        usage = {"input_tokens": tin, "output_tokens": tout, "total_tokens": tin + tout}
        return self.ai(content=text, usage_metadata=usage)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        config, messages, step = self._load_thread(key)
        messages = [*messages, self.human(content=user)]
        config = self._save_checkpoint(config, messages, step + 1)
        self._save_checkpoint(config, [*messages, self._build_answer(assistant, tin, tout)], step + 2)

    def append(self, key: str, role: str, content: str) -> None:
        config, messages, step = self._load_thread(key)
        self._save_checkpoint(config, [*messages, self._build_message(role, content)], step + 1)

    def load(self, key: str) -> Messages:
        return [
            {"role": "user" if m.type == "human" else "assistant", "content": m.content}
            for m in self._load_thread(key)[1]
        ]

    def list_recent(self, n: int) -> SessionList:
        threads: dict[str, tuple[str, Any, int | None]] = {}
        for checkpoint_tuple in self.saver.list(None, limit=n * 3):
            thread = checkpoint_tuple.config["configurable"]["thread_id"]
            if thread not in threads:
                count = len(checkpoint_tuple.checkpoint["channel_values"]["messages"])
                threads[thread] = (thread, checkpoint_tuple.checkpoint["ts"], count)
                if len(threads) == n:
                    break
        return list(threads.values())

    def undo(self, key: str) -> None:
        config, messages, step = self._load_thread(key)
        self._save_checkpoint(config, messages[:-2], step + 1)

    def seed(self, plan: Plan) -> None:
        self.conn.execute("PRAGMA synchronous=OFF")
        for key, chat in plan:
            thread = {"configurable": {"thread_id": key, "checkpoint_ns": ""}}
            self._save_checkpoint(thread, [self._build_message(role, text) for role, text in chat], len(chat))
        self.conn.execute("PRAGMA synchronous=FULL")


class LangGraphGraph(LangGraph):
    """The same saver under a compiled graph of one node with MessagesState: as applications use it.

    Each turn writes three checkpoints, each with the whole list, and the pending writes.
    """

    venv = "langgraph_full"
    modules = ("langgraph.checkpoint.sqlite", "langgraph.graph")

    def open(self) -> None:
        super().open()
        from langgraph.graph import START, MessagesState, StateGraph

        self.next: dict[str, Any] = {}  # by chat, because several threads run turns

        def reply(state: Any, config: Any) -> Any:
            return {"messages": [self.next.pop(config["configurable"]["thread_id"])]}

        from langchain_core.runnables import RunnableConfig

        reply.__annotations__["config"] = RunnableConfig  # the graph reads it to decide what to pass
        graph = StateGraph(MessagesState)
        graph.add_node("reply", reply)
        graph.add_edge(START, "reply")
        self.graph = graph.compile(checkpointer=self.saver)

    def run_turn(self, key: str, user: str, assistant: str, tin: int, tout: int) -> None:
        self.next[key] = self._build_answer(assistant, tin, tout)
        state = {"messages": [self.human(content=user)]}
        self.graph.invoke(state, {"configurable": {"thread_id": key}})

    def append(self, key: str, role: str, content: str) -> None:
        state = {"messages": [self._build_message(role, content)]}
        self.graph.update_state({"configurable": {"thread_id": key}}, state, as_node="reply")
