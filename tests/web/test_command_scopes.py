"""Slash commands that a token sends: each needs the scope of what it does, and no token ever gets a code."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import palaver
from palaver import SessionSource
from palaver.core.engines.base import Read
from palaver.core.ids import parse_session_id
from palaver.inbox.registry import COMMANDS, find_command
from palaver.people.model import Role, Scope
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound, RepliedMessage
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn

if TYPE_CHECKING:
    import httpx2

    from palaver.people.model import SignedInPerson
    from support.web import StartWebServer, WebServer

SCOPE_SETS = [
    frozenset(names)
    for count in range(1, 5)
    for names in itertools.combinations([scope.value for scope in Scope], count)
]
_keys = itertools.count()


async def complete(program: httpx2.AsyncClient, text: str, **fields: Any) -> httpx2.Response:
    body = {"model": "palaver", "messages": [{"role": "user", "content": text}], **fields}
    return await program.post("/v1/chat/completions", json=body)


async def run_text(client: httpx2.AsyncClient, text: str) -> httpx2.Response:
    return await client.post("/api/commands", json={"text": text, "key": f"k{next(_keys)}"})


async def test_a_chat_token_gets_no_link_code(web: WebServer) -> None:
    program = await web.open_token_client("chat")
    for text in ("/link", "/LINK", "/link@palaver", "/link ABCD-EFGH"):
        refused = await complete(program, text)
        assert not refused.is_success, refused.text
    streamed = await complete(program, "/link", stream=True)
    assert "15 minutes" not in streamed.text


@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(sorted(scopes)))
async def test_no_token_gets_a_link_code_or_a_sign_in_link(web: WebServer, scopes: frozenset[str]) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    person_id = (await owner.get("/api/me")).json()["person"]["id"]
    program = await web.open_token_client(*scopes)
    path = f"/api/sessions/{session_id}"
    responses = [
        await complete(program, "/link"),
        await complete(program, "/link", stream=True),
        await run_text(program, "/link"),
        await program.post(f"{path}/messages", json={"content": "/link", "key": f"k{next(_keys)}"}),
        await program.post(f"{path}/edit", json={"seq": 2, "content": "/link", "key": f"k{next(_keys)}"}),
        await program.post("/api/people", json={"name": "Mallory", "role": "owner"}),
        await program.post(f"/api/people/{person_id}/link"),
    ]
    for response in responses:
        assert "15 minutes" not in response.text, response.text
        assert "sign-in#" not in response.text, response.text
    codes = await web.gateway.store.engine.arun(_count("link_code"))
    links = await web.gateway.store.engine.arun(_count("sign_in_link"))
    assert (codes, links) == (0, 0)


def _count(table: str) -> Any:
    return Read(lambda tx: tx.fetch_one(f"SELECT COUNT(*) FROM {table}")[0])  # type: ignore[index]


async def test_a_browser_still_gets_a_code(web: WebServer) -> None:
    owner = await web.sign_in()
    receipt = (await run_text(owner, "/link")).json()
    assert receipt["outcome"] == "command"
    assert receipt["facts"]["code"] in receipt["reply"]


async def test_a_chat_token_cannot_change_budgets_or_let_people_in(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent("fine"))
    program = await web.open_token_client("chat")
    for text in ("/budget set everyone day $1000", "/pair", "/pair ABCD-EFGH member", "/sethome"):
        refused = await complete(program, text)
        assert refused.status_code == 403
        assert "lacks the scope admin" in refused.json()["error"]["message"], refused.text
    assert "Create a token that has it" in refused.json()["error"]["message"]


# For a text, the scopes of one of which a token needs.
TABLE = {
    **dict.fromkeys(["/new", "/reset", "/title Trip", "/branch", "/undo", "/redo", "/retry", "/restore"], "write"),
    **dict.fromkeys(["/compress", "/resume Trip", "/version 1", "/busy queue", "/handoff telegram"], "write"),
    **dict.fromkeys(["/model scripted", "/profile default", "/personality default", "/workspace none"], "write"),
    **dict.fromkeys(["/tools off web", "/memory add I like tea", "/queue clear", "/language auto"], "write"),
    **dict.fromkeys(["/jobs remove a", "/jobs pause a", "/jobs timezone UTC"], "write"),
    **dict.fromkeys(
        ["/resume", "/title", "/sessions", "/search tea", "/export", "/versions", "/busy", "/model"], "read"
    ),
    **dict.fromkeys(
        ["/profile", "/personality", "/workspace", "/tools", "/memory", "/whoami", "/queue", "/language"], "read"
    ),
    **dict.fromkeys(["/status", "/usage", "/why", "/platforms", "/budget", "/jobs", "/jobs show a"], "read"),
    **dict.fromkeys(["/jobs run a", "/jobs resume a", "/jobs add every day at 9: tea", "/jobs confirm a"], "chat"),
    **dict.fromkeys(["/stop", "/stop all", "/queue hello", "/steer hello"], "write chat"),
    **dict.fromkeys(["/pair", "/pair ABCD-EFGH", "/pair ABCD-EFGH member", "/pair group", "/sethome"], "admin"),
    **dict.fromkeys(["/sethere", "/sethere profile work"], "admin"),
    **dict.fromkeys(["/budget set everyone day $1", "/budget clear everyone day"], "admin"),
    **dict.fromkeys(["/help", "/help undo", "/nonsense"], "read write chat admin"),
    **dict.fromkeys(["/link", "/link ABCD-EFGH", "/unlink", "/unlink telegram", "/pair ABCD-EFGH me"], ""),
}


def test_the_table_has_every_command() -> None:
    named = {found.name for text in TABLE if (found := find_command(text[1:].split()[0]))}
    assert named == {command.name for command in COMMANDS}


@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(sorted(scopes)))
async def test_a_command_needs_the_scope_of_what_it_does(web: WebServer, scopes: frozenset[str]) -> None:
    owner = await web.sign_in()
    program = await find_caller(web, await web.open_token_client(*scopes))
    session_id = parse_session_id(await web.create_conversation(owner, "hello"))
    for text, needed in TABLE.items():
        message = Inbound(
            source=build_person_source(program.person), signed_in=program, content=text, session_id=session_id
        )
        receipt = await web.gateway.inbox.accept(message)
        is_refused = "token" in (receipt.reply or "") and (receipt.facts or {}).get("error") == "not_allowed"
        assert is_refused == scopes.isdisjoint(needed.split()), (text, receipt)
        if is_refused and needed:
            assert (receipt.facts or {})["scope"] in needed.split()


def test_every_message_of_the_api_says_who_is_signed_in() -> None:
    """Without it, a token would be taken for its person."""
    source = Path(palaver.__file__).parent
    files = [*source.glob("web/**/*.py"), source / "gateway" / "completions.py"]
    calls = [
        node
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Inbound"
    ]
    assert len(calls) >= 3
    assert all("signed_in" in {keyword.arg for keyword in call.keywords} for call in calls)


async def find_caller(web: WebServer, program: httpx2.AsyncClient) -> SignedInPerson:
    caller = await web.state.accounts.find_by_token(program.headers["Authorization"].removeprefix("Bearer "))
    assert caller is not None
    return caller


async def test_the_same_commands_are_open_to_the_person_in_a_browser(web: WebServer) -> None:
    owner = await web.sign_in()
    for text in TABLE:
        response = await run_text(owner, text)
        assert (response.json()["facts"] or {}).get("error") != "not_allowed" or "group" in text, response.text


@pytest.mark.parametrize("scopes", SCOPE_SETS, ids=lambda scopes: "+".join(sorted(scopes)))
async def test_lists_of_commands_have_only_what_the_token_may_do(web: WebServer, scopes: frozenset[str]) -> None:
    program = await web.open_token_client(*scopes)
    texts = [text for text, needed in TABLE.items() if scopes & {*needed.split()}]
    expected = {found.name for text in texts if (found := find_command(text[1:].split()[0]))}
    if "read" in scopes:
        listed = (await program.get("/api/commands")).json()["commands"]
        assert {command["name"][1:] for command in listed} == expected
    if "write" in scopes:
        assert {*(await run_text(program, "/help")).json()["facts"]["commands"]} == expected
        explained = await run_text(program, "/help link")
        assert explained.json()["outcome"] == "rejected"
    if "chat" in scopes:
        text = (await complete(program, "/help")).json()["choices"][0]["message"]["content"]
        assert {line.split("`")[1].split()[0][1:] for line in text.splitlines() if line.startswith("- ")} == expected


async def test_jobs_of_other_people_need_the_scope_admin(web: WebServer) -> None:
    reader = await web.open_token_client("read", "write")
    assert "admin" in (await run_text(reader, "/jobs everything")).json()["error"]["message"]
    admin = await web.open_token_client("read", "write", "admin")
    assert (await run_text(admin, "/jobs everything")).json()["outcome"] == "command"


# ---- codes -------------------------------------------------------------------------------------------------


MALLORY = SessionSource("slack", "666", user_id="666", user_name="Mallory")


async def send(web: WebServer, source: SessionSource, text: str, **fields: Any) -> str:
    return (await web.gateway.inbox.accept(Inbound(source=source, content=text, **fields))).reply or ""


@pytest.mark.both_engines
async def test_a_code_stops_working_when_its_browser_is_signed_out(web: WebServer) -> None:
    owner, thief = await web.sign_in(), await web.open_anonymous_client()
    secret = await web.state.accounts.create_owner_link()
    assert (await thief.post("/api/sign-in/link", json={"token": secret})).is_success
    code = (await run_text(thief, "/link")).json()["facts"]["code"]
    stolen = (await thief.post("/api/people", json={"name": "Mallory", "role": "owner"})).json()["link"]["url"]
    kept = (await owner.post("/api/people", json={"name": "Ada", "role": "member"})).json()["link"]["url"]
    devices = (await owner.get("/api/me/devices")).json()["devices"]
    [other] = [each["id"] for each in devices if not each["is_current"]]
    assert (await owner.delete(f"/api/me/devices/{other}")).status_code == 204
    assert "isn't valid" in await send(web, MALLORY, f"/link {code}")
    visitor = await web.open_anonymous_client()
    assert not (await visitor.post("/api/sign-in/link", json={"token": stolen.partition("#")[2]})).is_success
    assert (await visitor.post("/api/sign-in/link", json={"token": kept.partition("#")[2]})).is_success


async def test_an_invitation_works_after_its_owner_has_signed_out(web: WebServer) -> None:
    owner, visitor = await web.sign_in(), await web.open_anonymous_client()
    link = (await owner.post("/api/people", json={"name": "Ada", "role": "member"})).json()["link"]["url"]
    assert (await owner.post("/api/sign-out")).status_code == 204
    assert (await visitor.post("/api/sign-in/link", json={"token": link.partition("#")[2]})).is_success


@pytest.mark.both_engines
async def test_signing_out_everywhere_ends_the_links_of_all_browsers(web: WebServer) -> None:
    owner, visitor = await web.sign_in(), await web.open_anonymous_client()
    code = (await run_text(owner, "/link")).json()["facts"]["code"]
    link = (await owner.post("/api/people", json={"name": "Ada", "role": "owner"})).json()["link"]["url"]
    assert (await owner.post("/api/sign-out/everywhere")).status_code == 204
    assert not (await visitor.post("/api/sign-in/link", json={"token": link.partition("#")[2]})).is_success
    assert "isn't valid" in await send(web, MALLORY, f"/link {code}")


async def test_a_token_cannot_make_a_strangers_account_its_person(web: WebServer) -> None:
    await web.sign_in()
    await send(web, MALLORY, "hello")
    admin = await web.open_token_client("read", "write", "chat", "admin")
    [request] = (await admin.get("/api/people/requests")).json()["requests"]
    path = f"/api/people/requests/{request['id']}/approve"
    assert (await admin.post(path, json={"grant": "me"})).status_code == 403
    assert (await admin.post(path, json={"grant": "guest"})).status_code == 200


async def test_nothing_that_a_token_reads_has_the_code_of_its_person_or_of_another(web: WebServer) -> None:
    """The person has asked for a code in a browser and in a chat, and has replied to the message with the code."""
    owner = await web.sign_in()
    chat = SessionSource("telegram", "1", user_id="1", user_name="Olga")
    await web.gateway.inbox.accept(Inbound(source=chat, content="hello"))
    link_code = (await run_text(owner, "/link")).json()["facts"]["code"]
    await send(web, chat, f"/link {link_code}", message_id="m1")
    await run_text(owner, "/link confirm")
    await send(web, chat, "/link confirm")
    session_id = await web.create_conversation(owner, "hello")
    texts = [link_code, (await run_text(owner, "/link")).json()["facts"]["code"]]
    reply = await send(web, chat, "/link", message_id="m2")
    texts.append(re.findall(r"[A-Z0-9]{4}-[A-Z0-9]{4}", reply)[0])
    replied = RepliedMessage("m3", text=reply, is_own=True)
    receipt = await web.gateway.inbox.accept(
        Inbound(source=chat, content="what is this?", message_id="m4", replied_message=replied)
    )
    assert receipt.turn_id is not None
    await wait_for_turn(web.gateway, receipt.turn_id)
    program = await web.open_token_client("read", "write", "chat", "admin")
    reads = [
        "/api/sessions",
        "/api/platforms",
        "/api/logs",
        "/api/people",
        "/api/people/requests",
        "/api/me/devices",
        *(f"/api/search?query={code}" for code in texts),
        *(f"/api/sessions/{each}{end}" for each in (session_id, receipt.session_id) for end in SESSION_READS),
    ]
    other = await web.open_token_client("read", "write", "chat", person="ada")
    for path, reader in itertools.product(reads, (program, other)):
        response = await reader.get(path)
        assert response.is_success or reader is other, (path, response.text)
        body = response.json() if "search" in path else response.text
        shown = str(body.get("hits", body.get("results", body))) if isinstance(body, dict) else body
        assert not [code for code in texts if code in shown], path
    for key in ("m1", "m2"):  # the receipts of the same messages again
        assert texts[-1] not in str(
            await web.gateway.inbox.accept(Inbound(source=chat, content="/link", message_id=key))
        )
    requests = web.gateway.agent.requests  # type: ignore[attr-defined]
    assert not [code for code in texts if code in str(requests)]


SESSION_READS = ("", "/messages", "/events", "/deliveries", "/export?format=json")


async def test_a_webhook_gets_no_code_and_cannot_become_the_owner(web: WebServer) -> None:
    owner = await web.sign_in()
    program = SessionSource("webhook", "default", user_id="default", user_name="A program")
    assert "API tokens can't" in await send(web, program, "/link")
    code = (await run_text(owner, "/link")).json()["facts"]["code"]
    assert "API tokens can't" in await send(web, program, f"/link {code}")
    person = await web.gateway.store.aio.get_or_create_person(program)
    assert person.role is Role.GUEST
    assert "You're" in await send(web, program, "/whoami")
