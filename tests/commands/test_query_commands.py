"""Listing, searching and exporting conversations, and that reading commands change nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.commands.command import CommandAction, CommandReply
from palaver.core.errors import StoreReadOnly
from palaver.sessions import table as sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver.commands.context import CommandContext

    Source = Callable[..., SessionSource]


# ---- /sessions ---------------------------------------------------------------------------------------------


def test_sessions_lists_conversations_newest_first_in_pages(chat: Chat, dm: Source) -> None:
    for number in range(12):
        chat.run(dm(), "/new")
        chat.add_messages(dm(), f"talk {number}")
    first = chat.run(dm(), "/sessions")
    assert [each["preview"] for each in first.data["sessions"]] == [f"talk {number}" for number in range(11, 1, -1)]
    assert "Use `/sessions 2` to see more." in first.text
    assert "**talk 11**, just now, 1 message, **here**" in first.text
    second = chat.run(dm(), "/sessions 2")
    assert [each["preview"] for each in second.data["sessions"]] == ["talk 1", "talk 0"]
    assert "to see more" not in second.text
    assert "no page 3" in chat.run(dm(), "/sessions 3").text


def test_sessions_finds_words_in_titles_and_last_messages(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/new Trip to Lisbon")
    lisbon = chat.add_messages(dm(), "by train", "at night").session_id
    chat.run(dm(), "/new")
    chat.add_messages(dm(), "something else")
    assert [each["id"] for each in chat.run(dm(), "/sessions LISBON night").data["sessions"]] == [lisbon]
    assert "`/search words`" in chat.run(dm(), "/sessions Porto").text


@pytest.mark.parametrize("page", ["0", "51", "999", "9" * 5000])
def test_sessions_rejects_page_numbers_out_of_range(chat: Chat, dm: Source, page: str) -> None:
    assert "from 1 to 50" in chat.expect_error(dm(), f"/sessions {page}")


def test_sessions_says_if_there_are_none(chat: Chat, dm: Source) -> None:
    assert chat.run(dm(), "/sessions").text == "No conversations here yet."


# ---- /search -----------------------------------------------------------------------------------------------


def test_search_shows_title_age_and_how_to_get_there(chat: Chat, dm: Source) -> None:
    chat.run(dm(), "/new Trip")
    trip = chat.add_messages(dm(), "the night train to Lisbon").session_id
    chat.run(dm(), "/new")
    chat.clock.advance(hours=2)
    chat.add_messages(dm(), "is the train late?")
    text = chat.run(dm(), "/search train").text
    here, there = text.split("\n\n")[1].splitlines()
    assert "**here**" in here
    assert "late?" in here
    assert "**Trip**, 2 h ago" in there
    assert f"`/resume {trip}`" in there
    assert chat.run(dm(), f"/resume {trip}").session_id == trip


def test_search_finds_the_latest_message(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "just now")
    assert len(chat.run(dm(), "/search now").data["hits"]) == 1


def test_search_shows_only_the_newest_hits(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), *("again" for _ in range(20)))
    reply = chat.run(dm(), "/search again")
    assert len(reply.data["hits"]) == 8
    assert "Only the newest 8 are shown." in reply.text


def test_search_needs_words_and_says_if_it_finds_nothing(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "hello")
    for empty in ("/search", "/search ...", '/search ""'):
        assert "`/search words`" in chat.expect_error(dm(), empty)
    assert chat.run(dm(), "/search Porto").text == "No messages found for “Porto”."


# ---- /export -----------------------------------------------------------------------------------------------


def test_export_sends_a_short_conversation_to_a_chat_as_markdown(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello *you*", "hi")
    chat.store.append_to_transcript(
        recorded.session_id,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": "sky"}'}}],
            },
            {"role": "tool", "content": "blue ``` sky", "tool_call_id": "c", "tool_name": "look"},
            {"role": "user", "content": [{"type": "text", "text": "and this?"}, {"type": "image", "url": "x"}]},
        ],
    )
    text = chat.run(dm(), "/export").text
    assert text.startswith(f"# hello you\n\n- id: {recorded.session_id}\n")
    assert "## Ada, 2026-11-15 08:12 UTC\n\nhello *you*" in text
    assert "## agent, 2026-11-15 08:12 UTC\n\nhi" in text
    assert '→ look({"at": "sky"})' in text
    assert "````\nblue ``` sky\n````" in text
    assert "and this?\n\n[image]" in text


@pytest.mark.parametrize("form", ["", "json", "md"])
def test_export_names_another_way_if_a_chat_is_not_suited(chat: Chat, dm: Source, form: str) -> None:
    recorded = chat.add_messages(dm(), "x" * 4000, "hi")
    reply = chat.run(dm(), f"/export {form}")
    assert f"`palaver sessions export {recorded.session_id}`" in reply.text
    assert "2 messages" in reply.text
    assert not {"document", "text"} & reply.data.keys()


def test_export_does_not_send_many_messages_to_a_chat(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), *("x" for _ in range(101)))
    assert "too long to send here: **x**, 101 messages." in chat.run(dm(), "/export").text


@pytest.mark.parametrize("label", ["JSON", "Markdown"])
def test_export_puts_the_document_into_the_data(chat: Chat, label: str) -> None:
    source = SessionSource.local_cli()
    recorded = chat.add_messages(source, "x" * 4000, "hi")
    reply = chat.run(source, f"/export {label}")
    assert f"Exported as {label}" in reply.text
    assert json.loads(json.dumps(reply.data)) == reply.data
    if label == "JSON":
        assert reply.data["document"] == chat.store.export(recorded.session_id)
        assert "text" not in reply.data
    else:
        assert "x" * 4000 in reply.data["text"]
        assert "document" not in reply.data


def test_export_includes_reasoning_and_leaves_out_undone_messages(chat: Chat) -> None:
    source = SessionSource.local_cli()
    recorded = chat.add_messages(source, "one", "1", "two")
    chat.store.append_to_transcript(
        recorded.session_id, {"role": "assistant", "content": "2", "reasoning": "let me\n\nsee"}
    )
    assert "> let me\n>\n> see\n\n2" in chat.run(source, "/export").data["text"]
    chat.run(source, "/undo")
    text = chat.run(source, "/export").data["text"]
    assert "one" in text
    assert "two" not in text


def test_export_rejects_an_empty_conversation_and_unknown_formats(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/export")
    chat.add_messages(dm(), "hello")
    assert "`/export jsonl`" in chat.expect_error(dm(), "/export pdf")


@pytest.mark.parametrize("export_format", ["html", "jsonl", "markdown", "json"])
def test_export_names_the_download_where_people_read_the_conversation_itself(chat: Chat, export_format: str) -> None:
    source = SessionSource.local_cli()
    recorded = chat.add_messages(source, "hello", "hi")
    data = chat.run(source, f"/export {export_format}").data
    assert data["download"] == f"api/sessions/{recorded.session_id}/export?format={export_format}"


# ---- all of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        *("/sessions", "/sessions a", "/why", "/usage", "/status", "/export", "/export json", "/export html"),
        *("/resume", "/title"),
        *("/queue", "/model", "/busy", "/help", "/help undo"),
    ],
)
def test_reading_commands_change_nothing(chat: Chat, dm: Source, command: str) -> None:
    chat.add_messages(dm(), *"abcdef")
    before = chat.dump_tables()
    chat.run(dm(), command)
    assert chat.dump_tables() == before


def test_a_reading_action_cannot_write(chat: Chat, dm: Source) -> None:
    def rename(context: CommandContext) -> CommandReply:
        row = context.require_session()
        sessions.rename(context.tx, row, "Renamed", context.now_micros, context.person_id)
        return CommandReply(text="Renamed.")

    chat.add_messages(dm(), "hello")
    with pytest.raises(StoreReadOnly):
        chat.run_call(dm(), CommandAction("title", rename, reads=True).call())
    assert chat.get_session(dm()).title is None
    chat.run_call(dm(), CommandAction("title", rename).call())
    assert chat.get_session(dm()).title == "Renamed"


@pytest.mark.parametrize("name", ["why", "usage", "status"])
def test_commands_without_arguments_reject_them(chat: Chat, dm: Source, name: str) -> None:
    chat.add_messages(dm(), "hello")
    assert f"`/{name}` doesn't take arguments" in chat.expect_error(dm(), f"/{name} now")


# ---- filters -----------------------------------------------------------------------------------------------


def test_searches_and_lists_take_filters(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm(), "night train to lisbon", "the train leaves at nine")
    assert len(chat.run(dm(), "/search train role:assistant platform:telegram").data["hits"]) == 1
    assert len(chat.run(dm(), "/search train -lisbon after:2026-01-01").data["hits"]) == 1
    assert chat.run(dm(), "/search train before:2026-01-01").data["hits"] == []
    assert "No messages found" in chat.run(dm(), "/search train platform:slack").text
    assert len(chat.run(dm(), "/sessions train platform:telegram after:2026-01-01").data["sessions"]) == 1
    assert len(chat.run(dm(), "/sessions platform:telegram").data["sessions"]) == 1
    assert chat.run(dm(), "/sessions -train").data["sessions"] == []
    assert chat.run(dm(), "/sessions train before:2026-01-01").data["sessions"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/search role:user", "What are you looking for"),
        ("/search train role:boss", "user, assistant, tool"),
        ("/search train after:tomorrow", "2026-01-31"),
        ("/sessions role:user", "only works with `/search`"),
        ("/search train project:nowhere", "nowhere"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(chat: Chat, dm: Source, text: str, expected: str) -> None:
    chat.add_messages(dm(), "hello")
    assert expected in chat.expect_error(dm(), text)


def test_filters_find_nothing_of_other_people(chat: Chat, dm: Source) -> None:
    chat.add_messages(dm("bob"), "secret train")
    chat.add_messages(dm(), "hello")
    for filters in ("platform:telegram", "role:user", "after:2020-01-01", "before:2090-01-01", "-x"):
        assert chat.run(dm(), f"/search train {filters}").data["hits"] == []
        if not filters.startswith("role"):
            assert "secret" not in chat.run(dm(), f"/sessions {filters}").text
