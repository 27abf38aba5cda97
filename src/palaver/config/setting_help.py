"""What every setting means, in one sentence, for the page and the terminal. docs/reference/settings.md says more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RESET: Final = {
    "mode": "When conversations restart: never, after a time without messages, every day, or whichever comes first.",
    "idle_minutes": "Restart after this many minutes without a message from a person.",
    "at_hour": "Restart every day at this hour, local time.",
    "timezone": "The time zone of the hour; empty: the time zone of this gateway.",
    "notify": "Tell people when their conversation has restarted.",
}
_PROFILE_RESET: Final = _RESET | {
    "mode": (
        "When conversations with this profile restart: never, after a time without messages, every day, or whichever"
        " comes first; empty: as without the profile."
    )
}
_BUDGETS: Final = {
    "overall": "everyone together",
    "per_person": "each person",
    "per_job": "each scheduled job",
    "profiles.<name>": "all conversations with this profile together",
}
_LIMITS: Final = {
    "day_usd": "cost in a day, in US dollars",
    "month_usd": "cost in a month, in US dollars",
    "day_tokens": "use in a day, in tokens",
    "month_tokens": "use in a month, in tokens",
}


def _iterate_shared_texts() -> Iterator[tuple[str, str]]:
    for prefix in ("session_reset", "reset_by_platform.<name>", "reset_by_type.<name>"):
        yield from ((f"{prefix}.{name}", text) for name, text in _RESET.items())
    yield from ((f"profiles.<name>.session_reset.{name}", text) for name, text in _PROFILE_RESET.items())
    for scope, who in _BUDGETS.items():
        yield from ((f"budgets.{scope}.{name}", f"The most that {who} may {text}.") for name, text in _LIMITS.items())


SETTING_HELP: Final[Mapping[str, str]] = {
    **dict(_iterate_shared_texts()),
    "database_url": "Where conversations are stored.",
    "timezone": "The time zone of reset policies, budgets and jobs that don't set their own; empty: the machine's.",
    "sessions.group_per_user": "Each person in a group or channel has their own conversation.",
    "sessions.thread_per_user": "Each person in a thread has their own conversation.",
    "sessions.dm_scope": "Which direct messages share a conversation: those of a chat, a platform, a person, or all.",
    "privacy.redact_pii": "The agent sees pseudonyms instead of user and chat ids, where no mention needs the id.",
    "agent": "The name of the agent in session keys. Changing it starts new conversations everywhere.",
    "model": "The default model. auto uses the first that works.",
    "fallback_models": "Models to try in this order when the default model can't be reached.",
    "models_by_role.<name>": "The models that people with this role may choose; a * at the end stands for any ending.",
    "context_windows.<name>": "How many tokens a model can read at once, if Palaver does not know it.",
    "prices.<name>.input": "What a million tokens of input cost, in US dollars.",
    "prices.<name>.output": "What a million tokens of output cost, in US dollars.",
    "instructions": "Instructions for the agent in every conversation.",
    "profiles.<name>.title": "The name that people see; empty: the name of the profile.",
    "profiles.<name>.picture": "A small picture that people see beside the name.",
    "profiles.<name>.description": "What the profile is for.",
    "profiles.<name>.instructions": "Instructions for the agent, instead of the general ones.",
    "profiles.<name>.model": "The model of conversations that have chosen none.",
    "profiles.<name>.toolsets": "The tools that the agent has with this profile; empty: all that are allowed.",
    "personalities.<name>": "Instructions about the style of the answers.",
    "providers.<name>.api_key": "Your API key. It is stored encrypted and never shown.",
    "providers.<name>.base_url": "The address of the API; empty: the provider's own.",
    "mcp_servers.<name>.command": "The program to start.",
    "mcp_servers.<name>.args": "Its arguments.",
    "mcp_servers.<name>.env.<name>": "A variable in its environment.",
    "mcp_servers.<name>.url": "The address of the MCP server.",
    "mcp_servers.<name>.headers.<name>": "An HTTP header that is sent with every request.",
    "mcp_servers.<name>.enabled": "Use this server.",
    "turns.max_running": "How many answers are written at the same time.",
    "turns.max_running_per_person": "How many of them may be for one person.",
    "turns.max_queued": "How many messages may wait in one conversation.",
    "turns.busy_policy": "What happens to a message that arrives while the agent responds.",
    "turns.merge_window_seconds": "Messages that follow each other within this time get one answer.",
    "turns.timeout_minutes": "How long one answer may take.",
    "turns.model_titles": "Let the model make a short title after the first answer of a conversation.",
    "jobs.max_running": "How many scheduled jobs run at the same time.",
    "jobs.keep_days": "How many days ended runs of jobs are kept; 0 keeps everything.",
    "compaction.enabled": "Summarize older messages for the agent when a conversation gets too long for the model.",
    "compaction.at_percent": "How full the model's context may get before a summary is made, in percent.",
    "compaction.keep_exchanges": "How many of the last exchanges the agent still sees in full.",
    "compaction.notify": "Tell people in a chat when a summary was made.",
    "speech.transcription": "What turns recordings into text: auto, off, command, or a model such as openai:whisper-1.",
    "speech.speaking": "What reads answers aloud: auto, off, command, or a model such as openai:gpt-4o-mini-tts.",
    "speech.voice": "The voice that reads answers aloud; empty: the engine's own.",
    "speech.language": "The language that people speak, such as de; empty: it is detected.",
    "speech.transcribe_voice_notes": "Turn voice messages of chats into text before the agent answers.",
    "speech.max_minutes": "How long a recording may be, in minutes.",
    "speech.transcription_command": "The program that prints the text of the recording {file}, with its arguments.",
    "speech.speaking_command": "The program that reads text from its input and writes audio to its output.",
    "push.enabled": "Let people turn on notifications that arrive while the page is closed.",
    "push.show_preview": "Show the beginning of the answer in these notifications, and not only the title.",
    "push.contact": "How push services can reach you: mailto: with your address, or an https:// address.",
    "memory.learn": "Let a model look through what people wrote when a conversation ends, and save lasting facts.",
    "memory.max_memories": "How many memories the agent may save for a person or a shared chat.",
    "toolsets.<name>.enabled": "Let the agent use this toolset.",
    "toolsets.<name>.platforms": "The platforms on which the agent has it; empty: all.",
    "toolsets.<name>.roles": "The roles for which the agent may use it.",
    "retention.max_age_days": "Delete conversations this many days after their last activity; empty: never.",
    "retention.max_database_mb": "Delete the conversations unused for longest while the database is larger than this.",
    "backup.every_hours": "How often a server backs up the database; 0 turns automatic backups off.",
    "backup.keep": "How many backups are kept.",
    "web.host": "The address at which the server listens.",
    "web.port": "The port; empty: 8765, or the next free one.",
    "web.public_url": "The address that people use, if a reverse proxy is in front of the server.",
    "web.trusted_proxies": "Proxies whose headers about the client are believed.",
    "web.max_import_mb": "How large a file may be that a person imports on the page, in megabytes.",
    "web.shared_link_days": "How many days a new shared link works, unless its creator says otherwise; empty: always.",
    "web.fetch.private_hosts": "Hosts in private networks whose pages the agent may read; all others are refused.",
    "web.search.provider": "The service with which the agent searches the web; empty: it can't search.",
    "web.search.url": "The address of your SearXNG; empty: the provider's own.",
    "web.search.api_key": "Your API key of Brave or Tavily. It is stored encrypted and never shown.",
    "people.messages_per_minute.<name>": "How many messages a person with this role may send a minute; null: no limit.",
    "people.guest_commands": "The slash commands that guests may use, without their slashes.",
    "people.max_file_mb": "How much space all files of a person may take, in megabytes.",
    "platforms.<name>.enabled": "Connect this platform.",
    "platforms.<name>.access": "Who may talk to the agent there: people you have let in, or everyone.",
    "platforms.<name>.allowed_users": "Ids of accounts that may talk to the agent as guests without asking for access.",
    "platforms.<name>.busy_policy": "What happens to messages while the agent responds; empty: as elsewhere.",
    "platforms.<name>.streaming": "Show answers there while they are being written.",
    "platforms.<name>.group_activation": "When the agent answers in groups: when it is mentioned, or always.",
    "platforms.<name>.allow_bots": "Answer messages from other bots.",
    "platforms.<name>.home_channel.chat_id": "The chat for messages to this platform that name no other chat.",
    "platforms.<name>.home_channel.name": "The name of that chat.",
    "platforms.<name>.home_channel.thread_id": "A thread in that chat.",
    "platforms.<name>.settings.<name>": "How to reach the account; the platform says which settings it has.",
    "platforms.<name>.accounts.<name>.enabled": "Connect this account.",
    "platforms.<name>.accounts.<name>.settings.<name>": "How to reach one of several accounts.",
}
