"""Two people on one gateway, and places that several share: no command tells of what is not one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.domain.errors import PalaverError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat

    Source = Callable[..., SessionSource]
    OpenChat = Callable[[GatewayConfig], Chat]

SHARED = GatewayConfig(group_sessions_per_user=False)
NOBODYS = "20200101_000000_00000000"


@pytest.fixture
def secret(chat: Chat, dm: Source) -> str:
    """Ada has a conversation that Bob must not know of; Bob has one of his own."""
    chat(dm("ada"), "/new Divorce")
    said = chat.say(dm("ada"), "the lawyer is called Smith", "Noted.")
    chat(dm("bob"), "/new Gardening")
    chat.say(dm("bob"), "roses", "Nice.")
    return said.session_id


def answer(chat: Chat, source: SessionSource, text: str) -> str:
    try:
        return chat(source, text).text
    except PalaverError as error:
        return str(error)


@pytest.mark.parametrize(
    ("command", "hers", "nobodys"),
    [
        ("/resume {}", "Divorce", "Nothing"),
        ("/resume {}", "Divorce #1", "Nothing #1"),
        ("/sessions {}", "Divorce", "Nothing"),
        ("/sessions {}", "lawyer", "nobody"),
        ("/search {}", "lawyer", "nobody"),
        ("/search {}", "Smith", "Jones"),
    ],
)
def test_what_is_somebody_elses_is_answered_like_what_does_not_exist(
    chat: Chat, dm: Source, secret: str, command: str, hers: str, nobodys: str
) -> None:
    assert secret
    of_hers = answer(chat, dm("bob"), command.format(hers))
    of_nobodys = answer(chat, dm("bob"), command.format(nobodys))
    assert of_hers.replace(hers, "?") == of_nobodys.replace(nobodys, "?")


@pytest.mark.parametrize("part", [24, 23, 20])
def test_ids_of_others_are_answered_like_ids_of_nobody(chat: Chat, dm: Source, secret: str, part: int) -> None:
    of_hers = answer(chat, dm("bob"), f"/resume {secret[:part]}")
    of_nobodys = answer(chat, dm("bob"), f"/resume {NOBODYS[:part]}")
    assert of_hers.replace(secret[:part], "?") == of_nobodys.replace(NOBODYS[:part], "?")


@pytest.mark.parametrize(
    "command",
    ["/resume", "/sessions", "/search called", "/search is", "/export", "/export json", "/why", "/status", "/usage"],
)
def test_no_answer_holds_anything_of_somebody_else(chat: Chat, dm: Source, secret: str, command: str) -> None:
    reply = chat(dm("bob"), command)
    for hers in ("Divorce", "lawyer", "Smith", "Noted", secret):
        assert hers not in f"{reply.text} {reply.facts}"


def test_titles_of_others_do_not_stand_in_the_way(chat: Chat, dm: Source, secret: str) -> None:
    chat(dm("bob"), "/title Divorce")
    assert chat.here(dm("bob")).title == "Divorce"
    assert chat(dm("bob"), "/new Divorce #2").session_id != secret


def test_a_conversation_of_somebody_else_cannot_be_shown(chat: Chat, dm: Source, secret: str) -> None:
    for command in ("/export", "/undo", "/title mine", "/branch", "/compress", "/stop", "/model large"):
        assert "there is no session" in chat.refused(dm("bob"), command, shown=secret)


# ---- shared places -----------------------------------------------------------------------------------------


def home(user: str) -> SessionSource:
    """Where somebody who is in the club speaks alone."""
    return SessionSource("discord", f"with-{user}", user_id=user, user_name=user.title())


@pytest.fixture
def shared(open_chat: OpenChat, group: Source) -> Chat:
    """Ada has a diary of her own, and speaks with Bob in a club; Eve has spoken nowhere."""
    chat = open_chat(SHARED)
    chat(home("ada"), "/new Diary")
    chat.say(home("ada"), "I dislike roses", "Noted.")
    chat.say(group("ada"), "hello all", "Hello!")
    chat(group("ada"), "/title Club matters")
    chat.say(group("bob"), "hello Ada")
    return chat


@pytest.mark.parametrize("command", ["/sessions", "/resume", "/search roses", "/sessions diary", "/export json"])
def test_in_a_shared_place_nothing_private_is_told(shared: Chat, group: Source, command: str) -> None:
    reply = shared(group("ada"), command)
    for private in ("Diary", "dislike", "Noted"):
        assert private not in f"{reply.text} {reply.facts}"


def test_in_a_shared_place_nothing_private_is_resumed(shared: Chat, group: Source) -> None:
    diary = shared.here(home("ada")).id
    for named in ("Diary", diary, diary[:20] + "?"):
        assert "None of your conversations here" in shared.refused(group("ada"), f"/resume {named}")
    assert shared(home("ada"), "/resume Club matters").session_id == shared.here(group()).id
    assert shared(home("ada"), "/resume Diary").session_id == diary


def test_conversations_of_the_place_are_found_in_it(shared: Chat, group: Source) -> None:
    old = shared.here(group()).id
    shared(group("bob"), "/new")
    shared.say(group("bob"), "something new")
    assert [each["id"] for each in shared(group("ada"), "/resume").facts["sessions"]] == [old]
    assert len(shared(group("ada"), "/search hello").facts["hits"]) == 3
    assert shared(group("ada"), "/resume club matters").session_id == old


def test_the_reminder_says_who_spoke(shared: Chat, group: Source) -> None:
    shared(group("bob"), "/new")
    shared.say(group("bob"), "something new")
    assert "> “Bob”: “hello Ada”" in shared(group("ada"), "/resume 1").text


def test_a_branch_in_a_shared_place_belongs_to_all_who_share_it(shared: Chat, group: Source) -> None:
    shared(group("ada"), "/branch")
    branch = shared.here(group())
    assert branch.shared
    assert branch.title == "Club matters #2"
    shared.say(group("bob"), "I am still here")
    assert shared(group("bob"), "/undo").facts["prompt"] == "I am still here"


def test_a_branch_at_home_of_a_shared_conversation_is_ones_own(shared: Chat) -> None:
    shared(home("ada"), "/resume Club matters")
    shared(home("ada"), "/branch Mine")
    assert not shared.here(home("ada")).shared


def test_retry_keeps_the_author_and_runs_for_whoever_asks(shared: Chat, group: Source) -> None:
    session_id = shared.here(group()).id
    shared(group("ada"), "/retry")
    assert shared.store.load_transcript(session_id)[-1]["author"] == {"id": "bob", "name": "Bob"}
    assert shared.log(session_id)[-1].person_id == shared.store.person_for(group("bob")).id
    (turn,) = shared.open_turns(session_id)
    assert turn.person_id == shared.store.person_for(group("ada")).id


INTO = [
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


@pytest.mark.parametrize("command", [*INTO, "/stop", "/queue", "/model large", "/busy reject"])
def test_whoever_may_not_see_a_conversation_cannot_use_commands_on_it(
    shared: Chat, group: Source, command: str
) -> None:
    text = shared.refused(group("eve"), command)
    assert text == "You may not look into the conversation that goes on here. /new begins another."


@pytest.mark.parametrize("command", INTO)
def test_a_private_conversation_that_goes_on_in_a_shared_place_stays_private(
    shared: Chat, group: Source, command: str
) -> None:
    key = shared.config.session_key(group())
    shared.store.switch_session(key, shared.here(home("ada")).id)
    for user in ("ada", "bob"):
        assert "You may not look" in shared.refused(group(user), command)


def test_a_restore_does_not_bring_a_private_conversation_into_a_shared_place(shared: Chat, group: Source) -> None:
    key = shared.config.session_key(group())
    shared.store.switch_session(key, shared.here(home("ada")).id)
    reply = shared(group("bob"), "/new")
    assert "Diary" not in reply.text
    assert "Noted" not in reply.text
    assert "no earlier conversation" in shared.refused(group("bob"), "/restore")


def test_a_new_conversation_in_a_shared_place_is_for_all_who_share_it(shared: Chat, group: Source) -> None:
    shared(group("ada"), "/new Picnic")
    assert shared.here(group()).shared
    assert "**Picnic**" in shared(group("bob"), "/title").text
