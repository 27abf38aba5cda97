"""OpenClaw's state folder comes in so that the next message on Telegram continues the conversation."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.core.source import SessionSource
from palaver.sessions.keys import build_session_key
from palaver.transfer.imported import InvalidImport
from palaver.transfer.readers.openclaw import open_reader
from palaver.transfer.readers.openclaw.state import find_source, is_internal
from palaver.transfer.readers.openclaw.transcript import clean_user_text
from support.imported_items import read_everything

FIXTURE = Path(__file__).parent / "fixtures" / "openclaw.jsonl"
SESSION_ID = "11111111-aaaa-4bbb-8ccc-000000000001"
# The parts that are read of the schema of OpenClaw's agents (src/state/openclaw-agent-schema.sql).
AGENT_SCHEMA = """
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, previous_session_id TEXT, reason TEXT,
  created_at INTEGER, updated_at INTEGER);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,
  PRIMARY KEY (session_id, seq));
"""
STATE_SCHEMA = """
CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, job_json TEXT);
CREATE TABLE channel_pairing_allow_entries (channel_key TEXT, account_id TEXT, entry TEXT, sort_order INTEGER);
"""
ENTRY: dict[str, Any] = {
    "sessionId": SESSION_ID,
    "updatedAt": 1772366400000,
    "deliveryContext": {"channel": "telegram", "to": "telegram:4242", "accountId": "default"},
    "modelProvider": "anthropic",
    "model": "claude-opus-4-5",
    "label": "Shopping",
    "pinnedAt": 1772366400000,
}
JOB: dict[str, Any] = {
    "id": "j1",
    "name": "Morning",
    "enabled": True,
    "schedule": {"kind": "cron", "expr": "0 7 * * *", "tz": "Europe/Berlin"},
    "payload": {"kind": "agentTurn", "message": "Summarize my mail", "model": "anthropic/claude-opus-4-5"},
    "delivery": {"mode": "announce", "channel": "telegram", "to": "4242"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state folder of an older version: everything in files."""
    sessions = tmp_path / ".openclaw" / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{SESSION_ID}.jsonl").write_text(FIXTURE.read_text())
    (sessions / "sessions.json").write_text(json.dumps({"agent:main:main": ENTRY}))
    return tmp_path / ".openclaw"


@pytest.fixture
def new_folder(tmp_path: Path) -> Path:
    """The state folder of a version since August 2026: everything in databases."""
    folder = tmp_path / "new"
    path = folder / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(AGENT_SCHEMA)
        db.execute("INSERT INTO session_nodes VALUES ('agent:main:main', ?, ?)", (SESSION_ID, json.dumps(ENTRY)))
        for session_id in (SESSION_ID, "earlier"):
            db.execute("INSERT INTO session_windows VALUES (?, 'agent:main:main', NULL, 'reset', 1, 1)", (session_id,))
        lines = FIXTURE.read_text().splitlines()
        for seq in reversed(range(len(lines))):  # not in the order of the rows
            db.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, ?)", (SESSION_ID, seq, lines[seq], 1772359200000)
            )
        earlier = {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "Before"}}
        db.execute("INSERT INTO transcript_events VALUES ('earlier', 0, ?, 1772000000000)", (json.dumps(earlier),))
        db.commit()
    return folder


def write_lines(folder: Path, *lines: object, name: str = f"{SESSION_ID}.jsonl") -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "agents" / "main" / "sessions" / name).write_text(text + "\n")


def make_entry(entry_id: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "id": entry_id, "parentId": parent, "message": {"role": role, "content": text}}


def test_a_conversation_comes_in_as_the_person_saw_it(folder: Path) -> None:
    [shopping] = read_everything(open_reader(folder)).conversations
    assert [(each["role"], each["content"]) for each in shopping.visible] == [
        ("user", "What is on my list?"),
        ("assistant", ""),
        ("tool", "- milk"),
        ("assistant", "Only milk."),
        ("system", "[Summary of another branch]\nAda misspelled bread."),
        ("user", "Add bread"),
        ("assistant", "Added bread."),
        ("user", "Thanks"),
        ("assistant", "[Error: overloaded]"),
    ]
    assert shopping.visible[0]["platform_message_id"] == "105"
    assert shopping.visible[1]["reasoning"] == "I read the file."
    assert shopping.visible[1]["tool_calls"][0]["id"] == shopping.visible[2]["tool_call_id"]
    assert shopping.hidden_texts[:2] == ["Add bred", "Added bred."]
    assert [data[:4] for _, data in shopping.files] == [b"\x89PNG"]


