"""Slash commands, the same ones as on every platform."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field, StringConstraints

from palaver.commands.registry import is_listed
from palaver.core.errors import InvalidInput
from palaver.core.wire import TypedDict, build_json
from palaver.inbox.registry import COMMANDS, parse_command
from palaver.sessions.view_wire import ReceiptJson
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import IdempotencyKey, RequestModel, ShortText, State
from palaver.web.submit_message import submit_command
from palaver.web.wire import receipt_to_json

router = make_router("commands", "/api/commands", responses=error_responses(401))


class CommandJson(TypedDict):
    """A slash command."""

    name: str
    usage: str
    summary: str


class CommandsJson(TypedDict):
    """The slash commands that you can use."""

    commands: list[CommandJson]


class CommandIn(RequestModel):
    """A slash command to run."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] = Field(examples=["/new Trip to Lisbon"])
    key: IdempotencyKey
    session_id: ShortText | None = Field(None, description="The conversation to run it in.")


@router.get("")
async def list_commands(caller: Caller) -> CommandsJson:
    """List the commands that you can use, in the order of /help."""
    return CommandsJson(
        commands=[
            build_json(CommandJson, command, name=f"/{command.name}")
            for command in COMMANDS
            if is_listed(command, caller.person.role, caller.token_scopes)
        ]
    )


@router.post("", responses=error_responses(404))
async def run_command(state: State, caller: Caller, command: CommandIn) -> ReceiptJson:
    """Run a command. If it can't be carried out, the outcome is `rejected` and `reply` says why."""
    call = parse_command(command.text)
    if call is None:
        raise InvalidInput("text: this isn't a command. Send messages to /api/sessions/{id}/messages")
    receipt = await submit_command(state, caller, command.session_id, call, command.key)
    return await asyncio.to_thread(receipt_to_json, receipt)  # an export may be long
