"""Linking accounts on the page: the same two confirmations as in a chat, and in a browser only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from support.web import WebServer

TELEGRAM = SessionSource("telegram", "eve", user_id="eve", user_name="Eve")


async def write_from_telegram(web: WebServer, text: str) -> str:
    return (await web.gateway.inbox.accept(Inbound(source=TELEGRAM, content=text))).reply or ""


async def test_the_page_confirms_what_the_chat_has_asked_for_and_undoes_it(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    await web.create_conversation(ada, "a secret")
    assert (await ada.get("/api/me/links")).json() == {"accounts": [], "pending": None}
    created = await ada.post("/api/me/links/code")
    assert created.status_code == 201
    assert "Nothing is shared yet" in await write_from_telegram(web, f"/link {created.json()['code']}")
    pending = (await ada.get("/api/me/links")).json()["pending"]
    assert (pending["other_name"], pending["other_platform"], pending["other_account"]) == ("Eve", "Telegram", "eve")
    assert pending["is_issuer"]
    assert pending["shares"]["conversations"] == 1
    assert pending["gets"] is None
    assert (pending["role"], pending["kept_by"]) == ("member", "ada")
    confirmed = (await ada.post("/api/me/links/answer", json={"answer": "confirm"})).json()
    assert not confirmed["is_linked"]
    assert confirmed["pending"]["is_confirmed"]
    assert (await write_from_telegram(web, "/link confirm")).startswith("Linked")
    assert (await ada.get("/api/me/links")).json() == {
        "accounts": [{"platform": "telegram", "account": "eve", "is_linked": True}],
        "pending": None,
    }
    unlinked = await ada.post("/api/me/links/unlink", json={"platform": "telegram", "account": "eve"})
    assert unlinked.status_code == 204
    assert (await ada.get("/api/me/links")).json()["accounts"] == []


async def test_the_page_sends_a_code_and_cancels(web: WebServer) -> None:
    bob = await web.sign_in("bob")
    wrong = await bob.post("/api/me/links", json={"code": "ABCD-EFGH"})
    assert wrong.json()["problem"] == "wrong_code"
    assert "isn't valid" in wrong.json()["text"]
    nothing = await bob.post("/api/me/links/answer", json={"answer": "confirm"})
    assert (nothing.json()["is_linked"], nothing.json()["problem"]) == (False, "nothing_waits")
    ada = await web.sign_in("ada")
    code = (await ada.post("/api/me/links/code")).json()["code"]
    both = await bob.post("/api/me/links", json={"code": code})
    assert both.json()["problem"] == "both_sign_in"
    await write_from_telegram(web, f"/link {code}")
    assert (await ada.post("/api/me/links/answer", json={"answer": "cancel"})).json()["pending"] is None
    assert "There is no link" in await write_from_telegram(web, "/link confirm")
    assert (await bob.get("/api/me/links")).json()["pending"] is None


async def test_no_token_gets_a_code_or_confirms_whatever_its_scopes(web: WebServer) -> None:
    owner = await web.sign_in()
    code = (await owner.post("/api/me/links/code")).json()["code"]
    await write_from_telegram(web, f"/link {code}")
    program = await web.open_token_client("read", "write", "chat", "admin")
    session_id = await web.create_session(program)
    texts = ("/link", f"/link {code}", "/link confirm", "/link cancel", "/unlink telegram", "/LINK@bot confirm")
    for number, text in enumerate(texts):
        responses = [
            await program.post("/api/commands", json={"text": text, "key": f"c{number}"}),
            await program.post(f"/api/sessions/{session_id}/messages", json={"content": text, "key": f"m{number}"}),
            await program.post(
                f"/api/sessions/{session_id}/messages",
                json={"content": [{"type": "text", "text": text}], "key": f"p{number}"},
            ),
        ]
        assert responses[0].status_code == 403, text
        assert [each.json()["outcome"] for each in responses[1:]] == ["rejected"] * 2, text
    for method, path, body in (
        ("GET", "/api/me/links", None),
        ("POST", "/api/me/links/code", None),
        ("POST", "/api/me/links", {"code": code}),
        ("POST", "/api/me/links/answer", {"answer": "confirm"}),
        ("POST", "/api/me/links/unlink", {"platform": "telegram", "account": "eve"}),
    ):
        assert (await program.request(method, path, json=body)).status_code == 403
    completion = {"model": "palaver", "messages": [{"role": "user", "content": "/link confirm"}]}
    await program.post("/v1/chat/completions", json=completion)
    await write_from_telegram(web, "/link confirm")
    pending = (await owner.get("/api/me/links")).json()["pending"]
    assert pending is not None, "still waits for the person"
    assert not pending["is_confirmed"]
