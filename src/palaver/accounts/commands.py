"""Commands about people and their accounts: who you are, linking accounts, letting strangers in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.accounts import access, link_requests, linking, pairing
from palaver.commands.command import (
    ADMIN,
    NO_SCOPE,
    NO_TOKEN,
    READ,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    check_scopes,
    parse_no_arguments,
    read_action,
    write_action,
)
from palaver.commands.context import check_private_chat
from palaver.commands.reply_text import escape_markdown, format_age, format_code
from palaver.core.errors import NotFound, TooManyAttempts
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, ChatType
from palaver.core.texts import join_texts, say
from palaver.delivery import notices
from palaver.people import access_table as chat_access, linked_rows, pairing_table as pairing_requests, table as people
from palaver.people.model import Identity, Person, Role
from palaver.people.pairing_table import MAX_PENDING_REQUESTS, Grant, PairingRequest, parse_code
from palaver.sessions.inbound import SECRET_FACT

if TYPE_CHECKING:
    from palaver.commands.context import CommandContext

_DENY = "deny"


def _get_person(context: CommandContext) -> Person:
    return people.get_person(context.tx, context.person_id)


@read_action("whoami")
def show_person(context: CommandContext) -> CommandReply:
    """Say who the person is. In a group, where others read it, without their accounts and conversations."""
    person = _get_person(context)
    text = say(
        "whoami.name",
        "You're **{name}**, {role}.",
        name=escape_markdown(person.name or say("whoami.unnamed", "unnamed")),
        role=linking.describe_role(person.role),
    )
    data: dict[str, Any] = {"person_id": person.id, "name": person.name, "role": person.role}
    if context.source.chat_type is not ChatType.DM:
        text += say("whoami.private", " Use /whoami in a direct message to see your accounts.")
        return CommandReply(text=text, data=data)
    identities = people.list_identities(context.tx, person.id)
    accounts = [
        f"{identity.platform.label} ({escape_markdown(identity.account)})"
        for identity in identities
        if identity.platform not in PLATFORMS_WITHOUT_DELIVERY
    ]
    own_surfaces = sorted(
        identity.platform.label for identity in identities if identity.platform in PLATFORMS_WITHOUT_DELIVERY
    )
    lines = [text, say("whoami.accounts", "- **Accounts**: {accounts}", accounts=", ".join([*own_surfaces, *accounts]))]
    places = _list_places(context)
    if places:
        lines.append(say("whoami.places", "- **This conversation**: {places}", places=join_texts(", ", places)))
    data["accounts"] = [{"platform": str(each.platform), "account": each.account} for each in identities]
    data["places"] = places
    return CommandReply(text=join_texts("\n", lines), data=data)


def _list_places(context: CommandContext) -> list[str]:
    """Say in which chats the current conversation continues; nothing about one that the person can't see."""
    row = context.session_row
    if row is None:
        return []
    try:
        context.view.get(row.session.id)
    except NotFound:
        return []
    found = notices.list_places(context.tx, row.no)
    return list(dict.fromkeys(notices.describe_place(source) for source in found))


@write_action("link")
def create_code(context: CommandContext) -> CommandReply:
    check_private_chat(context, "link")
    device_id = None if context.signed_in is None else context.signed_in.credential_id
    code = link_requests.create_link_code(
        context.tx, context.person_id, context.source, context.now, issued_by=device_id
    )
    text = say(
        "link.code",
        "Send `/link {code}` to me from your other account within 15 minutes. Then both accounts are told what will be"
        " shared, and have to confirm. Don't give the code to other people.",
        code=code,
    )
    return CommandReply(text=text, data={"code": code, SECRET_FACT: True})


@write_action("link")
def link_account(context: CommandContext, *, code: str, asked: str | None = None) -> CommandReply:
    """Use a code from another account, or `confirm` or `cancel`. A wrong code is no error: the attempt is counted."""
    check_private_chat(context, "link")
    result = pairing.use_code(
        context.tx, code, context.source, _get_person(context), context.config, context.now, asked=asked
    )
    if result.retry_after:
        raise TooManyAttempts(result.text, retry_after=result.retry_after - 1)
    return CommandReply(text=result.text, data=result.to_dict())


