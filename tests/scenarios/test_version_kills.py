"""`kill -9` after any statement of a change of the version: the version before it, or the new one, and never half."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.sessions import table as sessions, versions_table as versions
from scenarios.store_harness import find_inconsistencies

if TYPE_CHECKING:
    from palaver import SessionStore
    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]
SCRIPT = Path(__file__).with_name("version_process.py")
MAX_STATEMENTS = 60


@pytest.mark.parametrize("action", ["start", "choose"])
def test_a_killed_change_of_the_version_leaves_the_old_or_the_new_one(
    launcher: WarmLauncher, store: SessionStore, store_url: str, action: str
) -> None:
    session_id = store.get_or_create_session(SessionSource("telegram", "ada", user_id="ada")).session_id
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    first = store.append_to_transcript(session_id, {"role": "user", "content": "old"})
    store.append_to_transcript(session_id, {"role": "assistant", "content": "answer"})
    before, after = ["old", "answer"], ["new"]
    if action == "choose":
        store.engine.run(Write(lambda tx: versions.start_version(tx, no, first, 1_000_000)))
        store.append_to_transcript(session_id, {"role": "user", "content": "second"})
        before, after = ["second"], before

    def load_texts() -> list[str]:
        return [message["content"] for message in store.load_transcript(session_id)]

    kills = 0
    step = 1 if store_url.startswith("sqlite:") else 4  # what is undone depends on the moment and not on the engine
    for statements in range(1, MAX_STATEMENTS, step):
        ended = launcher.run_script(SCRIPT, store_url, session_id, action, str(first), str(statements))
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        kills += 1
        assert load_texts() == before
    assert kills >= 5
    assert load_texts() == after
    assert find_inconsistencies(store_url) == []
