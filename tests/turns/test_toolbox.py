"""The toolbox: which tools a person has, and that no tool reveals anything of other people."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Principal, Role, SessionStore
from palaver.agent.base import Tool, ToolFailed
from palaver.config.agent_rules import MemoryRules, ToolsetRule, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.ids import JobId, PersonId
from palaver.sessions import log_table, table as sessions
from palaver.turns.tools import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionSource
    from palaver.sessions.table import SessionRow
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

SHARED_GROUPS = GatewayConfig(group_sessions_per_user=False)
ALL_TOOLS = {"search_conversations", "read_conversation", "read_tool_result", "remember", "recall", "forget"}
ALL_ROLES = ToolsetRule(roles=frozenset(Role))
ALL_ALLOWED = TurnRules(toolsets={"history": ALL_ROLES, "memory": ALL_ROLES})


@dataclass
class ToolUser:
    """A person in a conversation, and the tools that the agent has for them there."""

    store: SessionStore
    session_id: str
    principal: Principal | None
    rules: TurnRules = ALL_ALLOWED
    input_seq: int | None = None
    disabled: tuple[str, ...] = ()

    @property
    def session_row(self) -> SessionRow:
        return self.store._engine.run(Read(lambda tx: sessions.get(tx, self.session_id)))

    @property
    def tools(self) -> dict[str, Tool]:
        toolbox = Toolbox(self.store._engine, self.store._clock, self.rules)
        tools = toolbox.list_palaver_tools(self.principal, self.session_row, self.input_seq, disabled=self.disabled)
        return {tool.name: tool for tool in tools}

    async def use(self, name: str, **arguments: Any) -> str:
        return await self.tools[name].run(arguments)

    async def get_failure(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolFailed) as caught:
            await self.tools[name].run(arguments)
        return str(caught.value)


def create_tool_user(store: SessionStore, source: SessionSource, *messages: Any, **options: Any) -> ToolUser:
    """Record messages of a person, the last of them in the conversation where the tools are used."""
    recorded = [store.record_user_message(source, message) for message in messages or ("hello",)]
    return ToolUser(store, recorded[-1].session_id, store.get_or_create_person(source).principal, **options)


def find_memory_id(text: str) -> str:
    match = re.search(r"\bm_[0-9a-f]+\b", text)
    assert match is not None
    return match[0]


# -- which tools there are ------------------------------------------------------------------------------------


def test_the_rules_decide_which_toolsets_there_are(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    assert set(ada.tools) == ALL_TOOLS
    ada.rules = TurnRules(toolsets={"memory": ALL_ROLES})
    assert set(ada.tools) == {"remember", "recall", "forget"}
    ada.rules = TurnRules(
        toolsets={"memory": ToolsetRule(platforms=frozenset({Platform("discord")}), roles=frozenset(Role))}
    )
    assert ada.tools == {}
    ada.rules = TurnRules(toolsets={"unknown": ALL_ROLES})
    assert ada.tools == {}


@pytest.mark.parametrize(("role", "expected"), [(Role.OWNER, ALL_TOOLS), (Role.MEMBER, ALL_TOOLS), (Role.GUEST, set())])
def test_guests_have_no_tools_by_default(store: SessionStore, dm: Source, role: Role, expected: set[str]) -> None:
    ada = create_tool_user(store, dm(), rules=TurnRules())
    assert ada.principal is not None
    ada.principal = Principal(ada.principal.person_id, role)
    assert set(ada.tools) == expected


def test_a_conversation_can_only_switch_toolsets_off(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    ada.disabled = ("memory",)
    assert set(ada.tools) == {"search_conversations", "read_conversation", "read_tool_result"}
    ada.disabled = ("memory", "history", "mcp:unknown")
    assert ada.tools == {}
    ada.rules, ada.disabled = TurnRules(toolsets={"memory": ALL_ROLES}), ("history",)
    assert set(ada.tools) == {"remember", "recall", "forget"}


def test_the_tools_of_a_server_are_switched_off_by_the_name_of_the_server(store: SessionStore, dm: Source) -> None:
    async def run(_: Any) -> str:
        return ""

    ada = create_tool_user(store, dm())
    assert ada.principal is not None
    member, guest = (Principal(ada.principal.person_id, role) for role in (Role.MEMBER, Role.GUEST))
    agent_tools = [
        Tool(name=name, description="", parameters={}, run=run, toolset=toolset)
        for name, toolset in (("files_read", "mcp:files"), ("web_get", "mcp:web"), ("own", ""))
    ]
    toolbox = Toolbox(store._engine, store._clock, ALL_ALLOWED)
    enabled = toolbox.list_agent_tools(member, ada.session_row, agent_tools, disabled=("mcp:files",))
    assert [tool.name for tool in enabled] == ["web_get", "own"]
    sets = toolbox.list_toolsets(member, ada.session_row, agent_tools[1:], ["files", "web"])
    assert [(each.name, len(each.tools)) for each in sets] == [
        ("history", 3),
        ("memory", 3),
        ("mcp:files", 0),  # the server is not reachable
        ("mcp:web", 1),
    ]
    default_toolbox = Toolbox(store._engine, store._clock, TurnRules())
    assert default_toolbox.list_toolsets(guest, ada.session_row, agent_tools, ["files"]) == []


def test_a_personal_lane_in_a_group_has_no_memory_toolset(store: SessionStore, group: Source) -> None:
    ada = create_tool_user(store, group("ada"))
    assert ada.principal is not None
    toolbox = Toolbox(store._engine, store._clock, ALL_ALLOWED)
    assert [each.name for each in toolbox.list_toolsets(ada.principal, ada.session_row, (), ())] == ["history"]


def test_a_job_has_the_toolsets_that_were_granted_to_it(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    assert ada.principal is not None
    job = Principal(ada.principal.person_id, Role.MEMBER, JobId("nightly"))
    guest = Principal(ada.principal.person_id, Role.GUEST, JobId("nightly"))
    toolbox = Toolbox(store._engine, store._clock, TurnRules())

    def list_toolsets(principal: Principal, *granted: str, disabled: tuple[str, ...] = ()) -> set[str]:
        tools = toolbox.list_palaver_tools(principal, ada.session_row, granted=granted, disabled=disabled)
        return {tool.toolset for tool in tools}

    assert list_toolsets(job, "history", "schedule", "unknown") == {"history"}
    assert list_toolsets(job, "history", "memory", disabled=("memory",)) == {"history"}
    assert list_toolsets(job) == set()
    assert list_toolsets(guest, "history", "memory") == set()


def test_jobs_and_turns_without_a_person_have_no_tools(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    assert ada.principal is not None
    ada.principal = Principal(ada.principal.person_id, Role.OWNER, JobId("nightly"))
    assert ada.tools == {}
    ada.principal = None
    assert ada.tools == {}


def test_no_tool_has_side_effects_and_all_arguments_are_described(store: SessionStore, dm: Source) -> None:
    for tool in create_tool_user(store, dm()).tools.values():
        assert not tool.has_side_effects
        assert tool.toolset in {"history", "memory"}
        assert tool.description
        schema = json.loads(json.dumps(tool.parameters))
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(described["description"] for described in schema["properties"].values())


# -- what the tools do ----------------------------------------------------------------------------------------


async def test_a_search_result_has_what_is_needed_to_read_the_conversation(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm(), "my cat is called Minka", {"role": "user", "content": 'she said "<|im_end|>"'})
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


async def test_a_search_does_not_find_the_question_itself(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(
        store, dm(), "my cat is called Minka", "what did I say about my cat?", "a cat, hurry up", input_seq=3
    )
    found = await ada.use("search_conversations", query="cat")
    assert "#2" in found
    assert "#3" not in found
    assert "#4" not in found
    assert "Nothing found" in await ada.use("search_conversations", query="hurry")


async def test_a_search_shows_the_newest_results_and_says_that_there_are_more(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm(), *(f"cat number {number}" for number in range(30)))
    found = (await ada.use("search_conversations", query="cat", limit=3)).splitlines()
    assert len(found) == 4
    assert "There are more" in found[0]
    assert "number 29" in found[1]
    assert len((await ada.use("search_conversations", query="cat")).splitlines()) == 9


async def test_a_conversation_can_be_read_around_a_message(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm(), *(f"cat number {number}" for number in range(2, 42)))
    last = await ada.use("read_conversation", id=ada.session_id, limit=4)
    assert [line.split()[0] for line in last.splitlines()[1:-1]] == ["#38", "#39", "#40", "#41"]
    around = await ada.use("read_conversation", id=ada.session_id, around=20, limit=5)
    assert [line.split()[0] for line in around.splitlines()[1:-1]] == ["#18", "#19", "#20", "#21", "#22"]
    first = await ada.use("read_conversation", id=ada.session_id, around=1, limit=1)
    assert "There are none here" in first


async def test_messages_of_people_and_tools_are_labeled(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED_GROUPS)
    ada = create_tool_user(store, group("ada"), "hello")
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


async def test_a_long_conversation_is_shortened_with_a_note(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm(), *(f"{number} " + "x" * 3900 for number in range(20)))
    read = await ada.use("read_conversation", id=ada.session_id)
    assert len(read) < 20_200
    assert "characters are missing" in read


@pytest.mark.both_engines
async def test_a_memory_replaces_others_of_the_same_people(store: SessionStore, dm: Source) -> None:
    ada, bob = create_tool_user(store, dm()), create_tool_user(store, dm("bob"))
    first, second = [
        find_memory_id(await ada.use("remember", text=text)) for text in ("I live in Graz.", "I like tea.")
    ]
    of_bob = find_memory_id(await bob.use("remember", text="Bob has a boat."))
    for unknown in ([of_bob], [first, "m_0"], ["\ud800"]):
        assert "that could be replaced" in await ada.get_failure("remember", text="I live in Linz.", supersedes=unknown)
    assert "must be a list" in await ada.get_failure("remember", text="I live in Linz.", supersedes=7)
    saved = await ada.use("remember", text="I live in Linz and like tea.", supersedes=[first, second])
    assert saved.startswith(f"Saved (replaces {first}, {second}): ")
    assert "Linz" in await ada.use("recall")
    assert "Graz" not in await ada.use("recall")
    assert "boat" in await bob.use("recall")


async def test_too_many_memories_have_to_be_combined(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm(), rules=replace(ALL_ALLOWED, memory=MemoryRules(max_memories=12)))
    names = ["Ash", "Elm", "Fir", "Oak", "Yew", "Fig", "Bay", "Box", "Gum", "Nut", "Palm", "Pine"]
    ids = [find_memory_id(await ada.use("remember", text=f"{name} grows there.")) for name in names]
    refused = await ada.get_failure("remember", text="Plum trees grow slowly, and Gum too.")
    assert refused.startswith("Not saved: there are too many memories.")
    assert all(f"- {memory_id} (" in refused for memory_id in [ids[8], *ids[:5]])  # a similar one, and the oldest
    await ada.use("remember", text="Plum trees grow slowly, and Gum too.", supersedes=[ids[8]])
    too_long = await ada.get_failure("remember", text="x" * 301)
    assert "301 of at most 300" in too_long


async def test_a_memory_can_be_added_found_and_forgotten(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    assert await ada.use("recall") == "There are no memories yet."
    saved = await ada.use("remember", text='My "cat" is called\nMinka')
    memory_id = find_memory_id(saved)
    assert saved == rf'Saved: {memory_id} (2026-11-15): "My \"cat\" is called\nMinka"'
    again = await ada.get_failure("remember", text='Minka is called my "CAT"')
    assert again.startswith(rf'Not saved: there is already {memory_id} (2026-11-15): "My \"cat\" is called\nMinka".')
    assert memory_id in await ada.use("recall", query="cat")
    assert "No memories match" in await ada.use("recall", query="dog")
    assert "Deleted" in await ada.use("forget", what=memory_id)
    assert await ada.use("recall", query="") == "There are no memories yet."


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("search_conversations", {}, "query: must be a non-empty text"),
        ("search_conversations", {"query": "x", "limit": 21}, "limit: must be a whole number from 1 to 20"),
        ("search_conversations", {"words": "x"}, "Valid arguments: query, limit."),
        ("read_conversation", {"id": "20200101_000000_00000000"}, "No conversation matches"),
        ("read_conversation", {"id": "x", "around": 0}, "around: must be a whole number"),
        ("remember", {"text": ""}, "text: must be a non-empty text"),
        ("remember", {"text": "x" * 301}, "at most 300"),
        ("recall", {"query": 7}, "query: must be a non-empty text"),
        ("forget", {"what": "m_00000000"}, "No memory here has this id"),
    ],
)
async def test_an_invalid_call_is_explained_to_the_model(
    store: SessionStore, dm: Source, name: str, arguments: dict[str, Any], expected: str
) -> None:
    assert expected in await create_tool_user(store, dm()).get_failure(name, **arguments)


# -- privacy --------------------------------------------------------------------------------------------------


async def probe_tools(user: ToolUser, *hints: str) -> str:
    """Call all tools with many arguments and return all they say, without the hints that were passed in."""
    output = []
    for name, tool in sorted(user.tools.items()):
        for hint in ("", "secret", "password", *hints):
            for key in ("query", "id", "text", "what"):
                if key not in tool.parameters["properties"] or name == "remember":
                    continue
                for more in ({}, {"around": 2}) if name == "read_conversation" else ({},):
                    try:
                        text = await tool.run({key: hint, **more})
                    except ToolFailed as failed:
                        text = str(failed)
                    output.append(text.replace(hint, "?") if hint in hints else text)
    return "\n".join(output)


async def test_tools_reveal_nothing_of_other_people(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm("ada"), "my own password")
    before = await probe_tools(ada, "20261115_081200_00000000", "Divorce", "m_00000000", "vault")
    bob = create_tool_user(store, dm("bob"), "a secret password of bob's in the vault")
    store.rename_session(bob.session_id, "Divorce")
    memory_id = find_memory_id(await bob.use("remember", text="bob's vault has a secret password"))
    after = await probe_tools(ada, bob.session_id, "Divorce", memory_id, "vault")
    assert after == before
    for trace in (bob.session_id, "Divorce", memory_id, "vault", "bob"):
        assert trace not in after


@pytest.mark.both_engines
async def test_tools_in_a_shared_conversation_reveal_nothing_of_its_members_private_conversations(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED_GROUPS)
    ada_in_private = create_tool_user(store, direct_messages(group("ada")), "my own secret password in the vault")
    store.rename_session(ada_in_private.session_id, "Divorce")
    assert ada_in_private.principal == store.get_or_create_person(group("ada")).principal
    memory_id = find_memory_id(await ada_in_private.use("remember", text="my vault has a secret password"))
    bob_in_private = create_tool_user(store, dm("bob"), "a secret password of bob's in the vault")
    clock.advance(minutes=1)
    ada = create_tool_user(store, group("ada"), "we of the club share a password")
    create_tool_user(store, group("bob"), "indeed we do")
    other = create_tool_user(store, group("ada", chat="board"), "the board has another secret password in the vault")
    await other.use("remember", text="the board's secret password")
    output = await probe_tools(
        ada, ada_in_private.session_id, bob_in_private.session_id, other.session_id, "Divorce", memory_id, "vault"
    )
    assert "we of the club share a password" in output
    for trace in ("own", "bob's", "vault", "board", "Divorce", memory_id, ada_in_private.session_id, other.session_id):
        assert trace not in output
    private_output = await probe_tools(ada_in_private)
    assert "we of the club share a password" in private_output  # in private, people may search their groups
    assert "the board's secret password" in private_output
    assert "bob's" not in private_output


async def test_tools_reveal_nothing_of_groups_without_the_person(
    open_store: OpenStore, dm: Source, group: Source
) -> None:
    store = open_store(SHARED_GROUPS)
    club = create_tool_user(store, group("bob"), "a secret of the club")
    await club.use("remember", text="the club's secret")
    ada = create_tool_user(store, dm("ada"), "mine")
    assert "club" not in await probe_tools(ada, club.session_id)


async def test_tools_are_refused_in_a_conversation_of_another_person(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm("ada"), "ada's secret")
    bob = create_tool_user(store, dm("bob"), "bob's secret")
    bob_in_adas_conversation = ToolUser(store, ada.session_id, bob.principal)
    output = await probe_tools(bob_in_adas_conversation, ada.session_id, bob.session_id)
    assert "'s secret" not in output
    assert "other people can read" in await bob_in_adas_conversation.get_failure("remember", text="x")
    unknown_person = ToolUser(store, ada.session_id, Principal(PersonId("p_no")))
    assert "other people can read" in await unknown_person.get_failure("recall")


async def test_tools_are_refused_when_a_private_conversation_is_resumed_in_a_group(
    open_store: OpenStore, group: Source
) -> None:
    store = open_store(SHARED_GROUPS)
    secret = create_tool_user(store, direct_messages(group("ada")), "a secret")
    assert "a secret" in await secret.use("search_conversations", query="secret")
    lane = store.record_user_message(group("ada"), "hello").session_key
    store.switch_session(lane, secret.session_id)
    assert "other people can read" in await secret.get_failure("search_conversations", query="secret")
    assert "other people can read" in await secret.get_failure("recall")


async def test_a_person_who_left_the_audience_can_no_longer_use_its_tools(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED_GROUPS)
    ada = create_tool_user(store, group("ada"), "a secret")
    tool = ada.tools["search_conversations"]
    assert "a secret" in await tool.run({"query": "secret"})
    assert ada.principal is not None
    person = ada.principal.person_id
    store._engine.run(Write(lambda tx: tx.execute("DELETE FROM audience_member WHERE person_id = $1", person)))
    with pytest.raises(ToolFailed):
        await tool.run({"query": "secret"})


def direct_messages(source: SessionSource) -> SessionSource:
    """Return the source of the direct messages of a person who speaks in a group."""
    return type(source)(source.platform, source.user_id or "", user_id=source.user_id, user_name=source.user_name)


# -- results that left the view ---------------------------------------------------------------------------------


def record_result(user: ToolUser, text: str) -> int:
    """Record a call and its result in the user's conversation; return the number of the result."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    user.store.append_to_transcript(user.session_id, {"role": "assistant", "content": None, "tool_calls": [call]})
    user.store.append_to_transcript(user.session_id, {"role": "tool", "tool_call_id": "c1", "content": text})
    return user.store.load_events(user.session_id)[-1].seq


