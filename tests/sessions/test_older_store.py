"""A store that the version before the rooms has written opens and works."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from palaver import Platform, SessionSource, SessionStore
from palaver.memory.service import MemoryOperations
from palaver.prompts.service import SavedPromptOperations

STORE = Path(__file__).parent / "files" / "store_before_rooms.db.gz"
ADA = SessionSource(platform=Platform.TELEGRAM, chat_id="42", user_id="42", user_name="Ada")


@pytest.fixture
def older_store(tmp_path: Path) -> Path:
    path = tmp_path / "palaver.db"
    path.write_bytes(gzip.decompress(STORE.read_bytes()))
    return path


def test_everything_in_an_older_store_is_found(older_store: Path) -> None:
    with SessionStore.open(older_store) as store:
        view = store.seen_by(store.get_or_create_person(ADA).principal)
        newest, herons = view.list()
        assert (herons.title, herons.message_count) == ("Herons", 2)
        assert [each["content"] for each in store.load_transcript(herons.id)] == [
            "Where do herons nest?",
            "In colonies, high in trees.",
        ]
        assert (herons.usage.input_tokens, herons.usage.output_tokens) == (21, 6)
        assert [hit.session_id for hit in view.search("herons")] == [herons.id]
        assert [hit.session_id for hit in view.search("鹭")] == [newest.id]
        assert [project.name for project in view.projects.list()] == ["Birds"]
        assert [prompt.name for prompt in view.part(SavedPromptOperations).list()] == ["Ask"]
        assert [entry.memory.text for entry in view.part(MemoryOperations).list()] == ["Ada likes herons."]


def test_an_older_store_goes_on(older_store: Path) -> None:
    with SessionStore.open(older_store) as store:
        view = store.seen_by(store.get_or_create_person(ADA).principal)
        newest, herons = view.list()
        assert store.record_user_message(ADA, "Do they swim?").session_id == newest.id
        view.redo(herons.id)
        assert store.load_transcript(herons.id)[-1]["content"] == "On roofs."
        fork = view.fork(herons.id)
        assert len(store.load_transcript(fork.id)) == 4
        assert [hit.session_id for hit in view.search("swim")] == [newest.id]
