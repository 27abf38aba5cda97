"""The JSON of deliveries and of accounts on chat platforms: for the API, commands and `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from palaver.core.wire import Doc, Time, TypedDict, build_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.delivery.model import AccountHealth


class DeliveryJson(TypedDict):
    """An answer, or a message that a job or the agent sent, on its way to a chat platform."""

    id: str
    turn_id: Annotated[str | None, Doc("Only for answers.")]
    input_seq: Annotated[int | None, Doc("The number of the message that is answered. Only for answers.")]
    message_seq: Annotated[int | None, Doc("The number of the message itself, if it is not an answer.")]
    quoted_seqs: Annotated[list[int], Doc("Messages quoted above the answer.")]
    platform: str
    state: Literal["pending", "sending", "sent", "uncertain", "failed"]
    error: Annotated[str | None, Doc("Why it failed, is uncertain or will be retried.")]
    created_at: Annotated[Time, Doc("When the answer was finished.")]
    ended_at: Time | None


class UndeliveredJson(TypedDict):
    """A message to a chat platform that failed or may not have arrived, and that a person has to decide about."""

    id: str
    session_id: Annotated[str | None, Doc("The conversation; null for a notice outside of conversations.")]
    title: Annotated[str | None, Doc("The title of the conversation.")]
    kind: Literal["answer", "notice"]
    platform: str
    account: Annotated[str, Doc("Its name in the settings; empty for the only one.")]
    target: Annotated[str, Doc("The chat, such as `telegram:42`.")]
    state: Literal["uncertain", "failed"]
    error: Annotated[str | None, Doc("Why it failed, or why its status is unknown.")]
    created_at: Time
    ended_at: Annotated[Time, Doc("When it failed, or its status became unknown.")]


class HomeChannelJson(TypedDict):
    """The default chat of a platform, from config.yaml or chosen with `/sethome`."""

    name: Annotated[str, Doc("For people to read; empty if it is not known.")]
    target: Annotated[str, Doc("Where deliveries to the platform go, such as `telegram:42`.")]


class LinkingJson(TypedDict):
    """Instructions for linking a phone with an account. Only owners see it, and only while the account waits for it."""

    instructions: Annotated[str, Doc("In words: which app, which menu.")]
    qr_code: Annotated[
        list[str] | None,
        Doc(
            "A QR code to scan: a row of `1` (dark) and `0` (light) for each line. Draw it dark on light, with a margin"
            " of four squares."
        ),
    ]
    code: Annotated[str | None, Doc("A code to type on the phone.")]
    expires_at: Annotated[Time | None, Doc("When it is replaced by a new one; null if that is not known.")]


class ConnectionTestJson(TypedDict):
    """The result of a test of the connection."""

    finished_at: Time
    seconds: Annotated[float, Doc("How long it took.")]
    error: Annotated[str | None, Doc("Why it failed, in words; null if it worked, or waits to be linked.")]


class _AccountStatusJson(TypedDict):
    since: Annotated[Time | None, Doc("When it came into this state; null if it has never run.")]
    name: Annotated[str | None, Doc("Its name on the platform, such as `@palaver_bot`.")]
    warnings: Annotated[list[str], Doc("What is missing for it to work fully, in words.")]
    details: Annotated[list[str], Doc("Versions, the age of a linked device and the like, in words.")]
    last_message_at: Annotated[Time | None, Doc("When it last received a message.")]
    error: Annotated[str | None, Doc("The last problem with the connection, in words.")]
    error_at: Time | None
    last_test: Annotated[ConnectionTestJson | None, Doc("How the latest test of the connection has ended.")]


class PlatformAccountJson(_AccountStatusJson):
    """An account on a platform. Problems with deliveries are those of the last 24 hours."""

    platform: str
    account: Annotated[str, Doc("Its name in the settings; empty for the only one.")]
    configured: Annotated[bool, Doc("It is set up in the settings.")]
    state: Annotated[
        Literal["off", "connecting", "linking", "live", "deaf", "refused"],
        Doc(
            "`off`: no process runs it. `linking`: it waits until an owner links it with a phone, as `linking` says."
            " `live`: it receives and sends. `deaf`: nothing was heard from the platform for too long, so it is"
            " connected again. `refused`: the platform refuses it, or its settings are not valid; `error` says why."
        ),
    ]
    linking: Annotated[LinkingJson | None, Doc("How to link it, while its state is `linking`. Tokens do not get it.")]
    waiting: Annotated[int, Doc("Deliveries that are pending or being sent.")]
    uncertain: Annotated[int, Doc("Deliveries with unknown status: they may or may not have arrived.")]
    failed: Annotated[int, Doc("Deliveries that failed and will not be retried.")]
    delivery_error: Annotated[str | None, Doc("The error of the last failed or uncertain delivery.")]
    delivery_error_at: Time | None
    home_channel: Annotated[HomeChannelJson | None, Doc("The default chat of the platform, if it sends there.")]


_NEVER_RAN: Mapping[str, object] = {**dict.fromkeys(_AccountStatusJson.__annotations__), "warnings": [], "details": []}


def account_to_json(account: AccountHealth, linking: LinkingJson | None = None) -> PlatformAccountJson:
    """Convert an account. The caller passes `linking` only where an owner alone can read it."""
    status = account.status
    of_status = _NEVER_RAN if status is None else build_json(_AccountStatusJson, status)
    return build_json(PlatformAccountJson, account, **of_status, configured=account.is_configured, linking=linking)


def account_to_flat_json(account: AccountHealth) -> dict[str, object]:
    """Convert an account for commands and the terminal, where its home channel is the target alone."""
    home = account.home_channel
    return {**account_to_json(account), "home_channel": None if home is None else home.target}
