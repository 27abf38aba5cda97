"""The list of all slash commands, in the order of `/help`."""

from __future__ import annotations

from palaver.accounts import commands as people_commands
from palaver.commands.registry import CommandRegistry
from palaver.core.texts import say
from palaver.delivery import commands as place_commands
from palaver.jobs import commands as job_commands
from palaver.memory import commands as memory_commands
from palaver.money import commands as budget_commands
from palaver.turns.commands import (
    conversation as conversation_commands,
    history as history_commands,
    query as query_commands,
    settings as profile_commands,
    status as status_commands,
    versions as version_commands,
)

_GROUPS = (
    (
        say("help.conversations", "Conversations"),
        (
            conversation_commands.NEW,
            conversation_commands.RESET,
            conversation_commands.RESUME,
            query_commands.SESSIONS,
            query_commands.SEARCH,
            conversation_commands.TITLE,
            conversation_commands.BRANCH,
            query_commands.EXPORT,
        ),
    ),
    (
        say("help.undo", "Undo and restore"),
        (
            history_commands.UNDO,
            history_commands.REDO,
            version_commands.RETRY,
            version_commands.VERSIONS,
            version_commands.VERSION,
            history_commands.RESTORE,
            history_commands.COMPRESS,
        ),
    ),
    (
        say("help.responding", "While the agent is responding"),
        (version_commands.STOP, version_commands.QUEUE, version_commands.STEER, profile_commands.BUSY),
    ),
    (say("help.jobs", "Jobs"), (job_commands.JOBS,)),
    (
        say("help.accounts", "You and your accounts"),
        (
            people_commands.WHOAMI,
            memory_commands.MEMORY,
            people_commands.LINK,
            people_commands.UNLINK,
            place_commands.HANDOFF,
            people_commands.PAIR,
            place_commands.SETHOME,
        ),
    ),
    (
        say("help.status", "Status and settings"),
        (
            status_commands.STATUS,
            status_commands.USAGE,
            budget_commands.BUDGET,
            status_commands.WHY,
            place_commands.PLATFORMS,
            profile_commands.MODEL,
            profile_commands.PROFILE,
            profile_commands.PERSONALITY,
            profile_commands.WORKSPACE,
            profile_commands.TOOLS,
            profile_commands.SETHERE,
        ),
    ),
)
REGISTRY = CommandRegistry(_GROUPS)
COMMANDS = REGISTRY.commands
parse_command = REGISTRY.parse
find_command = REGISTRY.find
