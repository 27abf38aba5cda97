"""Recordings and answers that are read aloud, over the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivers.openai_server import KEY, OpenAIServer, reply_with_audio, reply_with_error, reply_with_transcript
from palaver.config.agent_rules import AgentProfile, Provider, SpeechRules
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.web import StartWebServer

WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm" + b"\0" * 200
MP3 = b"ID3" + b"\0" * 40


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


def make_profile(server: OpenAIServer) -> AgentProfile:
    rules = SpeechRules(transcription="shop:whisper-1", speaking="shop:tts-1")
    return AgentProfile(providers={"shop": Provider(api_key=KEY, base_url=server.url)}, speech=rules)


async def test_a_recording_becomes_text_and_a_voice_message_keeps_it(
    start_web: StartWebServer, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_transcript("Water the plants"), reply_with_error(500, "later"))
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    client, eve = await web.sign_in(), await web.sign_in("eve")
    assert (await client.get("/api/speech")).json() == {
        "can_transcribe": True,
        "can_speak": True,
        "max_seconds": 900,
        "transcription_engine": "shop:whisper-1",
        "speaking_engine": "shop:tts-1",
        "problems": [],
    }
    assert (await eve.get("/api/speech")).json()["transcription_engine"] is None
    uploaded = (await client.post("/api/attachments", files={"file": ("voice.webm", WEBM)})).json()
    url = f"/api/attachments/{uploaded['id']}/transcript"
    assert (await eve.post(url)).status_code == 404
    assert server.requests == []
    assert (await client.post(url)).json() == {"text": "Water the plants"}
    failed = await client.post(url)
    assert failed.status_code == 502
    assert "later" in failed.json()["error"]["message"]
    session_id = await web.create_session(client)
    part = {"type": "attachment", "id": uploaded["id"], "transcript": "Water the plants"}
    await web.send_message(client, session_id, [part])
    events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    content = next(event["message"]["content"] for event in events if event["message"])
    assert content[0]["transcript"] == "Water the plants"
    assert content[0]["media_type"] == "audio/webm"


async def test_an_answer_is_read_aloud_to_those_who_can_see_it(start_web: StartWebServer, server: OpenAIServer) -> None:
    server.add_replies(reply_with_audio(MP3))
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    client, eve = await web.sign_in(), await web.sign_in("eve")
    session_id = await web.create_conversation(client, "hello")
    events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    question, answer = [event["seq"] for event in events if event["message"]]
    url = f"/api/sessions/{session_id}/messages/{answer}/speech"
    missing = await eve.post("/api/sessions/20200101_000000_00000000/messages/2/speech")
    assert (await eve.post(url)).status_code == missing.status_code == 404
    response = await client.post(url)
    assert response.status_code == 200, response.text
    assert (response.content, response.headers["content-type"]) == (MP3, "audio/mpeg")
    assert response.headers["palaver-pieces"] == "1"
    assert (await client.post(url, params={"piece": 7})).status_code == 422
    assert (await client.post(f"/api/sessions/{session_id}/messages/{question}/speech")).status_code == 422
    assert len(server.requests) == 1


async def test_without_an_engine_the_page_is_told(start_web: StartWebServer) -> None:
    profile = AgentProfile(speech=SpeechRules(transcription="nowhere:x", speaking="off"))
    web = await start_web(ScriptedAgent(), profile=profile)
    status = (await (await web.sign_in()).get("/api/speech")).json()
    assert (status["can_transcribe"], status["can_speak"]) == (False, False)
    assert "nowhere" in status["problems"][0]
