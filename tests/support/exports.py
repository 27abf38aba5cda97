"""Small exports of other programs, as people would drop them on the page."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

START = 1_760_000_000.0


def make_chatgpt_conversation(number: int, question: str, answer: str, title: str) -> dict[str, Any]:
    """Make a conversation of two messages, as ChatGPT exports it."""
    at = START + number * 1000
    texts = [("user", question), ("assistant", answer)]
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
    for index, (role, text) in enumerate(texts):
        mapping[f"n{index}"] = {
            "id": f"n{index}",
            "parent": "root" if index == 0 else f"n{index - 1}",
            "children": [f"n{index + 1}"] if index + 1 < len(texts) else [],
            "message": {
                "id": f"m{number}-{index}",
                "author": {"role": role},
                "create_time": at + index,
                "content": {"content_type": "text", "parts": [text]},
                "status": "finished_successfully",
                "metadata": {},
            },
        }
    return {
        "title": title,
        "create_time": at,
        "update_time": at + 1,
        "mapping": mapping,
        "current_node": f"n{len(texts) - 1}",
        "conversation_id": f"00000000-0000-4000-8000-{number:012d}",
        "id": f"00000000-0000-4000-8000-{number:012d}",
    }


def make_chatgpt_export(*conversations: dict[str, Any]) -> bytes:
    """Make the .zip file that ChatGPT gives people."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
        archive.writestr("user.json", json.dumps({"id": "user-1", "email": "ada@example.org"}))
    return file.getvalue()


def make_claude_export(question: str, answer: str, name: str) -> bytes:
    """Make the conversations.json that Claude gives people."""
    messages = [
        {
            "uuid": f"m{index}",
            "text": text,
            "content": [{"type": "text", "text": text}],
            "sender": sender,
            "created_at": f"2026-01-02T03:04:0{index}.000000Z",
            "updated_at": f"2026-01-02T03:04:0{index}.000000Z",
            "attachments": [],
            "files": [],
        }
        for index, (sender, text) in enumerate((("human", question), ("assistant", answer)))
    ]
    conversation = {
        "uuid": "11111111-0000-4000-8000-000000000001",
        "name": name,
        "created_at": "2026-01-02T03:04:00.000000Z",
        "updated_at": "2026-01-02T03:04:05.000000Z",
        "account": {"uuid": "22222222-0000-4000-8000-000000000001"},
        "chat_messages": messages,
    }
    return json.dumps([conversation]).encode()