def test_the_facts_of_a_conversation_come_in(folder: Path) -> None:
    [shopping] = read_everything(open_reader(folder)).conversations
    facts = shopping.facts
    assert (facts.title, facts.pinned, facts.archived, facts.is_current) == ("Shopping", True, False, True)
    assert facts.source is not None
    assert build_session_key(facts.source) == "agent:main:telegram:dm:4242"
    [usage] = facts.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, str(usage.cost)) == (
        230,
        25,
        5,
        "0.004000000",
    )


def test_a_compaction_keeps_what_the_agent_still_sees(folder: Path) -> None:
    [shopping] = read_everything(open_reader(folder)).conversations
    [compaction] = shopping.compactions
    assert (compaction.summary, compaction.kept_count) == ("Ada keeps a shopping list.", 2)


def test_files_and_databases_give_the_same_conversation(folder: Path, new_folder: Path) -> None:
    [from_files] = read_everything(open_reader(folder)).conversations
    earlier, from_database = read_everything(open_reader(new_folder)).conversations
    assert from_database.visible == from_files.visible
    assert from_database.facts.source == from_files.facts.source
    assert from_database.facts.usage == from_files.facts.usage
    assert (earlier.facts.is_current, from_database.facts.is_current) == (False, True)
    assert earlier.facts.source == from_database.facts.source
    assert earlier.visible[0]["content"] == "Before"


def test_files_that_were_left_behind_come_in_once(new_folder: Path) -> None:
    sessions = new_folder / "agents" / "main" / "sessions"
    sessions.mkdir()
    (sessions / f"{SESSION_ID}.jsonl").write_text(FIXTURE.read_text())
    write_lines(new_folder, make_entry("a", None, "Only in a file"), name="other.jsonl")
    read = read_everything(open_reader(new_folder))
    assert len(read.conversations) == 3
    assert len({each.facts.origin_id for each in read.conversations}) == 3


def test_earlier_conversations_come_in_and_deleted_ones_do_not(folder: Path) -> None:
    for name in ("a.jsonl.reset.2026-02-01T00-00-00.000Z", "b.jsonl.deleted.2026-02-01T00-00-00.000Z", "c.jsonl.bak"):
        write_lines(folder, make_entry("a", None, name), name=name)
    texts = [each.visible[0]["content"] for each in read_everything(open_reader(folder)).conversations]
    assert "a.jsonl.reset.2026-02-01T00-00-00.000Z" in texts
    assert len(texts) == 2


def test_a_damaged_line_does_not_hide_what_came_before_it(folder: Path) -> None:
    write_lines(
        folder,
        {"type": "session", "timestamp": "2026-01-01T00:00:00Z"},
        make_entry("1", None, "one"),
        '{"type": "message", "id": "2", "parentId": "1", "mess',
        make_entry("3", "2", "three"),
        "[]",
    )
    [read] = read_everything(open_reader(folder)).conversations
    assert [each["content"] for each in read.visible] == ["one", "three"]
    assert [each.where.rpartition(", ")[2] for each in read.problems] == ["line 3", "line 5"]


def test_old_transcripts_without_ids_are_read_in_order(folder: Path) -> None:
    write_lines(folder, *({"type": "message", "message": {"role": "user", "content": text}} for text in "abc"))
    [read] = read_everything(open_reader(folder)).conversations
    assert [each["content"] for each in read.visible] == ["a", "b", "c"]


def test_circles_and_equal_ids_lose_nothing(folder: Path) -> None:
    write_lines(folder, make_entry("1", "2", "a"), make_entry("2", "1", "b"), make_entry("2", "1", "c"))
    [read] = read_everything(open_reader(folder)).conversations
    assert sorted(each.message.text for each in read.messages) == ["a", "b", "c"]


def test_conversations_of_the_agent_with_itself_are_left_out_and_counted(folder: Path) -> None:
    index = {"agent:main:cron:j1": {"sessionId": "cron-1"}, "agent:main:subagent:x": {"sessionId": "sub-1"}}
    (folder / "agents" / "main" / "sessions" / "sessions.json").write_text(json.dumps(index))
    for name in ("cron-1.jsonl", "sub-1.jsonl"):
        write_lines(folder, make_entry("1", None, "tick"), name=name)
    read = read_everything(open_reader(folder))
    assert len(read.conversations) == 1
    assert [each.what for each in read.problems] == ["Left out: 2 conversations of jobs, sub-agents and hooks."]