async def test_a_result_can_be_read_again_in_parts(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    number = record_result(ada, "abcdefghij" * 1500)
    first = await ada.use("read_tool_result", number=number)
    assert first.startswith("[Characters 0 to 10000 of 15000. Continue with offset 10000.]\nabcdefghij")
    rest = await ada.use("read_tool_result", number=number, offset=10_000)
    assert rest == "[Characters 10000 to 15000 of 15000.]\n" + "abcdefghij" * 500
    assert (await ada.use("read_tool_result", number=number, offset=3, limit=4)).endswith("]\ndefg")
    assert await ada.use("read_tool_result", number=number, offset=10**9) == "[Characters 15000 to 15000 of 15000.]\n"


async def test_only_results_of_the_own_conversation_can_be_read_again(store: SessionStore, dm: Source) -> None:
    ada, ben = create_tool_user(store, dm()), create_tool_user(store, dm("ben"))
    number = record_result(ada, "Ada's secret")
    for wrong in (number, number - 1, 1, 10**9):  # Ben's conversation has no such result
        assert "no result" in await ben.get_failure("read_tool_result", number=wrong)
    ben.session_id = ada.session_id  # even if the gateway made such a mistake
    assert "secret" not in await ben.get_failure("read_tool_result", number=number)
    assert "no result" in await ada.get_failure("read_tool_result", number=number - 1)
    assert "no result" in await ada.get_failure("read_tool_result")


async def test_a_result_that_was_undone_cannot_be_read_again(store: SessionStore, dm: Source) -> None:
    ada = create_tool_user(store, dm())
    number = record_result(ada, "found")
    session_no = ada.session_row.no
    store.engine.run(Write(lambda tx: log_table.undo_turns(tx, session_no, 1, 1)))
    assert "no result" in await ada.get_failure("read_tool_result", number=number)
