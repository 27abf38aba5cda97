"""A real Synapse on this machine, and people who have accounts there."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from support.process import find_free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import httpx2

START_SECONDS = 180.0  # on a busy machine
TIMEOUT_SECONDS = 60.0
REGISTRATION_SECRET = "registration"
UNLIMITED = {"per_second": 10_000, "burst_count": 10_000}

# It runs until no process uses it any more, also when the last one was killed: each holds a lock on the file `users`.
_START = """
import fcntl, os, runpy, shutil, sys, threading
folder = sys.argv[1]
users = open(os.path.join(folder, "users"))
def wait_for_end():
    fcntl.flock(users, fcntl.LOCK_EX)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
threading.Thread(target=wait_for_end, daemon=True).start()
sys.argv = ["synapse", "-c", os.path.join(folder, "homeserver.yaml")]
runpy.run_module("synapse.app.homeserver", run_name="__main__")
"""


@contextmanager
def share_synapse() -> Iterator[str]:
    """Yield the URL of a homeserver, which all processes of a test run share: it takes seconds to start one.

    It keeps everything in memory, and has no rate limits. Every account has a name of its own.
    """
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process-{os.getpid()}"
    folder = Path(tempfile.gettempdir()) / f"palaver-synapse-{run_id}"
    with _open_users_file(folder):
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (folder / "url").exists():
                (folder / "url").write_text(_start_synapse(folder))
        yield (folder / "url").read_text()


@contextmanager
def _open_users_file(folder: Path) -> Iterator[None]:
    """Keep the homeserver of a folder from ending. If one ends just now, wait until it has deleted its folder."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError), (folder / "users").open("a") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            if os.fstat(users.fileno()).st_ino == (folder / "users").stat().st_ino:
                yield
                return


def _start_synapse(folder: Path) -> str:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_1 {seed}\n")
    listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
    settings = {
        "server_name": "localhost",
        "pid_file": str(folder / "synapse.pid"),
        "public_baseurl": url,
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": ":memory:"}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "log_config": str(folder / "log.yaml"),
        "trusted_key_servers": [],
        "report_stats": False,
        "registration_shared_secret": REGISTRATION_SECRET,
        "macaroon_secret_key": "macaroon",
        "form_secret": "form",
        "bcrypt_rounds": 4,
        "presence": {"enabled": False},
        "rc_message": UNLIMITED,
        "rc_login": {"address": UNLIMITED, "account": UNLIMITED, "failed_attempts": UNLIMITED},
        "rc_joins": {"local": UNLIMITED, "remote": UNLIMITED},
        "rc_joins_per_room": UNLIMITED,
        "rc_invites": {"per_room": UNLIMITED, "per_user": UNLIMITED, "per_issuer": UNLIMITED},
        "rc_room_creation": UNLIMITED,
        "rc_registration": UNLIMITED,
    }
    (folder / "homeserver.yaml").write_text(json.dumps(settings))
    (folder / "log.yaml").write_text(json.dumps({"version": 1, "root": {"level": "ERROR"}}))
    command = [sys.executable, "-c", _START, str(folder)]
    with Path(os.devnull).open("rb") as nothing, (folder / "output").open("wb") as output:
        files = (nothing, output, output)
        streams = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number, file in enumerate(files)]
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=streams)  # it may outlive this process
    _wait_for_answer(pid, url, folder / "output")
    return url


def _wait_for_answer(pid: int, url: str, output: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), f"Synapse has ended: {output.read_text()[-2000:]}"
        try:
            urllib.request.urlopen(f"{url}/_matrix/client/versions", timeout=5).close()
        except OSError:
            assert time.monotonic() < deadline, f"Synapse does not answer: {output.read_text()[-2000:]}"
            time.sleep(0.05)
        else:
            return