@pytest.mark.parametrize(
    ("key", "entry", "session_key"),
    [
        ("agent:main:telegram:direct:77", {}, "agent:main:telegram:dm:77"),
        ("agent:main:telegram:dm:77", {}, "agent:main:telegram:dm:77"),
        ("agent:main:telegram:work:direct:77", {"lastAccountId": "work"}, "agent:main:telegram@work:dm:77"),
        ("agent:main:telegram:group:-1005", {}, "agent:main:telegram:group:-1005"),
        ("agent:main:telegram:group:-1005:topic:9", {}, "agent:main:telegram:group:-1005:thread=9"),
        ("agent:main:telegram:group:-1005:topic:1", {}, "agent:main:telegram:group:-1005"),
        ("agent:main:whatsapp:direct:+4917", {}, "agent:main:whatsapp-web:dm:4917"),
        (
            "agent:main:slack:channel:c0ab",
            {"lastTo": "channel:C0AB", "lastChannel": "slack"},
            "agent:main:slack:group:C0AB",
        ),
        ("agent:main:slack:channel:c0ab", {}, "agent:main:slack:group:C0AB"),
        ("agent:main:discord:channel:55", {}, "agent:main:discord:channel:55"),
        (
            "agent:main:matrix:channel:!ab:x.org",
            {"origin": {"provider": "matrix", "to": "room:!Ab:x.org"}},
            "agent:main:matrix:group:!Ab%3Ax.org",
        ),
        ("agent:main:signal:group:ab=", {"groupId": "aB="}, "agent:main:signal:group:aB="),
        ("agent:main:direct:77", {"lastChannel": "telegram", "lastTo": "77"}, "agent:main:telegram:dm:77"),
        ("main", {"lastChannel": "telegram", "lastTo": "telegram:77"}, "agent:main:telegram:dm:77"),
        ("agent:main:main", {"lastChannel": "webchat"}, None),
        ("agent:main:main", {}, None),
        ("agent:main:???:direct:1", {}, None),
    ],
)
def test_session_keys_lead_to_our_lanes(key: str, entry: dict[str, Any], session_key: str | None) -> None:
    source = find_source(key, entry)
    assert (None if source is None else build_session_key(source)) == session_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:main", False),
        ("agent:main:telegram:direct:1", False),
        ("agent:main:cron:j1:run:2", True),
        ("cron:j1", True),
        ("hook:1234", True),
        ("agent:main:subagent:9", True),
        ("agent:main:main:heartbeat", True),
    ],
)
def test_internal_keys_are_recognized(key: str, expected: bool) -> None:
    assert is_internal(key) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello", "Hello"),
        ("[Telegram Ada id:7 2026-03-01 10:00 UTC] Hello\n[message_id: 5]", "Hello"),
        ("[Sat 2026-04-18 22:09 GMT-3] Hello", "Hello"),
        ("[WhatsApp +49 +5m 2026-03-01T10:00Z] Hello", "Hello"),
        ("[1] first\n[2] second", "[1] first\n[2] second"),
        ("[x](https://example.com/2026-01-01)", "[x](https://example.com/2026-01-01)"),
        (
            "Sender (untrusted metadata):\n```json\n{broken\n```\n\nHello",
            "Sender (untrusted metadata):\n```json\n{broken\n```\n\nHello",
        ),
        ("Sender (untrusted metadata):\n```json\n{}\n```\n\nA\n```json\n{}\n```", "A\n```json\n{}\n```"),
    ],
)
def test_only_what_openclaw_added_is_taken_away(text: str, expected: str) -> None:
    assert clean_user_text(text).text == expected


def test_a_message_that_imitates_many_additions_takes_no_time() -> None:
    block = "Sender (untrusted metadata):\n```json\n{}\n```\n\n"
    assert clean_user_text(block * 100_000).text.startswith("Sender")


def test_people_in_a_group_keep_their_names(folder: Path) -> None:
    (folder / "agents" / "main" / "sessions" / "sessions.json").write_text(
        json.dumps({"agent:main:telegram:group:-1005": {"sessionId": SESSION_ID, "subject": "Family"}})
    )
    [read] = read_everything(open_reader(folder)).conversations
    assert read.facts.source == SessionSource("telegram", "-1005", chat_type="group", chat_name="Family")
    assert read.visible[0]["author"] == {"id": "4242", "name": "Ada"}


