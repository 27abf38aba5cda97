"""Imports on the page, for oneself: upload, check, confirm; safe against other people, restarts and bad files."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Principal
from palaver.app import make_web_state
from palaver.config.agent_rules import WebRules
from palaver.core.errors import NotAllowed
from palaver.core.ids import PersonId
from palaver.people.model import Role
from palaver.testing import FakeClock
from support.exports import make_chatgpt_conversation, make_chatgpt_export, make_claude_export
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from support.web import StartWebServer, WebServer

SECRET = "xylophone"


def make_export(count: int = 2) -> bytes:
    return make_chatgpt_export(
        *(
            make_chatgpt_conversation(number, f"where is my {SECRET} {number}?", "In the cellar.", f"Lessons {number}")
            for number in range(1, count + 1)
        )
    )


async def upload(client: httpx2.AsyncClient, data: bytes, name: str = "export.zip") -> dict[str, Any]:
    response = await client.post("/api/imports", params={"name": name}, content=data)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def wait_for_state(client: httpx2.AsyncClient, import_id: str, *states: str) -> dict[str, Any]:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            found: dict[str, Any] = (await client.get(f"/api/imports/{import_id}")).json()
            if found["state"] in states:
                return found
            await asyncio.sleep(0.01)


async def import_file(client: httpx2.AsyncClient, data: bytes, name: str = "export.zip") -> dict[str, Any]:
    """Upload, confirm and wait; return the result."""
    import_id = (await upload(client, data, name))["id"]
    await wait_for_state(client, import_id, "ready")
    response = await client.post(f"/api/imports/{import_id}/start")
    assert response.status_code == 202, response.text
    return await wait_for_state(client, import_id, "done", "failed")


async def list_titles(client: httpx2.AsyncClient) -> list[str]:
    sessions = (await client.get("/api/sessions")).json()["sessions"]
    return sorted(session["title"] for session in sessions)


def list_files(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "imports").glob("*"))


async def test_a_file_is_checked_first_and_imported_when_confirmed(web: WebServer, tmp_path: Path) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export()))["id"]
    ready = await wait_for_state(ada, import_id, "ready")
    assert (ready["format"], ready["name"], ready["total"]) == ("chatgpt", "export.zip", 2)
    assert ready["report"]["dry_run"] is True
    assert ready["report"]["counts"]["conversations"] == 2
    assert ready["report"]["counts"]["messages"] == 4
    assert await list_titles(ada) == []

    assert (await ada.post(f"/api/imports/{import_id}/start")).status_code == 202
    done = await wait_for_state(ada, import_id, "done")
    assert done["report"]["dry_run"] is False
    assert done["report"]["counts"]["conversations"] == 2
    assert await list_titles(ada) == ["Lessons 1", "Lessons 2"]
    found = (await ada.get("/api/search", params={"query": SECRET})).json()
    assert len(found["hits"]) == 2
    assert list_files(tmp_path) == [f"{import_id}.json"]  # the bytes are gone, the result stays for a day
    assert (await ada.delete(f"/api/imports/{import_id}")).status_code == 204
    assert list_files(tmp_path) == []
    assert await list_titles(ada) == ["Lessons 1", "Lessons 2"]


async def test_the_same_file_again_changes_nothing(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    await import_file(ada, make_export())
    again = await import_file(ada, make_export())
    assert again["report"]["counts"]["conversations"] == 0
    assert again["report"]["counts"]["unchanged"] == 2
    assert await list_titles(ada) == ["Lessons 1", "Lessons 2"]


async def test_other_formats_are_recognized_by_their_content(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    claude = await import_file(ada, make_claude_export("hello?", "Hello.", "Greetings"), "conversations.json")
    assert (claude["format"], claude["state"]) == ("claude", "done")
    assert await list_titles(ada) == ["Greetings"]


async def test_an_export_of_palaver_comes_back(web: WebServer) -> None:
    ada, ben = await web.sign_in("ada"), await web.sign_in("ben")
    await web.create_conversation(ada, f"my {SECRET}", title="Lessons")
    archive = await ada.get("/api/me/export")
    assert archive.status_code == 200, archive.text
    result = await import_file(ben, archive.content, "palaver.zip")
    assert (result["format"], result["state"]) == ("palaver", "done"), result
    assert await list_titles(ben) == ["Lessons"]


async def test_other_people_see_nothing_of_it(web: WebServer) -> None:
    ada, ben, owner = await web.sign_in("ada"), await web.sign_in("ben"), await web.sign_in()
    import_id = (await upload(ada, make_export()))["id"]
    await wait_for_state(ada, import_id, "ready")
    for client in (ben, owner):
        assert (await client.get("/api/imports")).json()["imports"] == []
        assert (await client.get(f"/api/imports/{import_id}")).status_code == 404
        assert (await client.post(f"/api/imports/{import_id}/start")).status_code == 404
        assert (await client.delete(f"/api/imports/{import_id}")).status_code == 404
    await ada.post(f"/api/imports/{import_id}/start")
    await wait_for_state(ada, import_id, "done")
    for client in (ben, owner):
        assert await list_titles(client) == []
        assert (await client.get("/api/search", params={"query": SECRET})).json()["hits"] == []


def make_zip(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/"), data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "problem"),
    [
        (b"hello", "notes.txt", "is not an export that Palaver knows"),
        (b'{"a": 1}', "export.json", "is not an export that Palaver knows"),
        (make_export()[:200], "export.zip", "damaged zip file"),
        (make_zip(photo=b"xxxx"), "photos.zip", "is not an export that Palaver knows"),
        (b"\0" * 5000, "../../etc/passwd", "is not an export that Palaver knows"),
        (b'SQLite format 3\0 "chat": {', "webui.db", "is a database, not an export"),
        (b'SQLite format 3\0 "mapping": {', "conversations.json", "is a database, not an export"),
        (b'[{"mapping": {"a"', "conversations.json", ""),
        (b'[{"mapping": {}}, 7, null, {"mapping": 5}]', "conversations.json", ""),
    ],
)
async def test_a_file_that_is_no_export_fails_with_a_reason(
    web: WebServer, tmp_path: Path, data: bytes, name: str, problem: str
) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, data, name))["id"]
    found = await wait_for_state(ada, import_id, "failed", "ready")
    if problem:
        assert found["state"] == "failed"
        assert problem in found["error"]["message"]
        assert str(tmp_path) not in found["error"]["message"]
        german = (await ada.get(f"/api/imports/{import_id}", headers={"Accept-Language": "de"})).json()
        assert german["error"] != found["error"]
        assert german["error"]["message"].startswith(("Das ist ", "Diese Datei "))
    else:
        assert found["error"] is not None or found["report"]["problems"]["count"] > 0, found
    assert found["name"] == name.rpartition("/")[2]
    assert await list_titles(ada) == []


async def test_a_file_that_is_too_large_is_refused_while_it_arrives(start_web: StartWebServer, tmp_path: Path) -> None:
    web = await start_web()
    web.state.imports._get_max_bytes = lambda: 1000
    ada = await web.sign_in("ada")
    response = await ada.post("/api/imports", content=b"x" * 2000)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "import_too_large"
    assert response.json()["error"]["facts"]["limit_bytes"] == 1000
    assert list_files(tmp_path) == []
    assert (await ada.get("/api/imports")).json() == {"imports": [], "max_bytes": 1000}


async def test_only_a_few_files_wait_at_once_and_an_empty_one_is_refused(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    assert (await ada.post("/api/imports", content=b"")).status_code == 422
    for _ in range(3):
        await wait_for_state(ada, (await upload(ada, make_export()))["id"], "ready")
    response = await ada.post("/api/imports", content=make_export())
    assert response.json()["error"]["facts"] == {"what": "imports", "limit": 3}


async def test_guests_and_readers_cannot_import(web: WebServer) -> None:
    read_chunks = []

    async def read_file() -> AsyncIterator[bytes]:
        read_chunks.append(b"x")
        yield b"x"

    with pytest.raises(NotAllowed):
        await web.state.imports.upload(Principal(PersonId("p_guest"), Role.GUEST), "export.zip", read_file())
    assert read_chunks == []
    reader = await web.open_token_client("read", person="ada")
    assert (await reader.post("/api/imports", content=make_export())).status_code == 403


async def test_an_import_that_a_stopped_server_left_goes_on_at_the_next_start(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export(30)))["id"]
    await wait_for_state(ada, import_id, "ready")
    imports = web.state.imports
    imports._is_stopping = True
    await ada.post(f"/api/imports/{import_id}/start")
    await asyncio.gather(*imports._tasks.values())
    assert (await ada.get(f"/api/imports/{import_id}")).json()["state"] == "importing"
    assert len(await list_titles(ada)) < 30

    restarted = make_web_state(web.gateway, WebRules(), web.state.settings).imports
    await restarted.start()
    try:
        done = await wait_for_state(ada, import_id, "done")
        assert done["report"]["counts"]["conversations"] + done["report"]["counts"]["unchanged"] == 30
        assert len((await ada.get("/api/sessions", params={"limit": 50})).json()["sessions"]) == 30
    finally:
        await restarted.stop()


async def test_uploads_are_deleted_after_a_day(start_web: StartWebServer, tmp_path: Path) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export()))["id"]
    await wait_for_state(ada, import_id, "ready")
    uploads = web.state.imports._uploads
    assert uploads.delete_old() == 0
    clock.advance(hours=25)
    assert uploads.delete_old() > 0
    assert list_files(tmp_path) == []


async def test_what_a_process_that_died_has_left_is_checked_again_or_deleted(web: WebServer, tmp_path: Path) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export()))["id"]
    await wait_for_state(ada, import_id, "ready")
    uploads, person_id = web.state.imports._uploads, (await ada.get("/api/me")).json()["person"]["id"]
    uploads.save(replace(uploads.get(person_id, import_id), state="checking", report=None))  # as if it died meanwhile
    for name in ("imp_0000000000000000.part", "imp_0000000000000001-file.zip"):  # before they were complete or known
        (tmp_path / "imports" / name).write_bytes(b"half")
        os.utime(tmp_path / "imports" / name, (1, 1))
    restarted = make_web_state(web.gateway, WebRules(), web.state.settings).imports
    await restarted.start()
    try:
        again = await wait_for_state(ada, import_id, "ready")
        assert again["report"]["counts"]["conversations"] == 2
    finally:
        await restarted.stop()
    uploads.delete_old()
    assert list_files(tmp_path) == [f"{import_id}-file.zip", f"{import_id}.json"]


async def test_erasing_a_person_deletes_their_uploads(web: WebServer, tmp_path: Path) -> None:
    ada, ben, owner = await web.sign_in("ada"), await web.sign_in("ben"), await web.sign_in()
    kept = (await upload(ben, make_export()))["id"]
    await wait_for_state(ada, (await upload(ada, make_export()))["id"], "ready")
    await wait_for_state(ben, kept, "ready")
    ada_id = (await ada.get("/api/me")).json()["person"]["id"]
    principal = Principal(PersonId((await owner.get("/api/me")).json()["person"]["id"]), Role.OWNER)
    await web.state.erasures.erase(principal, ada_id)
    assert list_files(tmp_path) == [f"{kept}-file.zip", f"{kept}.json"]


async def test_an_upload_that_breaks_off_leaves_nothing(web: WebServer, tmp_path: Path) -> None:
    ada = await web.sign_in("ada")

    async def break_off() -> Any:
        yield make_export()[:100]
        raise RuntimeError("the cable was pulled")

    with pytest.raises(RuntimeError):
        await ada.post("/api/imports", content=break_off())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while list_files(tmp_path):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await ada.get("/api/imports")).json()["imports"] == []


async def test_files_that_are_still_arriving_count_too(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    principal = Principal(PersonId((await ada.get("/api/me")).json()["person"]["id"]), Role.MEMBER)
    is_complete = asyncio.Event()

    async def read_slowly() -> AsyncIterator[bytes]:
        yield make_export()
        await is_complete.wait()

    imports = web.state.imports
    arriving = [asyncio.create_task(imports.upload(principal, "export.zip", read_slowly())) for _ in range(3)]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while sum(imports._uploads._receiving.values()) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    refused = await ada.post("/api/imports", content=make_export())
    assert refused.json()["error"]["code"] == "limit_reached"
    is_complete.set()
    await asyncio.gather(*arriving)


async def test_only_the_last_results_are_kept(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.transfer.uploads.MAX_RESULTS_PER_PERSON", 3)
    ada = await web.sign_in("ada")
    for _ in range(6):
        await wait_for_state(ada, (await upload(ada, b"no export"))["id"], "failed")
    assert len((await ada.get("/api/imports")).json()["imports"]) == 3


async def test_confirming_twice_at_once_imports_once(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export(20)))["id"]
    await wait_for_state(ada, import_id, "ready")
    answers = await asyncio.gather(*(ada.post(f"/api/imports/{import_id}/start") for _ in range(4)))
    assert {answer.status_code for answer in answers} == {202}
    done = await wait_for_state(ada, import_id, "done", "failed")
    assert done["report"]["counts"]["conversations"] == 20
    assert done["report"]["counts"]["unchanged"] == 0


async def test_a_file_that_is_deleted_while_it_is_checked_stays_deleted(web: WebServer, tmp_path: Path) -> None:
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export(50)))["id"]
    assert (await ada.delete(f"/api/imports/{import_id}")).status_code == 204
    await asyncio.gather(*web.state.imports._tasks.values())
    assert (await ada.get("/api/imports")).json()["imports"] == []
    assert list_files(tmp_path) == []


async def test_an_import_that_was_confirmed_is_finished_however_long_the_server_was_stopped(
    start_web: StartWebServer,
) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    ada = await web.sign_in("ada")
    import_id = (await upload(ada, make_export()))["id"]
    await wait_for_state(ada, import_id, "ready")
    uploads, person_id = web.state.imports._uploads, (await ada.get("/api/me")).json()["person"]["id"]
    uploads.save(replace(uploads.get(person_id, import_id), state="importing"))
    clock.advance(hours=100)
    assert uploads.delete_old() == 0