@dataclass
class Person:
    """A person with an account on the homeserver, and the client they use."""

    url: str
    user_id: str
    password: str
    access_token: str
    device_id: str
    http: httpx2.AsyncClient = field(repr=False)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # of rooms, as far as they were synced
    typing: dict[str, list[str]] = field(default_factory=dict)  # who is typing, by room
    to_device: list[dict[str, Any]] = field(default_factory=list)  # what other devices have sent to this one
    _since: str | None = None

    @classmethod
    async def register(cls, url: str, http: httpx2.AsyncClient, name: str, *, is_admin: bool = False) -> Self:
        """Create an account with a name that no other account has."""
        username = f"{name.lower()}-{secrets.token_hex(4)}"
        path = f"{url}/_synapse/admin/v1/register"
        nonce = (await http.get(path)).json()["nonce"]
        role = "admin" if is_admin else "notadmin"
        signed = "\0".join([nonce, username, "secret password", role])
        mac = hmac.new(REGISTRATION_SECRET.encode(), signed.encode(), hashlib.sha1).hexdigest()
        fields = {"username": username, "displayname": name, "password": "secret password", "admin": is_admin}
        answer = (await http.post(path, json={**fields, "nonce": nonce, "mac": mac})).json()
        person = cls(url, answer["user_id"], "secret password", answer["access_token"], answer["device_id"], http)
        await person.sync(wait=False)
        return person

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Make a request as this person; `path` is below `/_matrix/client/v3/`, or starts with a slash."""
        address = path if path.startswith("/") else f"/_matrix/client/v3/{path}"
        response = await self.http.request(
            method,
            self.url + address,
            json=body,
            params=query,
            headers={"Authorization": f"Bearer {self.access_token}"},
        )
        assert response.status_code == 200, response.text
        return response.json()

    async def create_room(self, *invited: str, is_direct: bool = False, **options: Any) -> str:
        body = {"preset": "trusted_private_chat", "invite": list(invited), "is_direct": is_direct, **options}
        room_id: str = (await self.call("POST", "createRoom", body))["room_id"]
        return room_id

    async def join(self, room_id: str) -> None:
        await self.call("POST", f"join/{quote(room_id)}", {})

    async def say(self, room_id: str, text: str, **content: Any) -> str:
        """Write a message and return its id."""
        return await self.send(room_id, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    async def send(self, room_id: str, event_type: str, content: Mapping[str, Any]) -> str:
        path = f"rooms/{quote(room_id)}/send/{event_type}/{secrets.token_hex(8)}"
        event_id: str = (await self.call("PUT", path, content))["event_id"]
        return event_id

    async def edit(self, room_id: str, event_id: str, text: str) -> str:
        relation = {"rel_type": "m.replace", "event_id": event_id}
        new_content = {"msgtype": "m.text", "body": text}
        return await self.say(room_id, f"* {text}", **{"m.new_content": new_content, "m.relates_to": relation})

    async def react(self, room_id: str, event_id: str, emoji: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": emoji}
        return await self.send(room_id, "m.reaction", {"m.relates_to": relation})

    async def redact(self, room_id: str, event_id: str) -> None:
        await self.call("PUT", f"rooms/{quote(room_id)}/redact/{quote(event_id)}/{secrets.token_hex(8)}", {})

    async def upload(self, content: bytes, media_type: str) -> str:
        headers = {"Authorization": f"Bearer {self.access_token}", "Content-Type": media_type}
        response = await self.http.post(f"{self.url}/_matrix/media/v3/upload", content=content, headers=headers)
        url: str = response.json()["content_uri"]
        return url

    async def download(self, url: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.access_token}"}
        path = f"/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}"
        return (await self.http.get(self.url + path, headers=headers)).content

    async def list_events(self, room_id: str) -> list[dict[str, Any]]:
        """Return all events of a room as the server has them, oldest first, with edits applied by the server."""
        answer = await self.call("GET", f"rooms/{quote(room_id)}/messages", dir="f", limit="1000")
        events: list[dict[str, Any]] = answer["chunk"]
        return events

    async def sync(self, *, wait: bool = True) -> None:
        query = {"timeout": "10000" if wait else "0"} | ({"since": self._since} if self._since else {})
        answer = await self.call("GET", "sync", **query)
        self._since = answer["next_batch"]
        self.to_device += answer.get("to_device", {}).get("events", ())
        for room_id, room in answer.get("rooms", {}).get("join", {}).items():
            if room["timeline"].get("limited"):  # there were too many since the last time
                self.events[room_id] = await self.list_events(room_id)
            else:
                self.events.setdefault(room_id, []).extend(room["timeline"]["events"])
            for event in room.get("ephemeral", {}).get("events", ()):
                if event["type"] == "m.typing":
                    self.typing[room_id] = event["content"]["user_ids"]

    async def wait_for(
        self, room_id: str, condition: Callable[[dict[str, Any]], object], count: int = 1
    ) -> list[dict[str, Any]]:
        """Wait until a room has so many events that match."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                found = [event for event in self.events.get(room_id, ()) if condition(event)]
                if len(found) >= count:
                    return found
                await self.sync()

    async def wait_for_text(self, room_id: str, text: str) -> dict[str, Any]:
        """Wait for a message of another person, or an edit, that contains a text."""

        def matches(event: dict[str, Any]) -> bool:
            content = event["content"].get("m.new_content", event["content"])
            return event["sender"] != self.user_id and text in content.get("body", "")

        return (await self.wait_for(room_id, matches))[-1]
