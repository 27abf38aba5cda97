"""A gateway with the demo agent and a Matrix account: what people see, from one end to the other."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Platform, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.drivers.demo import DemoAgent
from palaver.gateway.account_runner import ConnectionTiming
from palaver.gateway.gateway import Gateway
from palaver.media.attachments import Attachments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from .conftest import MakeAdapter
    from .homeserver import Person

pytestmark = pytest.mark.slow


@asynccontextmanager
async def run_gateway(folder: Path, bot: Person, make_adapter: MakeAdapter) -> AsyncIterator[Gateway]:
    """Run a gateway on a database and a folder for files, both of which stay after the block."""
    with SessionStore.open(folder / "palaver.db") as store:
        gateway = Gateway(
            store,
            DemoAgent(word_delay=0),
            profile=AgentProfile(),
            rules=TurnRules(open_platforms=frozenset({Platform.MATRIX})),
            adapters=[make_adapter(bot)],
            timing=ConnectionTiming(first_pause=0.05),
            files=Attachments(store, folder / "files"),
        )
        async with gateway.run(grace_seconds=5):
            yield gateway


def is_answer_to(text: str, bot: Person) -> Callable[[dict[str, Any]], bool]:
    def matches(event: dict[str, Any]) -> bool:
        content = event["content"].get("m.new_content", event["content"])
        return event["sender"] == bot.user_id and f"You said: “{text}" in content.get("body", "")

    return matches


async def test_two_people_a_group_a_thread_an_edit_a_file_and_a_restart(
    make_adapter: MakeAdapter, bot: Person, ada: Person, ben: Person, tmp_path: Path
) -> None:
    group = await ada.create_room(ben.user_id, bot.user_id, name="The club")
    await ben.join(group)
    async with run_gateway(tmp_path, bot, make_adapter):
        private = await ada.create_room(bot.user_id, is_direct=True)
        question = await ada.say(private, "My first question")
        await ada.wait_for(private, is_answer_to("My first question", bot))
        await ada.edit(private, question, "My better question")
        await ada.wait_for_text(private, "!retry")
        await ada.say(private, "!retry")  # as it is shown
        await ada.wait_for(private, is_answer_to("My better question", bot))

        await ben.wait_for(group, lambda event: event.get("state_key") == bot.user_id and is_join(event))
        mention = {"m.mentions": {"user_ids": [bot.user_id]}}
        await ben.say(group, "Not a question for you")
        root = await ben.say(group, "Palaver: and what do you think?", **mention)
        await ben.wait_for_text(group, "You said")
        thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        await ada.say(group, "Palaver: in the thread, please", **mention, **{"m.relates_to": thread})
        answer = await ada.wait_for(group, is_from(bot, rel_type="m.thread"))
        assert answer[0]["content"]["m.relates_to"]["event_id"] == root

    await ada.say(private, "While you were away")
    async with run_gateway(tmp_path, bot, make_adapter) as gateway:
        await ada.wait_for(private, is_answer_to("While you were away", bot))
        file = {"filename": "count.txt", "url": await ada.upload(b"one, two, three", "text/plain")}
        await ada.say(private, "Read this file", **file, msgtype="m.file", info={"mimetype": "text/plain"})
        await ada.wait_for(private, is_answer_to("Read this file", bot))
        transcripts = [json.dumps(gateway.store.load_transcript(each.id)) for each in gateway.store.list_sessions()]

    [own] = [transcript for transcript in transcripts if "My better question" in transcript]
    assert "count.txt" in own
    assert "what do you think" not in own
    answers = [event for event in ada.events[private] if is_answer_to("While you were away", bot)(event)]
    assert len({get_message_id(event) for event in answers}) == 1
    group_answers = {get_message_id(event) for event in await ben.list_events(group) if is_answer_to("", bot)(event)}
    assert len(group_answers) == 2


def is_join(event: dict[str, Any]) -> bool:
    return bool(event["content"].get("membership") == "join")


def is_from(bot: Person, *, rel_type: str) -> Callable[[dict[str, Any]], bool]:
    def matches(event: dict[str, Any]) -> bool:
        relation = event["content"].get("m.relates_to", {})
        return bool(event["sender"] == bot.user_id and relation.get("rel_type") == rel_type)

    return matches


def get_message_id(event: dict[str, Any]) -> str:
    """Return the id of the message that an event is, or that it edits."""
    relation = event["content"].get("m.relates_to", {})
    return str(relation["event_id"] if relation.get("rel_type") == "m.replace" else event["event_id"])
