"""/jobs in chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import Role
from palaver.commands.command import CommandCall
from palaver.inbox.registry import parse_command
from palaver.people import table as people

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver import SessionSource

    MakeSource = Callable[..., SessionSource]


@pytest.fixture
def ada(chat: Chat, dm: MakeSource) -> SessionSource:
    return add_member(chat, dm("ada"))


def add_member(chat: Chat, source: SessionSource) -> SessionSource:
    person = chat.register(source)
    chat.write(lambda tx: people.set_role(tx, person.id, Role.MEMBER))
    chat.write(lambda tx: people.remember_dm_source(tx, source, None))
    return source


def parse(text: str) -> dict[str, Any]:
    call = parse_command(text)
    assert isinstance(call, CommandCall)
    return dict(call.arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every 2h: Look: new mail?", {"schedule": "every 2h", "prompt": "Look: new mail?", "name": None}),
        ("2026-12-24 18:00: Call", {"schedule": "2026-12-24 18:00", "prompt": "Call", "name": None}),
        ('"My job" 0 7 * * MON: Do\nit', {"schedule": "0 7 * * MON", "prompt": "Do\nit", "name": "My job"}),
    ],
)
def test_a_job_is_added_with_its_schedule_before_the_colon(text: str, expected: dict[str, Any]) -> None:
    assert parse(f"/jobs add {text}") == expected


def test_a_job_is_named_with_and_without_quotes() -> None:
    edited = {"job": "My job", "field": "schedule", "value": "every 3h", "everything": False}
    assert parse("/jobs edit My job schedule every 3h") == edited
    assert parse('/jobs edit "My job" schedule every 3h') == edited
    assert parse("/jobs show My  job") == {"job": "My job", "everything": False}
    for quoted in ('"Bob\'s job"', "'Bob's job'", "“Bob's job”", "„Bob's job“", "«Bob's job»", "‘Bob's job’"):
        assert parse(f"/jobs show {quoted}") == {"job": "Bob's job", "everything": False}
        assert parse(f"/jobs add {quoted} every 2h: 'x' y")["name"] == "Bob's job"
        assert parse(f"/jobs edit {quoted} schedule every 3h")["job"] == "Bob's job"
    assert parse("/jobs show “My job” everything") == {"job": "My job", "everything": True}
    for named in ('"My job" everything', "My job everything"):
        assert parse(f"/jobs edit {named} schedule every 3h") == edited | {"everything": True}


def test_a_job_is_added_and_told_back_in_words(chat: Chat, ada: SessionSource) -> None:
    reply = chat.run(ada, '/jobs add "*Plants*" 0 7 * * MON-FRI: Water them')
    assert "\\*Plants\\*" in reply.text
    assert "every weekday at 07:00 (UTC)" in reply.text
    assert reply.text.count(" 07:00, ") == 2
    assert "per day (a rough estimate)" in reply.text
    assert "Telegram “Ada”" in reply.text
    assert "**Tools**: history, memory" in reply.text
    assert "active" in chat.run(ada, "/jobs").text
    assert "already have a job" in chat.expect_error(ada, '/jobs add "*plants*" every 2h: again')


def test_every_verb_in_turn(chat: Chat, ada: SessionSource) -> None:
    chat.run(ada, "/jobs add every 2h: Water the plants")
    name = "water the plants"
    assert "Paused" in chat.run(ada, f"/jobs pause {name}").text
    assert "every 2 hours" in chat.run(ada, f"/jobs resume {name}").text
    assert "every 3 hours" in chat.run(ada, f"/jobs edit {name} schedule every 3h").text
    assert "**Tools**: none" in chat.run(ada, f"/jobs edit {name} tools none").text
    assert "4 more times" in chat.run(ada, f"/jobs edit {name} repeat 4").text
    assert "unknown (the price of large" in chat.run(ada, f"/jobs edit {name} model large").text
    assert "number up to" in chat.expect_error(ada, f"/jobs edit {name} repeat often")
    assert "has not run yet" in chat.run(ada, f"/jobs history {name}").text
    assert "Telegram “Ada”" in chat.run(ada, f"/jobs run {name}").text
    assert "Run: queued, started manually" in chat.run(ada, f"/jobs history {name}").text
    assert "already running" in chat.expect_error(ada, f"/jobs run {name}")
    assert "The agent has proposed nothing" in chat.expect_error(ada, f"/jobs confirm {name}")
    assert "Deleted" in chat.run(ada, f"/jobs remove {name}").text
    assert "No jobs yet" in chat.run(ada, "/jobs").text


@pytest.mark.parametrize(
    "text", ["add", "add every 2h", "add every 2h:", "add : x", "edit x", "edit x color red", "show", "dance", "list x"]
)
def test_arguments_that_do_not_fit_are_explained(chat: Chat, ada: SessionSource, text: str) -> None:
    assert "/jobs" in chat.expect_error(ada, f"/jobs {text}")


def test_another_persons_job_looks_like_a_missing_one(chat: Chat, ada: SessionSource, dm: MakeSource) -> None:
    job_id = chat.run(ada, '/jobs add "Secret" every 2h: xylophone').data["job"]["id"]
    bob = add_member(chat, dm("bob"))
    for verb in ("show", "pause", "resume", "run", "remove", "history", "confirm", "reject"):
        for name in (job_id, "Secret"):
            hidden = chat.expect_error(bob, f"/jobs {verb} {name}")
            assert hidden == chat.expect_error(bob, f"/jobs {verb} j_00000000").replace("j_00000000", name)
        assert "Only an owner" in chat.expect_error(bob, f"/jobs {verb} {job_id} everything")
    assert "xylophone" not in chat.run(bob, "/jobs").text
    assert "Only an owner" in chat.expect_error(bob, "/jobs everything")
    assert "Secret" in chat.run(bob, "/jobs everything", role=Role.OWNER).text


def test_in_a_group_private_jobs_are_not_shown(chat: Chat, group: MakeSource) -> None:
    ada = add_member(chat, group("ada"))
    dm_source = type(ada)("discord", "with-ada", user_id="ada", user_name="Ada")
    chat.write(lambda tx: people.remember_dm_source(tx, dm_source, None))
    chat.run(dm_source, '/jobs add "Secret" every 2h: xylophone')
    assert "Secret" not in chat.run(ada, "/jobs").text
    assert "not found" in chat.expect_error(ada, "/jobs show Secret")
    assert "Secret" in chat.run(dm_source, "/jobs").text


def test_guests_have_no_jobs(chat: Chat, dm: MakeSource) -> None:
    assert "Guests can't use /jobs" in chat.expect_error(dm("gus"), "/jobs add every 2h: x", role=Role.GUEST)


def test_a_person_sets_their_own_time_zone(chat: Chat, ada: SessionSource) -> None:
    assert "UTC (the server's)" in chat.run(ada, "/jobs timezone").text
    assert "Europe/Berlin" in chat.expect_error(ada, "/jobs timezone Europe/Berlni")
    assert "Europe/Berlin now" in chat.run(ada, "/jobs timezone europe/berlin").text
    assert "(Europe/Berlin)" in chat.run(ada, "/jobs add 0 7 * * *: x").text
    assert "UTC now" in chat.run(ada, "/jobs timezone default").text