@write_action("unlink")
def unlink_account(context: CommandContext, *, account: str = "") -> CommandReply:
    """Take a chat account out of the person: the one that it names, or the one that the person writes from.

    In the account that one other was linked to, that one.
    """
    check_private_chat(context, "unlink")
    person, here = _get_person(context), people.find_account(context.source)
    if account:
        identity = linking.find_linked_account(context.tx, person.id, account)
    else:
        identity = _find_account_to_unlink(context, person)
    is_here = here == (identity.platform, identity.account)
    own = linking.unlink_account(context.tx, person, identity, context.config, context.now, is_told=not is_here)
    name = linking.format_account(identity.platform.label, identity.account, None)
    kept_by: str = say("unlink.you", "you")
    text = say("unlink.done", "Unlinked: {name}.", name=name)
    if own is None:
        kept_by = say("unlink.your_accounts", "your other accounts") if is_here else kept_by
        text += say("unlink.stays", " What was said there stays with {person}.", person=kept_by)
    else:
        kept_by = f"**{escape_markdown(person.name)}**" if is_here else kept_by
        text += say(
            "unlink.returned",
            " It has back what it had before the link. What was new since then stays with {person}.",
            person=kept_by,
        )
    if not is_here and (own is None or own.role is Role.GUEST):
        text += say("unlink.stranger", " New messages from there are a stranger's, until it gets access again.")
    return CommandReply(text=text, data={"platform": str(identity.platform), "account": identity.account})


def _find_account_to_unlink(context: CommandContext, person: Person) -> Identity:
    here = people.find_account(context.source)
    is_chat = here is not None and context.source.platform not in PLATFORMS_WITHOUT_DELIVERY
    if here is not None and is_chat and linked_rows.find_origin(context.tx, *here) is not None:
        return linking.find_linked_account(context.tx, person.id, ":".join(here))
    linked = linking.find_only_linked_account(context.tx, person.id)
    if linked is not None:
        return linked
    if here is None or not is_chat:
        raise BadArguments.say(
            "unlink.which_account", "Which account? Use `/unlink telegram`. Use /whoami to list them."
        )
    return linking.find_linked_account(context.tx, person.id, ":".join(here))


@read_action("pair")
def list_requests(context: CommandContext) -> CommandReply:
    check_private_chat(context, "pair")
    requests = pairing_requests.list_pending(context.tx, context.now_micros, MAX_PENDING_REQUESTS)
    data = {"requests": [{"id": each.id, "platform": str(each.platform), "name": each.name} for each in requests]}
    if not requests:
        return CommandReply(text=say("pair.none", "There are no requests for access."), data=data)
    lines = [f"- {_name_request(each)}, " + format_age(each.created_at, context.now) for each in requests]
    text = say(
        "pair.list",
        "Requests for access:\n\n{list}\n\nAsk for the code, then use `/pair ABCD-EFGH member` (or guest, me, deny).",
        list=join_texts("\n", lines),
    )
    return CommandReply(text=text, data=data)


@write_action("pair")
def answer_request(context: CommandContext, *, code: str, answer: str | None) -> CommandReply:
    """Approve or deny the request of a code; without an answer, say whose it is. A wrong code is no error."""
    check_private_chat(context, "pair")
    if answer == Grant.ME:  # for a token, this would be a way to stay the person after it was revoked
        check_scopes("pair", NO_SCOPE, context.token_scopes)
    seconds = pairing.count_code_attempt(context.tx, context.source, context.now, is_stranger=False)
    if seconds:
        return CommandReply(text=pairing.describe_wait(seconds))
    request = pairing.find_request_by_code(context.tx, code, context.now)
    if request is None:
        return CommandReply(text=pairing.INVALID_PAIRING_CODE_TEXT)
    name, data = _name_request(request), {"id": request.id, "answer": answer}
    if answer is None:
        return CommandReply(text=_ask_for_answer(request, code), data=data)
    if answer == _DENY:
        pairing.deny_request(context.tx, request, context.now)
        return CommandReply(text=say("pair.denied_now", "Denied: {name}. They have been told.", name=name), data=data)
    grant = Grant(answer)
    pairing.approve_request(context.tx, request, grant, _get_person(context), context.config, context.now)
    return CommandReply(text=_describe_grant(request, grant), data=data)


def _ask_for_answer(request: PairingRequest, code: str) -> str:
    name = _name_request(request)
    if request.is_channel:
        return say(
            "pair.channel_asks",
            "{name} is a channel. Use {command} to let everyone who can post there talk to me in it, or `deny` instead"
            " of `guest`.",
            name=name,
            command=format_code(f"/pair {parse_code(code)} guest"),
        )
    return say(
        "pair.asks",
        "{name} asks for access. Use {command} to let them talk to me everywhere, `guest` instead of `member` for"
        " these direct messages only, `me` if it is your own account, or `deny`.",
        name=name,
        command=format_code(f"/pair {parse_code(code)} member"),
    )


