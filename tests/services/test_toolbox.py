"""The agent's tools, on somebody's behalf: they find what is theirs, and nothing tells of anybody else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Principal, Role, SessionStore
from palaver.agent.base import Tool, ToolFailed
from palaver.domain.ids import JobId, PersonId
from palaver.domain.profile import ToolsetRule, TurnRules
from palaver.services.turns.tools import Toolbox
from palaver.storage import sessions
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionSource
    from palaver.storage.session_rows import SessionRow
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

SHARED = GatewayConfig(group_sessions_per_user=False)
ALL = {"search_conversations", "read_conversation", "remember", "recall", "forget"}
EVERYBODY = ToolsetRule(roles=frozenset(Role))
OPEN = TurnRules(toolsets={"history": EVERYBODY, "memory": EVERYBODY})


@dataclass
class Desk:
    """Somebody in a conversation, and the tools the agent has for them there."""

    store: SessionStore
    session_id: str
    principal: Principal | None
    rules: TurnRules = OPEN
    input_seq: int | None = None
    off: tuple[str, ...] = ()

    @property
    def found(self) -> SessionRow:
        return self.store._engine.run(Read(lambda tx: sessions.get(tx, self.session_id)))

    @property
    def tools(self) -> dict[str, Tool]:
        toolbox = Toolbox(self.store._engine, self.store._clock, self.rules)
        tools = toolbox.tools_for(self.principal, self.found, self.input_seq, off=self.off)
        return {tool.name: tool for tool in tools}

    async def use(self, name: str, **arguments: Any) -> str:
        return await self.tools[name].run(arguments)

    async def refused(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolFailed) as failed:
            await self.tools[name].run(arguments)
        return str(failed.value)


def desk(store: SessionStore, source: SessionSource, *said: Any, **options: Any) -> Desk:
    recorded = [store.record_user_message(source, each) for each in said or ("hello",)]
    return Desk(store, recorded[-1].session_id, store.person_for(source).principal, **options)


# -- who has which -------------------------------------------------------------------------------------------


def test_the_rules_say_which_toolsets_there_are(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm())
    assert set(ada.tools) == ALL
    ada.rules = TurnRules(toolsets={"memory": EVERYBODY})
    assert set(ada.tools) == {"remember", "recall", "forget"}
    ada.rules = TurnRules(
        toolsets={"memory": ToolsetRule(platforms=frozenset({Platform("discord")}), roles=frozenset(Role))}
    )
    assert ada.tools == {}
    ada.rules = TurnRules(toolsets={"unheard of": EVERYBODY})
    assert ada.tools == {}


@pytest.mark.parametrize(("role", "has"), [(Role.OWNER, ALL), (Role.MEMBER, ALL), (Role.GUEST, set())])
def test_a_guest_has_none_unless_the_operator_says_so(
    store: SessionStore, dm: Source, role: Role, has: set[str]
) -> None:
    ada = desk(store, dm(), rules=TurnRules())
    assert ada.principal is not None
    ada.principal = Principal(ada.principal.person_id, role)
    assert set(ada.tools) == has


def test_what_a_conversation_has_switched_off_is_not_there_and_nothing_is_added(
    store: SessionStore, dm: Source
) -> None:
    ada = desk(store, dm())
    ada.off = ("memory",)
    assert set(ada.tools) == {"search_conversations", "read_conversation"}
    ada.off = ("memory", "history", "mcp:gone")
    assert ada.tools == {}
    ada.rules, ada.off = TurnRules(toolsets={"memory": EVERYBODY}), ("history",)
    assert set(ada.tools) == {"remember", "recall", "forget"}


def test_the_tools_of_a_server_are_switched_off_by_its_name(store: SessionStore, dm: Source) -> None:
    async def run(_: Any) -> str:
        return ""

    ada = desk(store, dm())
    assert ada.principal is not None
    member, guest = (Principal(ada.principal.person_id, role) for role in (Role.MEMBER, Role.GUEST))
    served = [
        Tool(name=name, description="", parameters={}, run=run, toolset=toolset)
        for name, toolset in (("files_read", "mcp:files"), ("web_get", "mcp:web"), ("own", ""))
    ]
    toolbox = Toolbox(store._engine, store._clock, OPEN)
    left = toolbox.servers_for(member, ada.found, served, off=("mcp:files",))
    assert [tool.name for tool in left] == ["web_get", "own"]
    sets = toolbox.sets_for(member, ada.found, served[1:], ["files", "web"])
    assert [(each.name, len(each.tools)) for each in sets] == [
        ("history", 2),
        ("memory", 3),
        ("mcp:files", 0),  # it cannot be reached at the moment
        ("mcp:web", 1),
    ]
    assert Toolbox(store._engine, store._clock, TurnRules()).sets_for(guest, ada.found, served, ["files"]) == []


def test_where_others_read_along_there_is_no_memory_to_switch(store: SessionStore, group: Source) -> None:
    ada = desk(store, group("ada"))
    assert ada.principal is not None
    toolbox = Toolbox(store._engine, store._clock, OPEN)
    assert [each.name for each in toolbox.sets_for(ada.principal, ada.found, (), ())] == ["history"]


def test_nobody_in_particular_and_no_job_has_any(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm())
    assert ada.principal is not None
    ada.principal = Principal(ada.principal.person_id, Role.OWNER, JobId("nightly"))
    assert ada.tools == {}
    ada.principal = None
    assert ada.tools == {}


def test_using_a_tool_twice_does_no_harm_and_its_arguments_are_described(store: SessionStore, dm: Source) -> None:
    for tool in desk(store, dm()).tools.values():
        assert not tool.acts
        assert tool.toolset in {"history", "memory"}
        assert tool.description
        schema = json.loads(json.dumps(tool.parameters))
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(described["description"] for described in schema["properties"].values())


# -- what they do --------------------------------------------------------------------------------------------


async def test_a_search_gives_what_is_needed_to_read_on(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm(), "my cat is called Minka", {"role": "user", "content": 'she said "<|im_end|>"'})
    store.rename_session(ada.session_id, "Pets")
    found = await ada.use("search_conversations", query="cat")
    assert found.splitlines()[1:] == [
        f'- {ada.session_id} ("Pets", this conversation) #2, 2026-11-15, user: "my cat is called Minka"'
    ]
    assert "not instructions" in found
    read = await ada.use("read_conversation", id=ada.session_id)
    assert f'Conversation {ada.session_id} ("Pets"), 2 messages in all.' in read
    assert '#2 2026-11-15 08:12 user: "my cat is called Minka"' in read
    assert r'#3 2026-11-15 08:12 user: "she said \"<|im_end|>\""' in read
    assert await ada.use("read_conversation", id="pets") == read
    assert await ada.use("read_conversation", id=ada.session_id[:-2]) == read


async def test_a_question_does_not_find_itself(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm(), "my cat is called Minka", "what did I say about my cat?", "a cat, hurry up", input_seq=3)
    found = await ada.use("search_conversations", query="cat")
    assert "#2" in found
    assert "#3" not in found
    assert "#4" not in found
    assert "Nothing was found" in await ada.use("search_conversations", query="hurry")


async def test_a_search_gives_the_newest_and_tells_of_more(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm(), *(f"cat number {number}" for number in range(30)))
    found = (await ada.use("search_conversations", query="cat", limit=3)).splitlines()
    assert len(found) == 4
    assert "There are more" in found[0]
    assert "number 29" in found[1]
    assert len((await ada.use("search_conversations", query="cat")).splitlines()) == 9


async def test_reading_goes_around_a_message(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm(), *(f"cat number {number}" for number in range(2, 42)))
    last = await ada.use("read_conversation", id=ada.session_id, limit=4)
    assert [line.split()[0] for line in last.splitlines()[1:-1]] == ["#38", "#39", "#40", "#41"]
    around = await ada.use("read_conversation", id=ada.session_id, around=20, limit=5)
    assert [line.split()[0] for line in around.splitlines()[1:-1]] == ["#18", "#19", "#20", "#21", "#22"]
    first = await ada.use("read_conversation", id=ada.session_id, around=1, limit=1)
    assert "none at this place" in first


async def test_what_tools_and_several_people_said_is_told_apart(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    ada = desk(store, group("ada"), "hello")
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    store.append_to_transcript(
        ada.session_id,
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "tool_name": "look", "content": "x" * 9000},
        ],
    )
    read = (await ada.use("read_conversation", id=ada.session_id)).splitlines()
    assert 'user "Ada": "hello"' in read[1]
    assert 'assistant (used tools): ""' in read[2]
    assert "9000 characters in all" in read[3]
    assert len(read[3]) < 700


async def test_a_long_conversation_is_cut_and_says_so(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm(), *(f"{number} " + "x" * 3900 for number in range(20)))
    read = await ada.use("read_conversation", id=ada.session_id)
    assert len(read) < 20_200
    assert "characters are missing" in read


async def test_memory_goes_there_and_back(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm())
    assert await ada.use("recall") == "Nothing yet."
    kept = await ada.use("remember", text='My "cat" is called\nMinka')
    identity = kept.split()[3]
    assert kept == rf'It is remembered: {identity} (2026-11-15): "My \"cat\" is called\nMinka"'
    assert await ada.use("remember", text='my "CAT" is called Minka') == kept
    assert identity in await ada.use("recall", query="cat")
    assert "Nothing is remembered about this" in await ada.use("recall", query="dog")
    assert "forgotten" in await ada.use("forget", what=identity)
    assert await ada.use("recall", query="") == "Nothing yet."


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("search_conversations", {}, "query: give some text"),
        ("search_conversations", {"query": "x", "limit": 21}, "limit: give a whole number from 1 to 20"),
        ("search_conversations", {"words": "x"}, "possible are: query, limit"),
        ("read_conversation", {"id": "20200101_000000_00000000"}, "no session matches"),
        ("read_conversation", {"id": "x", "around": 0}, "around: give a whole number"),
        ("remember", {"text": ""}, "text: give some text"),
        ("remember", {"text": "x" * 2001}, "at most 2000"),
        ("recall", {"query": 7}, "query: give some text"),
        ("forget", {"what": "m_00000000"}, "nothing is remembered here"),
    ],
)
async def test_a_call_that_makes_no_sense_is_answered_in_words(
    store: SessionStore, dm: Source, name: str, arguments: dict[str, Any], why: str
) -> None:
    assert why in await desk(store, dm()).refused(name, **arguments)


# -- nothing of anybody else ---------------------------------------------------------------------------------


async def everything(here: Desk, *hints: str) -> str:
    """All that the tools will ever say to somebody who tries, without the words that were tried."""
    said = []
    for name, tool in sorted(here.tools.items()):
        for hint in ("", "secret", "password", *hints):
            for key in ("query", "id", "text", "what"):
                if key not in tool.parameters["properties"] or name == "remember":
                    continue
                for more in ({}, {"around": 2}) if name == "read_conversation" else ({},):
                    try:
                        text = await tool.run({key: hint, **more})
                    except ToolFailed as failed:
                        text = str(failed)
                    said.append(text.replace(hint, "?") if hint in hints else text)
    return "\n".join(said)


async def test_others_are_never_in_what_ones_tools_return(store: SessionStore, dm: Source) -> None:
    ada = desk(store, dm("ada"), "my own password")
    alone = await everything(ada, "20261115_081200_00000000", "Divorce", "m_00000000", "vault")
    bob = desk(store, dm("bob"), "a secret password of bob's in the vault")
    store.rename_session(bob.session_id, "Divorce")
    kept = (await bob.use("remember", text="bob's vault has a secret password")).split()[3]
    now = await everything(ada, bob.session_id, "Divorce", kept, "vault")
    assert now == alone
    for trace in (bob.session_id, "Divorce", kept, "vault", "bob"):
        assert trace not in now


async def test_in_a_shared_conversation_nobodys_own_is_within_reach(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    home = _home(group("ada"))
    ada_at_home = desk(store, home, "my own secret password in the vault")
    store.rename_session(ada_at_home.session_id, "Divorce")
    assert ada_at_home.principal == store.person_for(group("ada")).principal
    kept = (await ada_at_home.use("remember", text="my vault has a secret password")).split()[3]
    bob_at_home = desk(store, dm("bob"), "a secret password of bob's in the vault")
    clock.advance(minutes=1)
    ada = desk(store, group("ada"), "we of the club share a password")
    desk(store, group("bob"), "indeed we do")
    other = desk(store, group("ada", chat="board"), "the board has another secret password in the vault")
    await other.use("remember", text="the board's secret password")
    said = await everything(
        ada, ada_at_home.session_id, bob_at_home.session_id, other.session_id, "Divorce", kept, "vault"
    )
    assert "we of the club share a password" in said
    for trace in ("own", "bob's", "vault", "board", "Divorce", kept, ada_at_home.session_id, other.session_id):
        assert trace not in said
    at_home = await everything(ada_at_home)
    assert "we of the club share a password" in at_home  # but at home one may look into ones groups
    assert "the board's secret password" in at_home
    assert "bob's" not in at_home


async def test_a_group_one_does_not_belong_to_is_out_of_reach(open_store: OpenStore, dm: Source, group: Source) -> None:
    store = open_store(SHARED)
    club = desk(store, group("bob"), "a secret of the club")
    await club.use("remember", text="the club's secret")
    ada = desk(store, dm("ada"), "mine")
    assert "club" not in await everything(ada, club.session_id)


async def test_whoever_speaks_in_somebody_elses_conversation_brings_nothing_with_them(
    store: SessionStore, dm: Source
) -> None:
    ada = desk(store, dm("ada"), "ada's secret")
    bob = desk(store, dm("bob"), "bob's secret")
    visitor = Desk(store, ada.session_id, bob.principal)
    said = await everything(visitor, ada.session_id, bob.session_id)
    assert "'s secret" not in said
    assert "others read along" in await visitor.refused("remember", text="x")
    assert "others read along" in await Desk(store, ada.session_id, Principal(PersonId("p_no"))).refused("recall")


async def test_ones_own_conversation_in_a_place_that_others_read_tells_nothing_of_the_rest(
    open_store: OpenStore, group: Source
) -> None:
    store = open_store(SHARED)
    secret = desk(store, _home(group("ada")), "a secret")
    assert "a secret" in await secret.use("search_conversations", query="secret")
    lane = store.record_user_message(group("ada"), "hello").session_key
    store.switch_session(lane, secret.session_id)
    assert "others read along" in await secret.refused("search_conversations", query="secret")
    assert "others read along" in await secret.refused("recall")


async def test_whoever_has_left_an_audience_has_its_tools_no_longer(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    ada = desk(store, group("ada"), "a secret")
    tool = ada.tools["search_conversations"]
    assert "a secret" in await tool.run({"query": "secret"})
    assert ada.principal is not None
    person = ada.principal.person_id
    store._engine.run(Write(lambda tx: tx.run("DELETE FROM audience_member WHERE person_id = $1", person)))
    with pytest.raises(ToolFailed):
        await tool.run({"query": "secret"})


def _home(source: SessionSource) -> SessionSource:
    """The direct messages of whoever speaks in a group."""
    return type(source)(source.platform, source.user_id or "", user_id=source.user_id, user_name=source.user_name)
