"""Slash commands: the same ones as everywhere."""

from __future__ import annotations

from fastapi import APIRouter

from palaver.services.commands import COMMANDS
from palaver.services.commands.permissions import allows
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.saying import command
from palaver.web.state import State
from palaver.web.wire import CommandOut, CommandsOut, ReceiptOut, RunIn, receipt_out

router = APIRouter(prefix="/commands", tags=["commands"], responses=answers(401))


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
