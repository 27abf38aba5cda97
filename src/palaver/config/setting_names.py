"""Names of settings and their values, for people: by a part of a key, wherever it occurs."""

from __future__ import annotations

import re
from typing import Final

from palaver.core.texts import LANGUAGE_NAMES, name_text

# Where the part itself, made into words, says too little.
_PARTS: Final = {
    "allow_bots": "Answer other bots",
    "allowed_users": "Accounts that are let in",
    "at_hour": "Hour of the day",
    "at_percent": "From how many percent",
    "base_url": "Address (URL)",
    "busy_policy": "Messages while the agent answers",
    "database_url": "Database",
    "day_tokens": "Tokens per day",
    "day_usd": "US dollars per day",
    "dm_scope": "Which direct messages belong together",
    "every_hours": "Hours between backups",
    "group_activation": "When the agent answers in groups",
    "group_per_user": "In groups, a conversation per person",
    "guest_commands": "Commands for guests",
    "max_file_mb": "Space for a person’s files in MB",
    "host": "Address to listen on",
    "idle_minutes": "Minutes without a message",
    "input": "Price of input",
    "keep": "Backups to keep",
    "keep_days": "Days to keep",
    "keep_exchanges": "Latest exchanges to keep as they are",
    "learn": "Learn from conversations",
    "max_age_days": "Delete after days without messages",
    "max_database_mb": "Largest database in MB",
    "max_import_mb": "Largest import in MB",
    "max_memories": "Most memories",
    "max_minutes": "Longest recording in minutes",
    "max_queued": "Most waiting messages",
    "max_running": "How many at the same time",
    "max_running_per_person": "At the same time, per person",
    "merge_window_seconds": "Merge messages within seconds",
    "mode": "Restart",
    "model_titles": "Titles written by a model",
    "month_tokens": "Tokens per month",
    "month_usd": "US dollars per month",
    "notify": "Tell people about it",
    "output": "Price of output",
    "private_hosts": "Hosts in your own network",
    "public_url": "Public address (URL)",
    "redact_pii": "Hide ids from the agent",
    "shared_link_days": "Days that shared links work",
    "show_preview": "Show the beginning of the answer",
    "speaking": "Reading aloud",
    "speaking_command": "Program for reading aloud",
    "streaming": "Show answers while they are written",
    "thread_per_user": "In threads, a conversation per person",
    "timeout_minutes": "Longest answer in minutes",
    "transcribe_voice_notes": "Turn voice notes into text",
    "transcription": "Speech recognition",
    "transcription_command": "Program for speech recognition",
    "context_windows": "Context sizes",
    "env": "Environment variables",
    "fetch": "Reading web pages",
    "mcp_servers": "MCP servers",
    "overall": "Everyone together",
    "reset_by_platform": "When conversations restart, by platform",
    "reset_by_type": "When conversations restart, by type of chat",
    "search": "Searching the web",
    "session_reset": "When conversations restart",
    "turns": "Answering",
}
_FIELDS: Final = {  # of accounts on platforms
    "account": "Phone number of the account",
    "api_url": "API address (URL)",
    "authserv_id": "Id of the mail server (authserv-id)",
    "business_account_id": "Business account ID",
    "ca_file": "Certificate file",
    "chats": "Chats that are answered",
    "child_command": "Program of your own",
    "config_folder": "Folder of signal-cli",
    "imap_host": "IMAP server",
    "imap_port": "IMAP port",
    "imap_security": "IMAP encryption",
    "mode": "How messages arrive",
    "name": "Name of the sender",
    "phone_number_id": "Phone number ID",
    "poll_seconds": "Seconds between checks",
    "proxy_url": "Proxy (URL)",
    "save_sent": "Save sent mails",
    "smtp_host": "SMTP server",
    "smtp_port": "SMTP port",
    "smtp_security": "SMTP encryption",
    "url": "Address for answers (URL)",
    "user_id": "User ID",
    "user_name": "Name of the caller",
}
_CHOICES: Final = {  # by the last part of the key
    "mode": {
        "none": "Never",
        "idle": "After a time without messages",
        "daily": "Every day",
        "both": "Whichever comes first",
        "polling": "Polling",
        "webhook": "Webhook",
        "socket": "Socket",
        "http": "HTTP",
    },
    "dm_scope": {
        "chat": "Those of a chat",
        "platform": "Those of a platform",
        "person": "Those of a person",
        "shared": "All",
    },
    "busy_policy": {
        "queue": "Wait for their turn",
        "steer": "Reach the agent at its next step",
        "interrupt": "Interrupt the answer",
        "reject": "Are rejected",
    },
    "language": LANGUAGE_NAMES,
    "roles": {"owner": "Owner", "member": "Member", "guest": "Guest"},
    "provider": {"searxng": "SearXNG", "brave": "Brave", "tavily": "Tavily"},
    "strangers": {"pair": "A code to ask for access", "ignore": "No reply"},
    "access": {"known": "People who were let in", "everyone": "Everyone"},
    "group_activation": {
        "mention": "When it is mentioned, and in its threads",
        "each_mention": "Only when it is mentioned",
        "always": "Always",
    },
    "imap_security": {"tls": "TLS", "starttls": "STARTTLS", "none": "None"},
    "smtp_security": {"tls": "TLS", "starttls": "STARTTLS", "none": "None"},
    "send_as": {"notice": "Notice", "text": "Text"},
    "chats": {"self": "Only notes to oneself", "all": "All"},
}
_ABBREVIATION: Final = re.compile(r"\b(api|url|mb|usd|dm|pii)\b", re.IGNORECASE)


def name_part(part: str) -> str:
    """Return the name of a part of a key: `idle_minutes` is "Minutes without a message"."""
    return name_text(f"setting_name.{part}", _PARTS.get(part) or _make_words(part))


def name_field(field: str) -> str:
    return name_text(f"platform_field.{field}", _FIELDS.get(field) or _make_words(field))


def list_choice_names() -> dict[str, dict[str, str]]:
    """Return the names of values that can be chosen, by the last part of the key."""
    return {
        part: {value: name_text(f"choice.{part}.{value}", name) for value, name in names.items()}
        for part, names in _CHOICES.items()
    }


def _make_words(part: str) -> str:
    words = part.replace("_", " ")
    return _ABBREVIATION.sub(lambda match: match[0].upper(), words[:1].upper() + words[1:])
