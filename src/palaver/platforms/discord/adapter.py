"""One Discord bot: receives through the gateway, and from the history of channels what was missed; sends by REST."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import discord

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConnectionLost, SendRejected
from palaver.core.source import Platform
from palaver.core.tasks import BackgroundTasks, run_together
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage
from palaver.gateway.intake import Intake
from palaver.inbox.registry import COMMANDS
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.discord.client import DiscordClient, describe_account, has_content_intent
from palaver.platforms.discord.directory import ChannelDirectory
from palaver.platforms.discord.failures import NO_HISTORY_FOR_REPLY, UNKNOWN_MESSAGE, RequestRefused
from palaver.platforms.discord.gateway import GatewayClient, GatewaySession, GatewayTiming
from palaver.platforms.discord.inbound import BUTTON_INTERACTION, COMMAND_ID_PREFIX, COMMAND_INTERACTION
from palaver.platforms.discord.manifest import CAPABILITIES, DiscordSettings
from palaver.platforms.discord.outbound import (
    build_channel_path,
    build_commands,
    build_edit,
    build_message,
    build_message_path,
    build_press_answer,
    build_reaction_path,
    build_upload,
    render_markdown,
)
from palaver.platforms.discord.receiver import Receiver
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Inbound, Receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.commands.command import Command
    from palaver.platforms.manifest import AccountPlace
    from palaver.sessions.delivery import Address

log = logging.getLogger(__name__)

MAX_OPEN_INTERACTIONS: Final = 500  # whose tokens are kept; Discord forgets them after 15 minutes
LAST_ANSWERS_SECONDS: Final = 2.0  # for answers to people that are on their way when the connection ends


@dataclass(frozen=True, slots=True)
class _Interaction:
    """A slash command or the press of a button that waits for its answer."""

    token: str = field(repr=False)
    is_command: bool
    deferring: asyncio.Task[bool]  # whether Discord was told in time that it has arrived


class DiscordAdapter(Adapter):
    platform = Platform.DISCORD
    capabilities = CAPABILITIES
    marks_sending = True

    def __init__(
        self,
        settings: DiscordSettings,
        place: AccountPlace,
        *,
        commands: Sequence[Command] = (),
        timing: GatewayTiming | None = None,
    ) -> None:
        self.account = place.account
        self._client = DiscordClient(settings)
        self._commands = build_commands(commands)
        self._timing = timing or GatewayTiming()
        self._user_id = ""
        self._application_id = ""
        self._intents = discord.Intents.none()
        self._intents_changed = asyncio.Event()
        self._has_set_commands = False
        self._receiving = asyncio.Lock()  # two connections of one bot would both receive everything
        self._interactions: OrderedDict[str, _Interaction] = OrderedDict()  # not answered yet, by their ids
        self._answers = BackgroundTasks("palaver-discord-answer")

    # ---- receiving -------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Sign in, and say which switch or permission is missing."""
        self._client.open()
        user, application, guilds = await self._client.load_account()
        self._user_id, self._application_id = user["id"], application["id"]
        can_read_content = has_content_intent(application)
        intents = discord.Intents(guilds=True, messages=True, reactions=True, message_content=can_read_content)
        if intents != self._intents:
            self._intents = intents
            self._intents_changed.set()
        return describe_account(user, application, guilds)

    async def run(self, link: AccountLink) -> None:
        """Receive events; first what was missed since the last run."""
        async with self._receiving:
            if not self._user_id:
                await self.probe()
            self._client.open()
            await self._set_commands()
            async with Intake(link, self._answer_accepted) as intake:
                receiver = Receiver(self._client, ChannelDirectory(self._user_id), link, intake)
                try:
                    await run_together(self._keep_connected(receiver), receiver.run(), intake.watch())
                finally:
                    await self._end_interactions()

    async def _keep_connected(self, receiver: Receiver) -> None:
        """Receive events, with a new session when the bot may read more than before, or less."""
        await self._find_missed_chats(receiver)
        while True:
            self._intents_changed.clear()
            gateway = self._make_gateway(receiver)
            await run_together(gateway.keep_connected(), self._intents_changed.wait())

    async def _find_missed_chats(self, receiver: Receiver) -> None:
        """Find the direct chats in which people wrote since an earlier process died: Discord does not list them."""
        session = await receiver.load_session()
        if session is None:
            return
        chats: dict[str, None] = {}  # in this order

        def remember_chat(name: str, data: Any, _: GatewaySession) -> None:
            if name in {"MESSAGE_CREATE", "INTERACTION_CREATE"} and data.get("guild_id") is None:
                chats[data["channel_id"]] = None

        await self._make_gateway(receiver).replay(session, remember_chat)
        await receiver.remember_direct_chats(chats)

    def _make_gateway(self, receiver: Receiver) -> GatewayClient:
        def receive(name: str, data: Any, session: GatewaySession) -> None:
            if name == "INTERACTION_CREATE" and data["type"] in {COMMAND_INTERACTION, BUTTON_INTERACTION}:
                self._defer(data)
            receiver.put(name, data, session)

        return GatewayClient(
            self._client,
            intents=self._intents,
            on_event=receive,
            on_alive=receiver.report_connected,
            wait_for_room=receiver.wait_for_room,
            timing=self._timing,
        )

    async def _set_commands(self) -> None:
        if not self._commands or self._has_set_commands:
            return
        try:
            await self._client.set_commands(self._application_id, self._commands)
        except ConnectionLost as error:  # the bot works without its menu
            log.warning("discord_commands_not_set", extra={"reason": str(error)})
        else:
            self._has_set_commands = True

    # ---- commands and buttons --------------------------------------------------------------------------------

    def _defer(self, interaction: dict[str, Any]) -> None:
        """Tell Discord at once that it has arrived, however much is still to be accepted before it."""
        task = asyncio.create_task(self._client.defer(interaction), name="palaver-discord-defer")
        is_command = interaction["type"] == COMMAND_INTERACTION
        self._interactions[interaction["id"]] = _Interaction(interaction["token"], is_command, task)
        while len(self._interactions) > MAX_OPEN_INTERACTIONS:
            self._interactions.popitem(last=False)[1].deferring.cancel()

    async def _answer_accepted(self, update: AnyUpdate, receipt: Receipt) -> None:
        """Answer a press, and remove the placeholder of a command: its reply comes through the outbox."""
        if isinstance(update, ButtonPressed):
            self._answers.start(self.answer_press(update.press_id, receipt.reply))
        elif isinstance(update, Inbound) and (update.message_id or "").startswith(COMMAND_ID_PREFIX):
            interaction_id = (update.message_id or "").removeprefix(COMMAND_ID_PREFIX)
            self._answers.start(self._remove_placeholder(interaction_id))

    async def _remove_placeholder(self, interaction_id: str) -> None:
        """Remove the sign that a command is worked on: its reply is a message of its own."""
        interaction = self._interactions.pop(interaction_id, None)
        if interaction is not None and await interaction.deferring:
            await self._client.answer_interaction(
                "DELETE", self._application_id, interaction.token, "/messages/@original"
            )

    async def answer_press(self, press_id: str, text: str | None) -> None:
        """Show a text to the person who pressed a button. Discord itself was told when the press arrived."""
        interaction = self._interactions.pop(press_id, None)
        if interaction is not None and await interaction.deferring and text:
            reply = build_press_answer(text)
            await self._client.answer_interaction("POST", self._application_id, interaction.token, json=reply)

    async def _end_interactions(self) -> None:
        """Finish what people wait for; commands that were not accepted leave no placeholder behind."""
        for interaction_id, interaction in list(self._interactions.items()):
            if interaction.is_command:  # what belongs to a press is no placeholder, but the message with the button
                self._answers.start(self._remove_placeholder(interaction_id))
        await self._answers.end(LAST_ANSWERS_SECONDS)

    async def close(self) -> None:
        await self._client.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        return render_markdown(markdown)

    async def send(self, message: OutgoingMessage) -> str:
        fields = build_message(message)
        try:
            return await self._send(message, fields)
        except SendRejected as error:
            if not (_has_code(error, NO_HISTORY_FOR_REPLY) and fields.pop("message_reference", None)):
                raise
        return await self._send(message, fields)

    async def _send(self, message: OutgoingMessage, fields: dict[str, Any]) -> str:
        path = f"{build_channel_path(message.address)}/messages"
        body = {"form": await build_upload(fields, message.file)} if message.file else {"json": fields}
        with mark_before_request(message.mark_sending):
            return str((await self._client.deliver("POST", path, **body))["id"])

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        path = build_message_path(message.address, message_id)
        await self._client.deliver("PATCH", path, json=build_edit(message), is_repeatable=True)

    async def delete(self, address: Address, message_id: str) -> None:
        try:
            await self._client.deliver("DELETE", build_message_path(address, message_id), is_repeatable=True)
        except SendRejected as error:
            if not _has_code(error, UNKNOWN_MESSAGE):
                raise

    async def show_typing(self, address: Address) -> None:
        await self._client.deliver("POST", f"{build_channel_path(address)}/typing", is_repeatable=True)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message, or take all our reactions back."""
        if emoji:
            await self._client.deliver("PUT", build_reaction_path(address, message_id, emoji), is_repeatable=True)
            return
        message = await self._client.deliver("GET", build_message_path(address, message_id), is_repeatable=True)
        for reaction in message.get("reactions", ()):
            if reaction.get("me"):
                own = reaction["emoji"]
                name = f"{own['name']}:{own['id']}" if own.get("id") else own["name"]
                path = build_reaction_path(address, message_id, name)
                await self._client.deliver("DELETE", path, is_repeatable=True)


def _has_code(error: SendRejected, code: int) -> bool:
    return isinstance(error.__cause__, RequestRefused) and error.__cause__.code == code


def create_adapter(settings: DiscordSettings, place: AccountPlace) -> Adapter:
    return DiscordAdapter(settings, place, commands=COMMANDS)
