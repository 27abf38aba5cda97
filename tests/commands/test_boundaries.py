"""Two people on one gateway, and shared chats: no command reveals a conversation to people without access to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.core.errors import PalaverError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat

    Source = Callable[..., SessionSource]
    OpenChat = Callable[[GatewayConfig], Chat]

SHARED = GatewayConfig(group_sessions_per_user=False)
MISSING_ID = "20200101_000000_00000000"
NO_ACCESS = "You don't have access to the conversation here. Use /new to start your own."


@pytest.fixture
def secret(chat: Chat, dm: Source) -> str:
    """The id of a conversation of Ada's that Bob must not learn about; Bob has one of his own."""
    chat.run(dm("ada"), "/new Divorce")
    recorded = chat.add_messages(dm("ada"), "the lawyer is called Smith", "Noted.")
    chat.run(dm("bob"), "/new Gardening")
    chat.add_messages(dm("bob"), "roses", "Nice.")
    return recorded.session_id


def run_and_get_text(chat: Chat, source: SessionSource, text: str) -> str:
    """Return the reply of a command, or the message of its error."""
    try:
        return chat.run(source, text).text
    except PalaverError as error:
        return str(error)


@pytest.mark.parametrize(
    ("command", "adas_words", "missing_words"),
    [
        ("/resume {}", "Divorce", "Nothing"),
        ("/resume {}", "Divorce #1", "Nothing #1"),
        ("/sessions {}", "Divorce", "Nothing"),
        ("/sessions {}", "lawyer", "plumber"),
        ("/search {}", "lawyer", "plumber"),
        ("/search {}", "Smith", "Jones"),
    ],
)
def test_other_peoples_conversations_look_like_missing_ones(
    chat: Chat, dm: Source, secret: str, command: str, adas_words: str, missing_words: str
) -> None:
    assert secret
    about_adas = run_and_get_text(chat, dm("bob"), command.format(adas_words))
    about_missing = run_and_get_text(chat, dm("bob"), command.format(missing_words))
    assert about_adas.replace(adas_words, "?") == about_missing.replace(missing_words, "?")


@pytest.mark.parametrize("length", [24, 23, 20])
def test_ids_of_other_people_look_like_missing_ids(chat: Chat, dm: Source, secret: str, length: int) -> None:
    about_adas = run_and_get_text(chat, dm("bob"), f"/resume {secret[:length]}")
    about_missing = run_and_get_text(chat, dm("bob"), f"/resume {MISSING_ID[:length]}")
    assert about_adas.replace(secret[:length], "?") == about_missing.replace(MISSING_ID[:length], "?")


@pytest.mark.parametrize(
    "command",
    ["/resume", "/sessions", "/search called", "/search is", "/export", "/export json", "/why", "/status", "/usage"],
)
def test_no_reply_contains_anything_of_another_person(chat: Chat, dm: Source, secret: str, command: str) -> None:
    reply = chat.run(dm("bob"), command)
    for text in ("Divorce", "lawyer", "Smith", "Noted", secret):
        assert text not in f"{reply.text} {reply.data}"


def test_two_people_can_use_the_same_title(chat: Chat, dm: Source, secret: str) -> None:
    chat.run(dm("bob"), "/title Divorce")
    assert chat.get_session(dm("bob")).title == "Divorce"
    assert chat.run(dm("bob"), "/new Divorce #2").session_id != secret


def test_commands_cannot_be_run_in_a_conversation_of_another_person(chat: Chat, dm: Source, secret: str) -> None:
    for command in ("/export", "/undo", "/title mine", "/branch", "/compress", "/stop", "/model large"):
        assert "not found" in chat.expect_error(dm("bob"), command, session_id=secret)


# ---- shared chats ------------------------------------------------------------------------------------------


def direct(user: str) -> SessionSource:
    """Direct messages of a member of the club."""
    return SessionSource("discord", f"with-{user}", user_id=user, user_name=user.title())


@pytest.fixture
def shared(open_chat: OpenChat, group: Source) -> Chat:
    """Ada keeps a diary and chats with Bob in a club; Eve has written nothing."""
    chat = open_chat(SHARED)
    chat.run(direct("ada"), "/new Diary")
    chat.add_messages(direct("ada"), "I dislike roses", "Noted.")
    chat.add_messages(group("ada"), "hello all", "Hello!")
    chat.run(group("ada"), "/title Club matters")
    chat.add_messages(group("bob"), "hello Ada")
    return chat


