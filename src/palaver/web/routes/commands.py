"""Slash commands: the same ones as everywhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from palaver.services.commands import COMMANDS
from palaver.services.commands.permissions import allows
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.message_schemas import ReceiptOut, receipt_out
from palaver.web.schemas import In, Key, Out
from palaver.web.state import State
from palaver.web.submit_message import command

router = APIRouter(prefix="/commands", tags=["commands"], responses=answers(401))


class CommandOut(Out):
    """A slash command."""

    name: str
    usage: str
    summary: str


class CommandsOut(Out):
    """The slash commands that you may use."""

    commands: list[CommandOut]


class RunIn(In):
    """A slash command to carry out."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] = Field(examples=["/new Trip to Lisbon"])
    key: Key
    session_id: str | None = Field(None, description="The conversation it is about.")


@router.get("")
async def list_commands(signed: SignedIn) -> CommandsOut:
    """The commands that you may use, in the order of /help."""
    role = signed.person.role
    found = [
        CommandOut(name=f"/{each.name}", usage=each.usage, summary=each.summary)
        for each in COMMANDS
        if allows(role, each.name)
    ]
    return CommandsOut(commands=found)


@router.post("", responses=answers(404))
async def run_command(state: State, signed: SignedIn, wanted: RunIn) -> ReceiptOut:
    """Carry a command out; what cannot be done comes as `refused`, with the reason in `reply`."""
    return receipt_out(await command(state, signed, wanted.session_id, wanted.text, wanted.key))
