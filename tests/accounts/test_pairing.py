"""Strangers ask for access; owners approve or deny it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.accounts import pairing
from palaver.accounts.people import People
from palaver.core.operation import BlockingRunner
from palaver.people.model import Role
from palaver.people.pairing_table import CODE_ALPHABET, MAX_PENDING_REQUESTS, generate_code, parse_code
from palaver.sessions.inbound import Outcome
from support.people import Town, chat, find_code, group

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.testing import FakeClock


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


@pytest.fixture
async def owner(town: Town) -> Town:
    await town.add_person(chat("olga"), Role.OWNER)
    return town


OLGA, ADA, BOB = chat("olga"), chat("ada"), chat("bob")


# ---- codes -------------------------------------------------------------------------------------------------


def test_a_code_has_no_look_alikes_and_may_be_typed_in_any_way() -> None:
    code = generate_code()
    assert not set("ILO01") & set(CODE_ALPHABET)
    assert len(code) == 9
    assert parse_code(code) == parse_code(f" {code.lower().replace('-', ' ')} ") == parse_code(code.replace("-", ""))
    assert [parse_code(text) for text in ("", "ABCD", "ABCD-EFG0", "ABCD-EFGHJ", "A" * 500)] == [None] * 5


# ---- strangers ---------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_stranger_gets_a_code_and_is_not_stored_as_a_person(town: Town) -> None:
    receipt = await town.send(ADA, "my secret is xylophone")
    assert receipt.outcome is Outcome.REJECTED
    code = find_code(receipt.reply)
    assert await town.get_told(ADA) == [receipt.reply]
    assert await town.find_person(ADA) is None
    [(digest,)] = await town.rows("SELECT digest FROM pairing_request")
    assert digest not in {code, code.replace("-", "")}
    for table in ("pairing_request", "inbound_message", "event", "person", "delivery"):
        assert "xylophone" not in repr(await town.rows(f"SELECT * FROM {table}"))
    assert code not in repr(await town.rows("SELECT * FROM inbound_message"))


async def test_a_stranger_who_writes_again_is_told_so_and_gets_a_new_code_later(town: Town, clock: FakeClock) -> None:
    first = find_code(await town.ask(ADA, "hello"))
    assert "already sent" in await town.ask(ADA, "hello?")
    clock.advance(minutes=11)
    second = find_code(await town.ask(ADA, "hello?"))
    assert first != second
    await town.add_person(OLGA, Role.OWNER)
    assert "isn't valid" in await town.ask(OLGA, f"/pair {first} member")
    assert "is a member now" in await town.ask(OLGA, f"/pair {second} member")


async def test_the_same_message_twice_is_one_request(town: Town) -> None:
    await town.send(ADA, "hello", message_id="x1")
    assert (await town.send(ADA, "hello", message_id="x1")).outcome is Outcome.DUPLICATE
    assert len(await town.get_told(ADA)) == 1


async def test_a_flood_of_a_stranger_is_answered_a_few_times_only(town: Town, clock: FakeClock) -> None:
    replies = [await town.ask(ADA, "hello") for _ in range(20)]
    assert len([reply for reply in replies if reply]) < 8
    clock.advance(minutes=30)
    assert find_code(await town.ask(ADA, "hello"))


async def test_few_requests_are_pending_at_once(town: Town, clock: FakeClock) -> None:
    for number in range(MAX_PENDING_REQUESTS):
        assert find_code(await town.ask(chat(f"stranger{number}"), "hello"))
    assert await town.ask(ADA, "hello") == pairing.TOO_MANY_TEXT
    clock.advance(hours=1)
    assert find_code(await town.ask(ADA, "hello"))


async def test_groups_and_programs_get_no_answer(town: Town) -> None:
    assert (await town.send(group("ada"), "hello")).reply is None
    assert (await town.send(ADA, "hello", is_from_bot=True)).reply is None
    assert await town.rows("SELECT * FROM pairing_request") == []
    assert await town.rows("SELECT * FROM delivery") == []


async def test_a_strangers_commands_do_nothing(town: Town) -> None:
    for text in ("/status", "/new", "/help", "/whoami", "/link", "/pair", "/search x", "/steer x"):
        assert (await town.send(ADA, text)).outcome is Outcome.REJECTED
    assert await town.find_person(ADA) is None


# ---- owners ------------------------------------------------------------------------------------------------


async def test_a_member_may_speak_everywhere(owner: Town) -> None:
    code = find_code(await owner.ask(ADA, "hello"))
    assert "Ada (Telegram, ada)" in await owner.ask(OLGA, "/pair")
    assert code not in await owner.ask(OLGA, "/pair")
    assert "asks for access" in await owner.ask(OLGA, f"/pair {code.lower()}")
    reply = await owner.ask(OLGA, f"/pair {code} member")
    assert reply.startswith("Ada (Telegram, ada) is a member now")
    assert "You now have access as a member." in (await owner.get_told(ADA))[-1]
    assert (await owner.send(ADA, "hello")).is_stored
    assert (await owner.send(group("ada"), "hello")).is_stored
    person = await owner.find_person(ADA)
    assert person is not None
    assert person.role is Role.MEMBER
    assert "There are no requests" in await owner.ask(OLGA, "/pair")


async def test_a_guest_may_speak_only_where_they_asked(owner: Town) -> None:
    code = find_code(await owner.ask(ADA, "hello"))
    await owner.ask(OLGA, f"/pair {code} guest")
    assert (await owner.send(ADA, "hello")).is_stored
    assert not (await owner.send(group("ada"), "hello")).is_stored
    elsewhere = chat("ada", account="work")  # another of our accounts: another chat
    assert not (await owner.send(elsewhere, "hello")).is_stored
    assert (await owner.send(ADA, "/branch x")).outcome is Outcome.REJECTED


async def test_me_links_the_account_to_the_owner(owner: Town) -> None:
    code = find_code(await owner.ask(chat("phone", "matrix"), "hello"))
    await owner.ask(OLGA, f"/pair {code} me")
    linked, olga = await owner.find_person(chat("phone", "matrix")), await owner.find_person(OLGA)
    assert linked == olga
    assert "linked to **Olga**" in (await owner.get_told(chat("phone", "matrix")))[-1]


@pytest.mark.both_engines
async def test_a_denied_stranger_is_told_once_and_gets_no_new_code_for_an_hour(owner: Town, clock: FakeClock) -> None:
    code = find_code(await owner.ask(ADA, "hello"))
    assert "Denied" in await owner.ask(OLGA, f"/pair {code} deny")
    assert (await owner.get_told(ADA))[-1] == pairing.DENIED_TEXT
    clock.advance(minutes=30)
    assert await owner.ask(ADA, "please") == ""
    assert "isn't valid" in await owner.ask(OLGA, f"/pair {code} member")
    clock.advance(minutes=31)
    assert find_code(await owner.ask(ADA, "please"))


async def test_a_code_works_once_and_not_after_an_hour(owner: Town, clock: FakeClock) -> None:
    code = find_code(await owner.ask(ADA, "hello"))
    await owner.ask(OLGA, f"/pair {code} guest")
    assert "isn't valid" in await owner.ask(OLGA, f"/pair {code} member")
    late = find_code(await owner.ask(BOB, "hello"))
    clock.advance(hours=1)
    assert "isn't valid" in await owner.ask(OLGA, f"/pair {late} member")
    assert await owner.find_person(BOB) is None


async def test_attempts_to_use_codes_are_limited(owner: Town, clock: FakeClock) -> None:
    code = find_code(await owner.ask(ADA, "hello"))
    replies = [await owner.ask(OLGA, "/pair ABCD-EFGH member") for _ in range(12)]
    assert replies[0] == pairing.INVALID_PAIRING_CODE_TEXT
    assert replies[-1].startswith("Too many attempts.")
    assert (await owner.ask(OLGA, f"/pair {code} member")).startswith("Too many attempts.")
    clock.advance(minutes=2)
    assert "is a member now" in await owner.ask(OLGA, f"/pair {code} member")


async def test_only_owners_pair(owner: Town) -> None:
    await owner.add_person(BOB, Role.MEMBER)
    code = find_code(await owner.ask(ADA, "hello"))
    for text in ("/pair", f"/pair {code} member", "/pair group"):
        assert (await owner.ask(BOB, text)).startswith("Only an owner can use /pair.")
    assert await owner.find_person(ADA) is None


@pytest.mark.both_engines
async def test_an_owner_lets_a_group_speak_as_guests(owner: Town) -> None:
    assert "only works in a group" in await owner.ask(OLGA, "/pair group")
    assert "direct message" in await owner.ask(group("olga"), "/pair")
    assert "Everybody in this group" in await owner.ask(group("olga"), "/pair group")
    assert (await owner.send(group("ada"), "hello")).is_stored
    assert not (await owner.send(group("ada", "other"), "hello")).is_stored
    assert find_code(await owner.ask(ADA, "hello"))  # a group is not a direct message
    person = await owner.find_person(ADA)
    assert person is not None
    assert person.role is Role.GUEST
    await owner.ask(group("olga"), "/pair group off")
    assert not (await owner.send(group("ada"), "hello")).is_stored


async def test_an_approval_that_fails_leaves_everything_as_it_was(owner: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    code = find_code(await owner.ask(ADA, "hello"))

    def fail(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(pairing, "send_notice", fail)
    with pytest.raises(RuntimeError):
        await owner.send(OLGA, f"/pair {code} member")
    assert await owner.find_person(ADA) is None
    monkeypatch.undo()
    assert "is a member now" in await owner.ask(OLGA, f"/pair {code} member")


@pytest.mark.both_engines
async def test_expired_requests_are_deleted(town: Town, clock: FakeClock) -> None:
    await town.send(ADA, "hello")
    clock.advance(seconds=timedelta(hours=1).total_seconds())
    await town.send(BOB, "hello")
    assert [account for (account,) in await town.rows("SELECT account FROM pairing_request")] == ["bob"]


# ---- channels ----------------------------------------------------------------------------------------------


def channel(name: str = "News", chat_id: str = "-1005550001111", author: str = "Ada") -> SessionSource:
    """Return a post in a channel, which the channel itself writes; a signature names its author."""
    user_name = f"{name} ({author})" if author else name
    return SessionSource("telegram", chat_id, chat_name=name, chat_type="channel", user_id=chat_id, user_name=user_name)


@pytest.mark.both_engines
async def test_a_channel_is_opened_with_the_code_that_pair_posts_there(owner: Town) -> None:
    news, other = channel(), channel("Other", "-1005550002222")
    assert (await owner.send(news, "hello", is_addressed=True)).reply is None
    assert await owner.rows("SELECT id FROM pairing_request") == []
    code = find_code(await owner.ask(news, "/pair", is_addressed=True))
    assert "News (Telegram, -1005550001111) is a channel" in await owner.ask(OLGA, f"/pair {code}")
    assert "talk to me there now, as a guest" in await owner.ask(OLGA, f"/pair {code} guest")
    assert "Mention me in a post" in (await owner.get_told(news))[-1]
    person = await owner.find_person(news)
    assert person is not None
    assert (person.name, person.role) == ("News", Role.GUEST)
    assert (await owner.send(channel(author="Ben"), "hello", is_addressed=True)).outcome is Outcome.ACCEPTED
    # Nothing else is open: another channel, a group in which a person writes as the channel, and what owners do.
    assert (await owner.send(other, "hello", is_addressed=True)).reply is None
    in_group = SessionSource("telegram", "club", chat_type="group", user_id=news.chat_id, user_name="News")
    assert (await owner.send(in_group, "hello", is_addressed=True)).outcome is Outcome.REJECTED
    assert (await owner.send(news, "/pair", is_addressed=True)).outcome is Outcome.REJECTED


async def test_a_channel_is_never_more_than_a_guest(owner: Town) -> None:
    code = find_code(await owner.ask(channel(), "/pair group", is_addressed=True))
    for answer in ("member", "me"):
        assert "can only be a guest" in await owner.ask(OLGA, f"/pair {code} {answer}")
    assert await owner.find_person(channel()) is None
    assert "isn't valid" in await owner.ask(chat("mallory", platform="matrix"), f"/link {code}")
    assert "is a channel" in await owner.ask(OLGA, f"/pair {code}"), "the code still works"


async def test_a_channel_asks_once_and_is_told_that_it_was_denied(owner: Town, clock: FakeClock) -> None:
    code = find_code(await owner.ask(channel(), "/pair", is_addressed=True))
    assert "already sent" in await owner.ask(channel(), "/pair", is_addressed=True)
    await owner.send(OLGA, f"/pair {code} deny")
    assert (await owner.get_told(channel()))[-1] == str(pairing.DENIED_TEXT)
    clock.advance(minutes=20)
    assert (await owner.send(channel(), "/pair", is_addressed=True)).reply is None


@pytest.mark.parametrize("text", ["/help", "/link ABCD-EFGH", "/pair", "hello"])
async def test_who_writes_in_a_group_or_a_channel_of_others_gets_no_code(owner: Town, text: str) -> None:
    sources = [group("ada")]
    sources.append(SessionSource("discord", "C1", chat_type="channel", user_id="ada", user_name="Ada"))
    if text != "/pair":
        sources.append(channel())
    for source in sources:
        assert (await owner.send(source, text, is_addressed=True)).reply is None
    assert await owner.rows("SELECT id FROM pairing_request") == []


async def test_an_owner_closes_a_channel_again(owner: Town) -> None:
    code = find_code(await owner.ask(channel(), "/pair", is_addressed=True))
    await owner.send(OLGA, f"/pair {code} guest")
    person = await owner.find_person(channel())
    assert person is not None
    store = owner.store
    People(BlockingRunner(store.engine), store, store.get_owner().principal).remove(person.id)
    assert (await owner.send(channel(), "hello", is_addressed=True)).outcome is Outcome.REJECTED