@pytest.mark.parametrize("in_database", [False, True])
def test_jobs_and_people_come_in(folder: Path, in_database: bool) -> None:
    entries = ["4242", "telegram:77", "*", "@bob", "4242"]
    if in_database:
        (folder / "state").mkdir()
        with closing(sqlite3.connect(folder / "state" / "openclaw.sqlite")) as db:
            db.executescript(STATE_SCHEMA)
            db.execute("INSERT INTO cron_jobs VALUES ('default', 'j1', ?)", (json.dumps(JOB),))
            for entry in set(entries):
                db.execute("INSERT INTO channel_pairing_allow_entries VALUES ('telegram', 'default', ?, 0)", (entry,))
            db.commit()
    else:
        (folder / "cron").mkdir()
        (folder / "cron" / "jobs.json").write_text(json.dumps({"version": 1, "jobs": [JOB]}))
        (folder / "credentials").mkdir()
        (folder / "credentials" / "telegram-default-allowFrom.json").write_text(json.dumps({"allowFrom": entries}))
        (folder / "credentials" / "telegram-token.json").write_text("secret")
    read = read_everything(open_reader(folder))
    [job] = read.jobs
    assert (job.origin_id, job.name, job.schedule, job.timezone) == ("j1", "Morning", "0 7 * * *", "Europe/Berlin")
    assert (job.prompt, job.targets, job.model) == (
        "Summarize my mail",
        ("telegram:4242",),
        "anthropic/claude-opus-4-5",
    )
    assert {(each.platform, each.user_id) for each in read.accounts} == {("telegram", "4242"), ("telegram", "77")}
    assert len(read.problems) == 2


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"kind": "every", "everyMs": 7_200_000}, "every 2h"),
        ({"kind": "at", "at": "2099-01-01T10:00:00Z"}, "2099-01-01T10:00:00Z"),
        ({"kind": "at", "atMs": 4070944800000}, "2099-01-01T10:00:00Z"),
        ({"kind": "every", "everyMs": 60_000}, None),
        ({"kind": "every", "everyMs": float("nan")}, None),
        ({"kind": "at", "at": "2020-01-01T10:00:00Z"}, None),
        ({}, None),
    ],
)
def test_schedules_are_converted_or_reported(folder: Path, schedule: dict[str, Any], expected: str | None) -> None:
    (folder / "cron").mkdir()
    (folder / "cron" / "jobs.json").write_text(json.dumps({"jobs": [{**JOB, "schedule": schedule}]}))
    read = read_everything(open_reader(folder))
    assert [each.schedule for each in read.jobs] == ([expected] if expected else [])
    assert len(read.problems) == (0 if expected else 1)


def test_people_allowed_in_the_settings_come_in(folder: Path) -> None:
    settings = {
        "channels": {
            "telegram": {"botToken": "secret", "allowFrom": [4242, "tg:9"]},
            "whatsapp": {"allowFrom": ["+49"]},
        }
    }
    (folder / "openclaw.json").write_text(json.dumps(settings))
    read = read_everything(open_reader(folder))
    assert [(each.platform, each.user_id) for each in read.accounts] == [
        ("telegram", "4242"),
        ("telegram", "9"),
        ("whatsapp-web", "+49"),
    ]
    assert "secret" not in repr(read.others)


def test_settings_in_json5_are_reported(folder: Path) -> None:
    (folder / "openclaw.json").write_text("{channels: {}} // mine")
    [problem] = read_everything(open_reader(folder)).problems
    assert "not plain JSON" in problem.what


def test_notes_come_in_one_by_one(folder: Path) -> None:
    workspace = folder / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "2026-03-01.md").write_text("today")
    (workspace / "MEMORY.md").write_text(
        "# Ada\n\n- likes tea\n- has a dog\n  called Rex\n\n## Work\nAt a bank.\n\n---\n"
    )
    read = read_everything(open_reader(folder))
    assert [each.text for each in read.memories] == ["Ada: likes tea", "Ada: has a dog called Rex", "Work: At a bank."]
    assert [each.what for each in read.problems] == ["Not imported: 1 file with daily notes."]


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["a", "message", "toolCall", "user"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "id", "parentId", "message", "role", "content", "usage", "cost", "timestamp", "summary"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(lines=st.lists(JUNK, max_size=5), entry=JUNK, key=st.text(":abdirectgroup%", max_size=12))
def test_no_junk_in_the_files_breaks_the_import(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], entry: Any, key: str
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    sessions = folder / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    write_lines(folder, *lines)
    write_lines(folder, make_entry("a", None, "hi"), name="good.jsonl")
    index = {f"agent:main:{key}": {"sessionId": SESSION_ID, "origin": entry, "lastTo": entry, "label": entry}}
    (sessions / "sessions.json").write_text(json.dumps(index))
    (folder / "cron").mkdir()
    (folder / "cron" / "jobs.json").write_text(json.dumps({"jobs": [{"schedule": entry, "payload": entry}, entry]}))
    read = read_everything(open_reader(folder))
    assert "main/good" in {each.facts.origin_id for each in read.conversations}


def test_a_damaged_index_and_database_are_reported_and_the_rest_comes_in(folder: Path) -> None:
    (folder / "agents" / "main" / "sessions" / "sessions.json").write_text("{broken")
    (folder / "agents" / "main" / "agent").mkdir()
    (folder / "agents" / "main" / "agent" / "openclaw-agent.sqlite").write_bytes(b"no database")
    read = read_everything(open_reader(folder))
    assert len(read.conversations) == 1
    assert len(read.problems) == 2


def test_the_home_folder_leads_to_the_state_folder(folder: Path) -> None:
    assert len(read_everything(open_reader(folder.parent)).conversations) == 1


def test_another_folder_says_what_to_import(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match=r"~/\.openclaw"):
        open_reader(tmp_path)
