"""The workspace behind the local Slack: channels, messages, threads and files, and what each method does to them."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
TOKEN = "xoxb-4242424242-5353535353-localServerCheckOnly"
APP_TOKEN = "xapp-1-A0PALAVER-6464646464-localServerCheckOnly"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"
BOT_USER, BOT_ID, TEAM = "U0PALAVER", "B0PALAVER", "T0TEAM"
ADA, BEN = "U0ADA", "U0BEN"
DM, BEN_DM, CHANNEL = "D0ADA", "D0BEN", "C0ENGINES"
OTHER_CHANNEL, OTHER_DM = "C0GARDEN", "D0ADABEN"  # the app is in neither, and can't see the second one
SCOPES = (
    "chat:write,app_mentions:read,im:history,im:read,mpim:history,mpim:read,channels:history,channels:read,"
    "groups:history,groups:read,users:read,files:read,files:write,reactions:read,reactions:write,commands"
)


class Refused(Exception):
    """Slack answers that it did not do it; the text is the code."""


class SlackWorkspace:
    """What people and the app see."""

    def __init__(self, *, sends_echoes: bool = True) -> None:
        self.messages: dict[tuple[str, str], JSON] = {}  # channel and ts → message, in the order of sending
        self.reactions: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)  # → name and user
        self.statuses: dict[tuple[str, str], str] = {}  # channel and thread → what the app does
        self.ephemeral: list[JSON] = []
        self.files: dict[str, JSON] = {}
        self.contents: dict[str, bytes] = {}
        self.channels: dict[str, JSON] = {
            DM: {"id": DM, "is_im": True, "user": ADA},
            BEN_DM: {"id": BEN_DM, "is_im": True, "user": BEN},
            CHANNEL: {"id": CHANNEL, "is_channel": True, "name": "engines", "is_member": True},
            OTHER_CHANNEL: {"id": OTHER_CHANNEL, "is_channel": True, "name": "garden", "is_member": False},
        }
        self.locales: dict[str, str] = {}  # of users; others: en-US
        self.users: dict[str, str] = {ADA: "Ada", BEN: "Ben", BOT_USER: "Palaver"}
        self.has_socket_scope = True
        self.sends_echoes = sends_echoes  # our own messages come back as events
        self.url = ""
        self._ids = itertools.count(1)
        self._last_ts = 0.0

    def push(self, event: JSON) -> JSON:
        """Send an event to the app."""
        raise NotImplementedError

    def make_ts(self) -> str:
        self._last_ts = max(self._last_ts + 0.0001, time.time())
        return f"{self._last_ts:.6f}"

    def add_file(self, name: str, data: bytes, **fields: Any) -> JSON:
        file_id = f"F{next(self._ids)}"
        url = f"{self.url}/files/{file_id}"
        self.contents[file_id] = data
        self.files[file_id] = {
            "id": file_id,
            "created": 1,
            "name": name,
            "title": name,
            "mimetype": "text/plain",
            "filetype": "text",
            "pretty_type": "Plain Text",
            "editable": False,
            "size": len(data),
            "mode": "hosted",
            "is_external": False,
            "external_type": "",
            "is_public": False,
            "public_url_shared": False,
            "display_as_bot": False,
            "username": "",
            "url_private": url,
            "url_private_download": url,
            "permalink": url,
            "channels": [],
            "groups": [],
            **fields,
        }
        return self.files[file_id]

    def expire_streams(self) -> None:
        for message in self.messages.values():
            if message.get("streaming_state") == "in_progress":
                message["streaming_state"] = "errored"

    def list_own_messages(self, channel: str = DM) -> list[JSON]:
        """Return what people see of the app in a channel and its threads."""
        return [each for (place, _), each in self.messages.items() if place == channel and each["user"] == BOT_USER]

    def list_texts(self, channel: str = DM) -> list[str]:
        return [get_shown_text(message) for message in self.list_own_messages(channel)]

    def act(self, method: str, parameters: JSON) -> JSON:
        actions: dict[str, Callable[[JSON], JSON]] = {
            "auth.test": lambda _: {
                "user_id": BOT_USER,
                "bot_id": BOT_ID,
                "team_id": TEAM,
                "user": "palaver",
                "team": "Engines",
            },
            "apps.connections.open": self._open_connection,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "chat.startStream": self._start_stream,
            "chat.appendStream": self._append_stream,
            "chat.stopStream": self._stop_stream,
            "chat.postEphemeral": self._post_ephemeral,
            "conversations.history": self._list_history,
            "conversations.replies": self._list_replies,
            "conversations.info": lambda asked: {"channel": self._find_channel(asked["channel"])},
            "users.info": self._find_user,
            "users.conversations": lambda asked: _cut_page(
                "channels", [each for each in self.channels.values() if each.get("is_member", True)], asked
            ),
            "reactions.add": self._add_reaction,
            "reactions.remove": self._remove_reaction,
            "reactions.get": self._get_reactions,
            "files.getUploadURLExternal": self._offer_upload,
            "files.completeUploadExternal": self._share_file,
            "files.info": lambda asked: {"file": self.files[asked["file"]]},
            "assistant.threads.setStatus": self._set_status,
        }
        return actions[method](parameters)

    def _open_connection(self, _asked: JSON) -> JSON:
        if not self.has_socket_scope:
            return {"ok": False, "error": "missing_scope", "needed": "connections:write"}
        return {"url": f"{self.url.replace('http', 'ws', 1)}/socket?ticket={next(self._ids)}"}

    def _find_channel(self, channel: str) -> JSON:
        if channel not in self.channels:
            raise Refused("channel_not_found")
        if self.channels[channel].get("is_archived"):
            raise Refused("is_archived")
        return self.channels[channel]

    def _find_user(self, asked: JSON) -> JSON:
        if asked["user"] not in self.users:
            raise Refused("user_not_found")
        name = self.users[asked["user"]]
        user = {"id": asked["user"], "name": name.lower(), "profile": {"display_name": name}}
        if asked.get("include_locale"):
            user["locale"] = self.locales.get(asked["user"], "en-US")
        return {"user": user}

    def _find_own(self, asked: JSON) -> JSON:
        self._find_channel(asked["channel"])
        message = self.messages.get((asked["channel"], asked["ts"]))
        if message is None or message["user"] != BOT_USER:
            raise Refused("message_not_found")
        return message

    def _find_joined(self, channel: str) -> JSON:
        if not self._find_channel(channel).get("is_member", True):
            raise Refused("not_in_channel")
        return self.channels[channel]

    def _add_own(self, channel: str, fields: JSON) -> JSON:
        self._find_joined(channel)
        thread = fields.get("thread_ts")
        if thread is not None and (channel, thread) not in self.messages:
            raise Refused("thread_not_found")
        ts = self.make_ts()
        message = {"type": "message", "user": BOT_USER, "bot_id": BOT_ID, "ts": ts, "text": "", **fields}
        self.messages[channel, ts] = message
        if self.sends_echoes:
            shown = {name: each for name, each in message.items() if name not in {"metadata", "streaming_state"}}
            kind = "im" if channel.startswith("D") else "channel"
            self.push({**shown, "channel": channel, "channel_type": kind, "event_ts": ts})
        return message

    def _post(self, asked: JSON) -> JSON:
        _check_length(asked)
        kept = ("text", "blocks", "metadata", "thread_ts")
        message = self._add_own(asked["channel"], {name: asked[name] for name in kept if name in asked})
        return {"channel": asked["channel"], "ts": message["ts"], "message": message}

    def _update(self, asked: JSON) -> JSON:
        _check_length(asked)
        message = self._find_own(asked)
        if message.get("streaming_state") == "in_progress":
            raise Refused("streaming_state_conflict")
        message |= {name: asked[name] for name in ("text", "blocks", "metadata") if name in asked}
        return {"channel": asked["channel"], "ts": asked["ts"], "text": message["text"]}

    def _delete(self, asked: JSON) -> JSON:
        message = self._find_own(asked)
        if message.get("streaming_state") == "in_progress":
            raise Refused("streaming_state_conflict")
        del self.messages[asked["channel"], asked["ts"]]
        return {}

    def _start_stream(self, asked: JSON) -> JSON:
        if not asked["channel"].startswith("D") and not (
            asked.get("recipient_user_id") and asked.get("recipient_team_id")
        ):
            raise Refused("missing_recipient_user_id")
        fields = {"text": asked.get("markdown_text", ""), "thread_ts": asked["thread_ts"]}
        message = self._add_own(asked["channel"], {**fields, "streaming_state": "in_progress"})
        return {"channel": asked["channel"], "ts": message["ts"]}

    def _append_stream(self, asked: JSON) -> JSON:
        message = self._find_stream(asked)
        message["text"] += asked.get("markdown_text", "")
        return {"channel": asked["channel"], "ts": asked["ts"]}

    def _stop_stream(self, asked: JSON) -> JSON:
        self._find_stream(asked)["streaming_state"] = "completed"
        return {"channel": asked["channel"], "ts": asked["ts"]}

    def _find_stream(self, asked: JSON) -> JSON:
        message = self._find_own(asked)
        if message.get("streaming_state") != "in_progress":
            raise Refused("message_not_in_streaming_state")
        return message

    def _post_ephemeral(self, asked: JSON) -> JSON:
        self._find_joined(asked["channel"])
        self.ephemeral.append(asked)
        return {"message_ts": self.make_ts()}

    def _set_status(self, asked: JSON) -> JSON:
        self._find_channel(asked["channel_id"])
        self.statuses[asked["channel_id"], asked["thread_ts"]] = asked["status"]
        return {}

    # ---- history ---------------------------------------------------------------------------------------------

    def _list_channel(self, channel: str, oldest: str) -> list[JSON]:
        self._find_channel(channel)
        return [
            message
            for (place, ts), message in self.messages.items()
            if place == channel and float(ts) > float(oldest or 0)
        ]

    def _list_history(self, asked: JSON) -> JSON:
        found = []
        for message in self._list_channel(asked["channel"], asked.get("oldest", "0")):
            if message.get("thread_ts", message["ts"]) != message["ts"]:
                continue
            replies = [
                each["ts"]
                for (place, _), each in self.messages.items()
                if place == asked["channel"] and each.get("thread_ts") == message["ts"] != each["ts"]
            ]
            extra = {"thread_ts": message["ts"], "reply_count": len(replies), "latest_reply": max(replies, default="")}
            found.append({**message, **(extra if replies else {})})
        return _cut_page("messages", found[::-1], asked)

    def _list_replies(self, asked: JSON) -> JSON:
        channel, ts = asked["channel"], asked["ts"]
        parent = self.messages.get((channel, ts))
        if parent is None:
            raise Refused("thread_not_found")
        replies = [
            each for each in self._list_channel(channel, asked.get("oldest", "0")) if each.get("thread_ts") == ts
        ]
        return _cut_page("messages", [parent, *(each for each in replies if each["ts"] != ts)], asked)

    # ---- reactions and files ---------------------------------------------------------------------------------

    def _find_message(self, asked: JSON) -> tuple[str, str]:
        key = asked["channel"], asked["timestamp"]
        if key not in self.messages:
            raise Refused("message_not_found")
        return key

    def _add_reaction(self, asked: JSON) -> JSON:
        reactions = self.reactions[self._find_message(asked)]
        if (asked["name"], BOT_USER) in reactions:
            raise Refused("already_reacted")
        reactions.append((asked["name"], BOT_USER))
        return {}

    def _remove_reaction(self, asked: JSON) -> JSON:
        reactions = self.reactions[self._find_message(asked)]
        if (asked["name"], BOT_USER) not in reactions:
            raise Refused("no_reaction")
        reactions.remove((asked["name"], BOT_USER))
        return {}

    def _get_reactions(self, asked: JSON) -> JSON:
        reactions = [{"name": name, "users": [user]} for name, user in self.reactions[self._find_message(asked)]]
        return {"type": "message", "message": {"ts": asked["timestamp"], "reactions": reactions}}

    def _offer_upload(self, asked: JSON) -> JSON:
        file = self.add_file(asked["filename"], b"", size=asked["length"], user=BOT_USER)
        return {"upload_url": f"{self.url}/upload/{file['id']}", "file_id": file["id"]}

    def _share_file(self, asked: JSON) -> JSON:
        files = [self.files[each["id"]] for each in asked["files"]]
        thread = {"thread_ts": asked["thread_ts"]} if "thread_ts" in asked else {}
        if thread and (asked["channel_id"], asked["thread_ts"]) not in self.messages:
            raise Refused("thread_not_found")
        channel = asked["channel_id"]
        self._find_channel(channel)
        ts = self.make_ts()
        fields = {"type": "message", "subtype": "file_share", "user": BOT_USER, "text": "", "ts": ts, "files": files}
        self.messages[channel, ts] = {**fields, **thread, "bot_id": BOT_ID}
        for file in files:
            file["shares"] = {"private": {channel: [{"ts": ts, **thread}]}}
        return {"files": files}


def get_shown_text(message: JSON) -> str:
    """Return what people see of a message: its Markdown block, or the text of a stream."""
    blocks = [block["text"] for block in message.get("blocks", []) if block["type"] == "markdown"]
    return "\n".join(blocks) or str(message["text"])


def _check_length(asked: JSON) -> None:
    texts = [block["text"] for block in asked.get("blocks", []) if block["type"] == "markdown"]
    if sum(map(len, texts)) > 12_000:
        raise Refused("msg_blocks_too_long")
    if not asked.get("text", "").strip():
        raise Refused("no_text")


def _cut_page(field: str, entries: list[JSON], asked: JSON) -> JSON:
    start, limit = int(asked.get("cursor") or 0), asked.get("limit", 100)
    following = str(start + limit) if start + limit < len(entries) else ""
    return {field: entries[start : start + limit], "response_metadata": {"next_cursor": following}}
