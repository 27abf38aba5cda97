"""Fills a store with random conversations, through the same doors as people use."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from palaver import SessionSource, TurnUsage
from palaver.accounts import merge_table as person_merge
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NothingToDo, TitleTaken
from palaver.memory.service import MemoryOperations
from palaver.people import table as people
from palaver.people.model import Role
from palaver.prompts.service import SavedPromptOperations
from palaver.sessions import (
    hidden_ranges as read_marks,
    home_channels,
    log_table as events,
    message_table as message_log,
    settings_table as session_settings,
    table as sessions,
    versions_table as versions,
)
from palaver.sessions.message import Message
from support.job_runs import insert_job

if TYPE_CHECKING:
    import random

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.media.attachments import Attachments
    from palaver.sessions.events import Event
    from palaver.sessions.model import VersionInfo

TEXTS = (
    "Done.",
    "Done.",
    "Grüße 🐝 \u2028 with a line separator",
    "日本語のテキスト",
    'quotes " and \\ and \n lines',
    "\ufffd",
    "x" * 3000,
    "# Title\n\n- a\n- b",
)
SOURCES = (
    SessionSource("telegram", "ada", user_id="ada", user_name="Ada"),
    SessionSource("telegram", "bob", user_id="bob", user_name="Bob"),
    SessionSource("discord", "club", chat_type="group", chat_name="Club", user_id="ada", user_name="Ada"),
    SessionSource("discord", "club", chat_type="group", chat_name="Club", user_id="dan", user_name="Dan"),
    SessionSource("whatsapp", "4917012345", user_id="4917012345", user_id_alt="99@lid", user_name="Eve"),
    SessionSource.local_cli(),
)


class RandomStore:
    """Runs random operations on a store."""

    def __init__(self, store: SessionStore, files: Attachments, chance: random.Random) -> None:
        self.store = store
        self.files = files
        self.chance = chance
        self.session_ids: list[str] = []
        self.keys: list[str] = []

    def fill(self, operations: int) -> None:
        self.write()
        for _ in range(operations):
            self.store.clock.advance(seconds=self.chance.choice([1, 60, 5000]))  # type: ignore[attr-defined]
            operation = self.chance.choice([self.write, self.write, self.answer, *self.others])
            with contextlib.suppress(NothingToDo, TitleTaken):
                operation()

    @property
    def others(self) -> list[Any]:
        return [
            *(self.ask_again, self.edit, self.choose_version),
            *(self.undo, self.redo, self.rewrite, self.fork, self.rename, self.pin, self.archive, self.reset),
            *(self.restore, self.project, self.delete, self.remember, self.add_file, self.compact, self.write_event),
            *(self.add_job, self.set_home, self.damage, self.make_member, self.mark_read, self.link),
        ]

    @property
    def session_id(self) -> str:
        return self.chance.choice(self.session_ids)

    @property
    def text(self) -> str:
        return self.chance.choice(TEXTS)

    def run(self, sql: str, *params: object) -> None:
        self.store.engine.run(Write(lambda tx: tx.execute(sql, *params)))

    def write(self) -> None:
        message: Any = self.text
        if self.chance.random() < 0.3:
            message = {"role": "user", "content": self.text, "platform_message_id": "77", "x": {"a": [1, 2.5, None]}}
        recorded = self.store.record_user_message(self.chance.choice(SOURCES), message)
        if recorded.session_id not in self.session_ids:
            self.session_ids.append(recorded.session_id)
        self.keys.append(recorded.session_key)

    def answer(self) -> None:
        messages: list[Any] = [self.text]
        if self.chance.random() < 0.4:
            calls = [{"id": "1", "name": "look", "arguments": {"q": self.text}}]
            messages = [
                {"role": "assistant", "content": None, "tool_calls": calls, "reasoning": self.text},
                {"role": "tool", "content": self.text, "tool_call_id": "1", "tool_name": "look"},
                {"role": "assistant", "content": [{"type": "text", "text": self.text}, {"type": "image_url"}]},
            ]
        usage = TurnUsage(
            model=self.chance.choice(["gpt", "demo"]),
            provider="openai",
            input_tokens=self.chance.randint(0, 1000),
            output_tokens=3,
            cost=self.chance.choice([None, "0.000123456", 2]),
            last_prompt_tokens=self.chance.choice([None, 500]),
        )
        self.store.append_to_transcript(self.session_id, messages, usage=usage)

    def undo(self) -> None:
        self.store.undo(self.session_id)

    def redo(self) -> None:
        self.store.redo(self.session_id)

    def rewrite(self) -> None:
        self.store.rewrite_transcript(self.session_id, [self.text, {"role": "assistant", "content": self.text}])

    def ask_again(self, *, is_edit: bool = False) -> None:
        """Make another version of a visible message of a person, with an answer."""
        now, session_id = to_micros(self.store.clock.now()), self.session_id
        questions = [each for each in self._list_messages(session_id) if each.message and each.message.role == "user"]
        if questions:
            question = self.chance.choice(questions)
            text = self.text if is_edit else question.message.text if question.message else ""

            def run(tx: Transaction) -> None:
                no = sessions.get(tx, session_id).no
                versions.start_version(tx, no, question.seq, now, question.person_id, is_edit=is_edit)
                messages = [Message("user", text), Message("assistant", self.text)]
                message_log.append_messages(tx, session_id, messages, now, from_human=True)

            self.store.engine.run(Write(run))

    def edit(self) -> None:
        self.ask_again(is_edit=True)

    def choose_version(self) -> None:
        now = to_micros(self.store.clock.now())
        infos = [(each, info) for each in self.session_ids for info in self.load_versions(self.store, each).values()]
        if infos:
            session_id, info = self.chance.choice(infos)
            number = self.chance.choice([each for each in range(1, info.count + 1) if each != info.number])
            self.store.engine.run(
                Write(lambda tx: versions.choose_version(tx, sessions.get(tx, session_id).no, info.group, number, now))
            )

    def load_versions(self, store: SessionStore, session_id: str) -> dict[int, VersionInfo]:
        """Return the versions of the visible messages of a conversation, here or in a copy."""

        def run(tx: Transaction) -> dict[int, VersionInfo]:
            no = sessions.get(tx, session_id).no
            return versions.load_infos(tx, no, events.list_messages(tx, no))

        return store.engine.run(Read(run))

    def _list_messages(self, session_id: str) -> list[Event]:
        return self.store.engine.run(Read(lambda tx: events.list_messages(tx, sessions.get(tx, session_id).no)))

    def fork(self) -> None:
        self.session_ids.append(self.store.fork(self.session_id).id)

    def rename(self) -> None:
        self.store.rename_session(self.session_id, self.chance.choice(["Trip", "Trip #2", "ÄRGER", None]))

    def pin(self) -> None:
        self.store.pin(self.session_id, self.chance.random() < 0.7)

    def archive(self) -> None:
        self.store.archive(self.session_id, self.chance.random() < 0.7)

    def reset(self) -> None:
        self.session_ids.append(self.store.reset_session(self.chance.choice(self.keys)).session_id)

    def restore(self) -> None:
        self.store.restore(self.chance.choice(self.keys))

    def project(self) -> None:
        person = self.store.get_or_create_person(SOURCES[0])
        view = self.store.seen_by(person.principal)
        names = {project.name: project for project in view.projects.list()}
        name = self.chance.choice(["Work", "Garden"])
        project = names.get(name) or view.projects.create(name, self.chance.choice([None, "#3b82f6"]))
        view.projects.update(project.id, instructions=self.chance.choice(["", "Answer in rhymes."]))
        if not any(prompt.name == name for prompt in view.part(SavedPromptOperations).list()):
            view.part(SavedPromptOperations).create(name, "Explain {{topic}}.")
        mine = [session.id for session in view.list(limit=50)]
        if mine:
            self.store.move_to_project(self.chance.choice(mine), project.id)

    def delete(self) -> None:
        if len(self.session_ids) > 3:
            session_id = self.session_id
            self.session_ids.remove(session_id)
            self.store.delete_session(session_id)
            self.keys = [key for key in self.keys if self.store.find_entry(key) is not None]
            if not self.keys or not self.session_ids:
                self.write()

    def remember(self) -> None:
        person = self.store.get_or_create_person(self.chance.choice(SOURCES))
        self.store.seen_by(person.principal).part(MemoryOperations).remember(self.text[:100])

    def add_file(self) -> None:
        person = self.store.get_or_create_person(SOURCES[0])
        data = self.chance.choice([b"a small text", b"%PDF-1.7 " + bytes(range(256)) * 2000])
        file = self.files.store_blocking(person.id, "notes.txt", [data])
        content = [{"type": "text", "text": "look"}, file.to_part()]
        session_id = self.session_id
        self.store.append_to_transcript(session_id, {"role": "user", "content": content})
        self.run(
            "INSERT INTO attachment_use SELECT s.no, a.no FROM session s, attachment a WHERE s.id = $1 AND a.id = $2",
            session_id,
            file.id,
        )

    def compact(self) -> None:
        def run(tx: Transaction) -> None:
            no = sessions.get(tx, session_id).no
            log = events.list_messages(tx, no, limit=100)
            if len(log) > 1:
                new = versions.NewCompaction(
                    summary="So far: ü",
                    first_kept_seq=log[-1].seq,
                    last_replaced_seq=log[-2].seq,
                    message_count=len(log) - 1,
                )
                versions.create(tx, no, new, to_micros(self.store.clock.now()))

        session_id = self.session_id
        self.store.engine.run(Write(run))

    def write_event(self) -> None:
        """Set a setting, which is a column and an event."""
        now, session_id = to_micros(self.store.clock.now()), self.session_id

        def run(tx: Transaction) -> None:
            no = sessions.get(tx, session_id).no
            session_settings.switch_toolsets(tx, no, {"memory": False}, now)
            session_settings.change(tx, no, "workspace", "/srv ü", now)

        self.store.engine.run(Write(run))

    def add_job(self) -> None:
        person = self.store.get_or_create_person(SOURCES[0])
        name = f"News {self.chance.randint(1, 3)}"
        exists = self.store.engine.run(
            Write(lambda tx: tx.fetch_one("SELECT 1 FROM job WHERE person_id = $1 AND name = $2", person.id, name))
        )
        if exists is None:
            insert_job(self.store, SOURCES[0], self.chance.choice(["every 1h", "0 9 * * 1-5"]), name=name)

    def set_home(self) -> None:
        owner = self.store.get_owner()
        now = to_micros(self.store.clock.now())
        source = self.chance.choice(SOURCES[:4])
        self.store.engine.run(Write(lambda tx: home_channels.choose(tx, source, owner.id, now)))

    def damage(self) -> None:
        """Write into the log what Palaver would not write."""
        bodies = ["{not json", json.dumps({"b": 1, "a": "\ud83d\udc1d"}), "[1,2]", '{"a":1.0e2}', "null"]
        self.run(
            "UPDATE event SET body = $2 WHERE session_no = (SELECT no FROM session WHERE id = $1) AND seq = 2",
            self.session_id,
            self.chance.choice(bodies),
        )

    def make_member(self) -> None:
        person = self.store.get_or_create_person(self.chance.choice(SOURCES[:4]))
        self.store.engine.run(Write(lambda tx: people.set_role(tx, person.id, Role.MEMBER)))

    def mark_read(self) -> None:
        person = self.store.get_or_create_person(SOURCES[0])
        view = self.store.seen_by(person.principal)
        sessions_of_ada = view.list(limit=5)
        if sessions_of_ada:
            chosen = self.chance.choice(sessions_of_ada).id
            now = to_micros(self.store.clock.now())
            self.store.engine.run(
                Write(lambda tx: read_marks.mark_read(tx, sessions.get(tx, chosen).no, person.id, 2, now))
            )

    def link(self) -> None:
        """Make two accounts one person."""
        first, second = (self.store.get_or_create_person(SOURCES[index]) for index in (0, 1))
        now = to_micros(self.store.clock.now())

        def run(tx: Transaction) -> None:
            rows = [people.find_by_id(tx, person.id) for person in (first, second)]
            if rows[0] is not None and rows[1] is not None and first.id != second.id:
                person_merge.merge_people(tx, rows[0], rows[1], now)

        self.store.engine.run(Write(run))