@pytest.mark.parametrize("command", ["/sessions", "/resume", "/search roses", "/sessions diary", "/export json"])
def test_commands_in_a_shared_chat_show_nothing_private(shared: Chat, group: Source, command: str) -> None:
    reply = shared.run(group("ada"), command)
    for private in ("Diary", "dislike", "Noted"):
        assert private not in f"{reply.text} {reply.data}"


def test_private_conversations_cannot_be_resumed_in_a_shared_chat(shared: Chat, group: Source) -> None:
    diary = shared.get_session(direct("ada")).id
    for target in ("Diary", diary, diary[:20] + "?"):
        assert "No conversation here matches" in shared.expect_error(group("ada"), f"/resume {target}")
    assert shared.run(direct("ada"), "/resume Club matters").session_id == shared.get_session(group()).id
    assert shared.run(direct("ada"), "/resume Diary").session_id == diary


def test_conversations_of_a_shared_chat_are_found_there(shared: Chat, group: Source) -> None:
    old = shared.get_session(group()).id
    shared.run(group("bob"), "/new")
    shared.add_messages(group("bob"), "something new")
    assert [each["id"] for each in shared.run(group("ada"), "/resume").data["sessions"]] == [old]
    assert len(shared.run(group("ada"), "/search hello").data["hits"]) == 3
    assert shared.run(group("ada"), "/resume club matters").session_id == old


def test_the_last_exchange_names_its_author(shared: Chat, group: Source) -> None:
    shared.run(group("bob"), "/new")
    shared.add_messages(group("bob"), "something new")
    assert "> “Bob”: “hello Ada”" in shared.run(group("ada"), "/resume 1").text


def test_a_branch_in_a_shared_chat_belongs_to_everyone_there(shared: Chat, group: Source) -> None:
    shared.run(group("ada"), "/branch")
    branch = shared.get_session(group())
    assert branch.shared
    assert branch.title == "Club matters #2"
    shared.add_messages(group("bob"), "I am still here")
    assert shared.run(group("bob"), "/undo").data["prompt"] == "I am still here"


def test_a_branch_of_a_shared_conversation_in_direct_messages_is_private(shared: Chat) -> None:
    shared.run(direct("ada"), "/resume Club matters")
    shared.run(direct("ada"), "/branch Mine")
    assert not shared.get_session(direct("ada")).shared


def test_retry_keeps_the_author_and_runs_for_the_person_who_asked(shared: Chat, group: Source) -> None:
    session_id = shared.get_session(group()).id
    shared.run(group("ada"), "/retry")
    assert shared.store.load_transcript(session_id)[-1]["author"] == {"id": "bob", "name": "Bob"}
    assert shared.load_events(session_id)[-1].person_id == shared.store.get_or_create_person(group("bob")).id
    (turn,) = shared.list_open_turns(session_id)
    assert turn.person_id == shared.store.get_or_create_person(group("ada")).id


SESSION_COMMANDS = [
    "/title",
    "/title x",
    "/undo",
    "/redo",
    "/retry",
    "/why",
    "/branch",
    "/compress",
    "/usage",
    "/status",
    "/export",
]


@pytest.mark.parametrize("command", [*SESSION_COMMANDS, "/stop", "/queue", "/model large", "/busy reject"])
def test_people_without_access_cannot_run_commands_in_a_conversation(shared: Chat, group: Source, command: str) -> None:
    text = shared.expect_error(group("eve"), command)
    assert text == NO_ACCESS


@pytest.mark.parametrize("command", SESSION_COMMANDS)
def test_a_private_conversation_on_a_shared_lane_stays_private(shared: Chat, group: Source, command: str) -> None:
    key = shared.config.build_session_key(group())
    shared.store.switch_session(key, shared.get_session(direct("ada")).id)
    for user in ("ada", "bob"):
        assert shared.expect_error(group(user), command) == NO_ACCESS


def test_restore_does_not_bring_a_private_conversation_into_a_shared_chat(shared: Chat, group: Source) -> None:
    key = shared.config.build_session_key(group())
    shared.store.switch_session(key, shared.get_session(direct("ada")).id)
    reply = shared.run(group("bob"), "/new")
    assert "Diary" not in reply.text
    assert "Noted" not in reply.text
    assert "no earlier conversation" in shared.expect_error(group("bob"), "/restore")


def test_a_new_conversation_in_a_shared_chat_belongs_to_everyone_there(shared: Chat, group: Source) -> None:
    shared.run(group("ada"), "/new Picnic")
    assert shared.get_session(group()).shared
    assert "**Picnic**" in shared.run(group("bob"), "/title").text
