"""Files that people send: what is taken, who sees it, how it is served, and when it goes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from palaver.domain.attachment import LARGEST, clean_name
from palaver.domain.clock import SystemClock
from palaver.services import attachments
from palaver.services.attachments import Attachments
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import ended

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from palaver import SessionStore
    from palaver.agent.base import AgentRequest
    from palaver.domain.person import Principal
    from support.web import StartWeb, Web

WORDS = hashlib.sha256(b"words").hexdigest()


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


async def send(client: httpx2.AsyncClient, data: bytes, name: str = "picture.png", kind: str = "image/png") -> Any:
    return await client.post("/api/attachments", files={"file": (name, data, kind)})


async def sent(client: httpx2.AsyncClient, data: bytes, name: str = "picture.png") -> str:
    answer = await send(client, data, name)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


# ---- taking and giving back --------------------------------------------------------------------------------


async def test_a_file_comes_back_as_it_was_sent(web: Web) -> None:
    owner = await web.client()
    made = (await send(owner, png())).json()
    assert made == {"id": made["id"], "name": "picture.png", "type": "image/png", "size": len(png())}
    back = await owner.get(f"/api/attachments/{made['id']}")
    assert (back.status_code, back.content) == (200, png())


@pytest.mark.parametrize(
    ("data", "claimed", "served", "shown"),
    [
        (png(), "text/html", "image/png", "inline"),
        (b"<html><script>alert(1)</script>", "text/html", "text/plain; charset=utf-8", "attachment"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml", "text/plain; charset=utf-8", "attachment"),
        (b"%PDF-1.7 and so on \xff", "application/pdf", "application/pdf", "attachment"),
        ("grün".encode(), "application/octet-stream", "text/plain; charset=utf-8", "attachment"),
    ],
)
async def test_what_a_file_is_its_bytes_say_and_nothing_of_it_runs(
    web: Web, data: bytes, claimed: str, served: str, shown: str
) -> None:
    owner = await web.client()
    made = (await send(owner, data, "thing.html", claimed)).json()
    back = await owner.get(f"/api/attachments/{made['id']}")
    assert back.headers["content-type"] == served
    assert back.headers["content-disposition"].partition(";")[0] == shown
    assert back.headers["x-content-type-options"] == "nosniff"
    assert back.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert back.content == data


@pytest.mark.parametrize(
    "data", [b"MZ\x90\0\x03", b"\x7fELF\x02\x01", b"PK\x03\x04\x14\0", b"\0\0\0", b"caf\xe9 in another encoding"]
)
async def test_files_of_other_kinds_are_refused_and_leave_nothing(web: Web, data: bytes, tmp_path: Path) -> None:
    refused = await send(await web.client(), data)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "attachment_refused")
    assert not [each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]


async def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(web: Web, tmp_path: Path) -> None:
    owner = await web.client()
    for size in (LARGEST + 1, LARGEST + 1_000_000):
        refused = await send(owner, b"a" * size, "long.txt")
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "attachment_too_large")
    assert not [each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..\\..\\evil.txt", "/etc/passwd", "a\0b", "\u202etxt.exe", "", "."]
)
async def test_no_path_is_made_from_what_a_client_sends(web: Web, tmp_path: Path, name: str) -> None:
    owner = await web.client()
    made = await send(owner, b"words", name or "x")
    assert made.status_code == 201
    assert not set(made.json()["name"]) & set("/\\\0\u202e")
    kept = [each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]
    assert [(each.parent.name, each.name) for each in kept] == [(WORDS[:2], WORDS)]
    for wanted in ("..%2f..%2fsecret", "%2e%2e", f"{made.json()['id']}%00", "a_" + "0" * 24):
        assert (await owner.get(f"/api/attachments/{wanted}")).status_code == 404


def test_a_long_name_keeps_its_ending() -> None:
    assert clean_name("x" * 500 + ".pdf").endswith("x.pdf")
    assert len(clean_name("x" * 500 + ".pdf")) == 120


async def test_a_request_without_a_file_is_told_how_to_send_one(web: Web) -> None:
    owner = await web.client()
    for answer in (
        await owner.post("/api/attachments", data={"file": "no file"}, files={}),
        await owner.post("/api/attachments", files={"other": ("a.txt", b"words", "text/plain")}),
        await owner.post("/api/attachments", content=b"words"),
        await owner.post(
            "/api/attachments", content=b"--x\r\nbroken", headers={"Content-Type": "multipart/form-data; boundary=x"}
        ),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_input")


async def test_equal_bytes_are_kept_once(web: Web, tmp_path: Path) -> None:
    owner, ada = await web.client(), await web.client("Ada")
    ids = {await sent(owner, png()), await sent(owner, png()), await sent(ada, png())}
    assert len(ids) == 3
    assert len([each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]) == 1


# ---- who sees it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
async def test_a_file_is_seen_by_its_sender_and_by_nobody_else(web: Web) -> None:
    owner, ada, ben = await web.client(), await web.client("Ada"), await web.client("Ben")
    file = await sent(ada, png())
    session = await web.session(ada)
    await web.say(ada, session, "look", attachments=[file])

    assert (await ada.get(f"/api/attachments/{file}")).status_code == 200
    missing = await ben.get("/api/attachments/a_" + "0" * 24)
    for stranger in (ben, owner):
        hidden = await stranger.get(f"/api/attachments/{file}")
        assert (hidden.status_code, hidden.content) == (404, missing.content)
    assert (await owner.get(f"/api/attachments/{file}?all=true")).status_code == 200
    assert (await ben.get(f"/api/attachments/{file}?all=true")).status_code == 403
    assert (await (await web.stranger()).get(f"/api/attachments/{file}")).status_code == 401


async def test_nobody_comes_by_a_file_by_naming_it_in_a_message(web: Web) -> None:
    ada, ben = await web.client("Ada"), await web.client("Ben")
    file = await sent(ada, png())
    session = await web.session(ben)
    for body in (
        {"content": "mine now", "attachments": [file]},
        {"content": [{"type": "attachment", "id": file}]},
        {"content": [{"type": "attachment"}]},
    ):
        answer = await ben.post(f"/api/sessions/{session}/messages", json={"key": "k", **body})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_attachment")
    assert (await ben.get(f"/api/attachments/{file}")).status_code == 404


async def test_a_part_that_would_be_fetched_from_elsewhere_is_refused(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    part = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}}
    answer = await owner.post(f"/api/sessions/{session}/messages", json={"key": "k", "content": [part]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_message")


async def test_a_message_names_its_files(web: Web) -> None:
    owner = await web.client()
    file = await sent(owner, png())
    session = await web.session(owner)
    await web.say(owner, session, "what is this?", attachments=[file])
    log = (await owner.get(f"/api/sessions/{session}/messages")).json()["events"]
    said = next(event["message"] for event in log if event["message"] and event["message"]["role"] == "user")
    assert said["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "attachment", "id": file, "name": "picture.png", "media_type": "image/png", "size": len(png())},
    ]


# ---- forgetting --------------------------------------------------------------------------------------------


async def test_a_file_goes_a_day_after_nothing_uses_it_and_stays_in_copies(start_web: StartWeb, tmp_path: Path) -> None:
    clock = FakeClock(SystemClock().now())
    web = await start_web(clock=clock)
    owner = await web.client()
    files = Attachments(web.gateway.store, tmp_path / "attachments")
    unused, used = await sent(owner, b"never said"), await sent(owner, png())
    session = await web.session(owner)
    await web.say(owner, session, "look", attachments=[used])
    copy = (await owner.post(f"/api/sessions/{session}/fork", json={})).json()["id"]

    for each in (tmp_path / "attachments").rglob("*"):
        os.utime(each, (0, 0))
    assert await files.tidy() == 0  # both are fresh
    clock.advance(days=2)
    assert await files.tidy() == 1
    owner = await web.client()
    assert (await owner.get(f"/api/attachments/{unused}")).status_code == 404
    assert (await owner.delete(f"/api/sessions/{session}")).status_code == 204
    assert await files.tidy() == 0
    assert (await owner.get(f"/api/attachments/{used}")).status_code == 200

    assert (await owner.delete(f"/api/sessions/{copy}")).status_code == 204
    assert await files.tidy() == 1
    assert not [each for each in (tmp_path / "attachments").rglob("*") if each.is_file()]


async def test_bytes_that_are_sent_again_while_they_are_let_go_stay(
    store: SessionStore, clock: FakeClock, tmp_path: Path
) -> None:
    principal = store.owner().principal
    files = Attachments(store, tmp_path / "files")
    for _ in range(20):
        await _take(files, principal, b"the same words")
        clock.advance(days=2)
        for each in (tmp_path / "files").rglob("*"):
            os.utime(each, (0, 0))
        made, _ = await asyncio.gather(_take(files, principal, b"the same words"), files.tidy())
        assert files.path(made).read_bytes() == b"the same words"


async def _take(files: Attachments, principal: Principal, data: bytes) -> Any:
    async def chunks() -> Any:
        yield data

    return await files.take(principal, "words.txt", chunks())


# ---- for the model -----------------------------------------------------------------------------------------


async def test_a_model_is_given_images_and_texts_of_its_own_conversation_only(
    store: SessionStore, dm: Any, tmp_path: Path
) -> None:
    files = Attachments(store, tmp_path / "files")
    here, there = store.record_user_message(dm(), "hi"), store.record_user_message(dm("ben"), "hi")
    ada = store.person_for(dm()).principal
    image, text = await _take(files, ada, png()), await _take(files, ada, b"a list of things")
    content = await files.attach(ada, here.session_id, "look", [image.id, text.id])
    messages = [{"role": "user", "content": content}]

    [shown] = await files.for_model(here.session_id, messages)
    assert [part["type"] for part in shown["content"]] == ["text", "image_url", "text"]
    assert shown["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "a list of things" in shown["content"][2]["text"]

    [blind] = await files.for_model(here.session_id, messages, images=False)
    assert blind["content"][1] == {"type": "text", "text": '(the file "words.txt", image/png)'}

    [elsewhere] = await files.for_model(there.session_id, messages)
    assert [part["text"] for part in elsewhere["content"][1:]] == ["(a file that is gone)"] * 2


async def test_of_many_images_a_model_is_given_the_last(
    store: SessionStore, dm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Attachments(store, tmp_path / "files")
    here = store.record_user_message(dm(), "hi")
    ada = store.person_for(dm()).principal
    messages = []
    for number in range(4):
        image = await _take(files, ada, png() + bytes(number))
        content = await files.attach(ada, here.session_id, f"look {number}", [image.id])
        messages.append({"role": "user", "content": content})
    monkeypatch.setattr(attachments, "MOST_FOR_A_MODEL", 3 * len(png()))
    shown = await files.for_model(here.session_id, messages)
    assert [each["content"][1]["type"] for each in shown] == ["text", "text", "image_url", "image_url"]
    assert "words.txt" in shown[0]["content"][1]["text"], "the others are named"


async def test_a_summary_is_made_of_what_was_in_the_files_too(start_web: StartWeb) -> None:
    def answer(request: AgentRequest) -> str:
        asked = str(request.messages[-1]["content"])
        return "They spoke of a recipe." if asked.startswith("Summarise this conversation") else "Yes."

    agent = ScriptedAgent(answer)
    web = await start_web(agent)
    owner = await web.client()
    session_id = await web.session(owner)
    recipe = await sent(owner, b"three eggs and some flour", "recipe.txt")
    await web.say(owner, session_id, "what is this?", attachments=[recipe])
    for _ in range(4):
        await web.say(owner, session_id, "go on")
    done = await owner.post(f"/api/sessions/{session_id}/compress", json={})
    await ended(web.gateway, done.json()["turn_id"])
    assert "three eggs and some flour" in str(agent.requests[-1].messages)
