"""`kill -9` after a voice note was transcribed: it is answered once."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.core.engines.base import Read

if TYPE_CHECKING:
    from pathlib import Path

    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

PROGRAM = """
import asyncio, os, signal, sys
from datetime import timedelta
from pathlib import Path
from palaver import SessionSource, SessionStore
from palaver.core.crash_points import set_crash_hook
from palaver.sessions.inbound import Inbound, InboundFile
from palaver.config.agent_rules import AgentProfile, SpeechRules, TurnRules
from palaver.platforms.loopback import LOOPBACK
from palaver.media.attachments import Attachments
from palaver.gateway.gateway import Gateway
from palaver.sessions import turns_table as turns
from palaver.core.engines.base import Read
from palaver.testing import ScriptedAgent

url, folder, crash_at = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
set_crash_hook(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == crash_at else None)

async def read_note():
    yield b"OggS water the plants"

async def main():
    with SessionStore.open(url) as store:
        rules = TurnRules(open_platforms=frozenset({LOOPBACK}), model_titles=False)
        profile = AgentProfile(speech=SpeechRules(transcription_command=("cat", "{file}")))
        files = Attachments(store, folder / "attachments")
        gateway = Gateway(store, ScriptedAgent(), profile=profile, rules=rules, files=files)
        async with gateway.run(grace_seconds=5):
            source = SessionSource(LOOPBACK, "ada", user_id="ada", user_name="Ada")
            note = InboundFile(None, read_note, is_voice=True)
            receipt = await gateway.inbox.accept(Inbound(source=source, content="", message_id="1", files=[note]))
            async with asyncio.timeout(60):
                while not (await store.engine.arun(Read(lambda tx: turns.find(tx, receipt.turn_id)))).state.has_ended:
                    await asyncio.sleep(0.01)

asyncio.run(main())
"""


def run_program(launcher: WarmLauncher, url: str, folder: Path, crash_at: str) -> int:
    process = launcher.launch(url, str(folder), crash_at, env=os.environ, code=PROGRAM)
    _, errors = process.communicate()
    assert process.returncode in {0, -signal.SIGKILL}, errors
    return process.wait()


def test_a_voice_note_is_answered_once_if_the_process_dies_after_its_transcription(
    launcher: WarmLauncher, store_url: str, tmp_path: Path
) -> None:
    assert run_program(launcher, store_url, tmp_path, "speech.transcribed") == -signal.SIGKILL
    with SessionStore.open(store_url) as store:
        assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM turn"))) == []
    for _ in range(2):  # the platform sends it again, and once more
        assert run_program(launcher, store_url, tmp_path, "") == 0
    with SessionStore.open(store_url) as store:
        [session] = store.list_sessions()
        question, _answer = store.load_transcript(session.id)
        assert question["content"][0]["transcript"] == "OggS water the plants"
        assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM model_call"))) == []