def _describe_grant(request: PairingRequest, grant: Grant) -> str:
    name = _name_request(request)
    if request.is_channel:
        return say(
            "pair.channel_on", "Everyone who can post in {name} can talk to me there now, as a guest.", name=name
        )
    text = {
        Grant.MEMBER: say(
            "pair.member", "{name} is a member now, and can talk to me in direct messages and in groups.", name=name
        ),
        Grant.GUEST: say(
            "pair.guest", "{name} is a guest now, and can talk to me in these direct messages only.", name=name
        ),
        Grant.ME: say(
            "pair.me",
            "{name} is linked to you now. Use `/unlink {platform}` to undo this.",
            name=name,
            platform=str(request.platform),
        ),
    }[grant]
    return text + say("pair.told", " They have been told.")


def _name_request(request: PairingRequest) -> str:
    return linking.format_account(request.platform.label, request.account, request.name)


@write_action("pair")
def allow_group(context: CommandContext, *, is_allowed: bool) -> CommandReply:
    """Let everybody in this group talk to the agent here, or end that."""
    if context.source.chat_type is ChatType.DM:
        raise BadArguments.say(
            "pair.no_group", "`/pair group` only works in a group. In a direct message, use `/pair` with a code."
        )
    data = {"allowed": is_allowed}
    if is_allowed:
        changed = chat_access.grant(context.tx, context.source, None, context.person_id, context.now_micros)
        text = say("pair.group_already", "Nothing changed: everybody in this group can already talk to me here.")
        if changed:
            text = say("pair.group_on", "Everybody in this group can talk to me here now, as a guest.")
        return CommandReply(text=text + say("pair.group_undo", " Use `/pair group off` to undo this."), data=data)
    changed = chat_access.revoke(context.tx, context.source)
    access.end_turns_in_chat(context.tx, context.source, context.person_id, context.rules, context.now_micros)
    text = say("pair.group_was_off", "Only members can talk to me in this group.")
    if changed:
        text = say("pair.group_off", "Only members can talk to me in this group now.")
    return CommandReply(text=text, data=data)


def _parse_pair(text: str) -> CommandCall:
    words = text.split()
    if not words:
        return list_requests.call()
    if words[0].lower() == "group":
        if len(words) > 2 or (len(words) == 2 and words[1].lower() not in {"on", "off"}):
            raise BadArguments.say("pair.group_usage", "Use `/pair group` or `/pair group off`.")
        return allow_group.call(is_allowed=words[-1].lower() != "off")
    answers = {*Grant, _DENY}
    answer = words[-1].lower() if len(words) > 1 and words[-1].lower() in answers else None
    code = " ".join(words if answer is None else words[:-1])
    if parse_code(code) is None:
        raise BadArguments.say(
            "pair.usage", "Use `/pair ABCD-EFGH member`, with the code that the stranger got. Or guest, me, deny."
        )
    return answer_request.call(code=code, answer=answer)


WHOAMI = Command(
    name="whoami",
    scopes=CommandScopes(read=READ),
    summary="Show who you are, your accounts, and where this conversation is",
    help="In a group, shows only your name and role.",
    example="/whoami",
    parse=parse_no_arguments(show_person),
)
LINK = Command(
    name="link",
    scopes=NO_TOKEN,
    usage="[code | confirm | cancel]",
    summary="Link your accounts on several platforms",
    help=(
        "Without a code, gives you one, valid for 15 minutes: send it from your other account with `/link code`. Both"
        " accounts are then told what will be shared, and answer with `/link confirm` or `/link cancel`. When both have"
        " confirmed, they are one person, with the same conversations, memories and role. `/unlink` undoes it."
    ),
    example="/link ABCD-EFGH",
    parse=lambda text: link_account.call(code=text) if text else create_code.call(),
)
UNLINK = Command(
    name="unlink",
    scopes=NO_TOKEN,
    usage="[platform]",
    summary="Separate an account from your others",
    help=(
        "Without a platform, separates the account you write from, or the only one that was linked to it. The separated"
        " account gets back what it had before the link: its conversations, memories, jobs, files, budgets and role."
        " What was new after the link stays with your other accounts. If you have several accounts on a platform, use"
        " `platform:id`."
    ),
    example="/unlink telegram",
    parse=lambda text: unlink_account.call(account=text),
)
PAIR = Command(
    name="pair",
    scopes=CommandScopes(read=ADMIN, write=ADMIN),
    usage="[code [member | guest | me | deny] | group [off]]",
    summary="Let strangers talk to the agent",
    help=(
        "Without arguments, lists who asks for access. With the code that a stranger got, says who it is; with an"
        " answer after it, approves or denies. A member can talk to the agent everywhere, a guest only in those direct"
        " messages; `me` links the account to you. `/pair group` lets everybody in a group talk to the agent there. In"
        " a channel on Telegram, post `/pair`, then approve the channel with the code that appears there."
    ),
    example="/pair ABCD-EFGH member",
    parse=_parse_pair,
)
