"""A link that waits: two accounts become one person only after both sides were told what they share, and confirmed.

    /link ──▶ code ──sent from another account──▶ waits for both ──▶ linked
               │                                     │
               └──▶ expired after 15 minutes         └──▶ canceled by either side, or expired after 15 minutes

The code is confirmed by the person who asked for it, from any of their accounts, and by the account that has sent it.

Always true: before a side has confirmed, the other one learns its name and platform and nothing else; a person takes
part in one waiting link at most; a link that waits ends when the role of one side changes, or when one side is linked,
unlinked or erased meanwhile; each operation runs inside the caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from palaver.accounts import linking, merge_table as person_merge
from palaver.accounts.wire import PendingLinkJson
from palaver.commands.reply_text import escape_markdown
from palaver.core.clock import from_micros, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.errors import NothingToDo
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, SessionSource
from palaver.core.texts import Text, join_texts, say, say_count
from palaver.core.wire import build_json
from palaver.delivery.notices import send_notice, send_notice_to_address
from palaver.people import pairing_table as pairing_requests, table as people
from palaver.people.model import ROLE_RANKS, Person, hash_secret
from palaver.people.pairing_table import LINK_CODE_LIFETIME, LinkClaim, LinkCode, generate_code
from palaver.sessions.delivery import Button
from palaver.sessions.inbound import find_delivery_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.people.table import PersonRow
    from palaver.sessions.gateway_config import GatewayConfig

CONFIRM: Final = "confirm"
CANCEL: Final = "cancel"

LinkProblem = Literal[
    "already_linked", "both_sign_in", "changed", "lower_role", "no_account", "nothing_waits", "too_many", "wrong_code"
]

CHANGED: Final = say(
    "link.changed", "One of the two accounts has changed meanwhile, so nothing was linked. Start again with /link."
)


@dataclass(frozen=True, slots=True)
class LinkResult:
    """The result of a code or of an answer: the text for the person, and the link that waits now."""

    text: str
    pending: PendingLinkJson | None = None  # as the side that gets this result may know it
    person: Person | None = None  # whom both accounts belong to now; None: nothing was linked
    problem: LinkProblem | None = None  # why nothing came of it
    retry_after: int = 0  # seconds; more than 0: there were too many attempts, and this one was not made

    def to_dict(self) -> dict[str, Any]:
        return {"linked": self.person is not None, "pending": self.pending, "problem": self.problem}


def create_link_code(
    tx: Transaction, person_id: PersonId, source: SessionSource, now: datetime, *, issued_by: str | None = None
) -> str:
    """Create a person's code. The one before no longer works.

    `issued_by` is the sign-in of a person who asks on the page: when it ends, the code stops working.
    """
    code = generate_code()
    pairing_requests.delete_expired_links(tx, to_micros(now))
    expires_at = to_micros(now + LINK_CODE_LIFETIME)
    pairing_requests.save_link_code(tx, hash_secret(code), person_id, source, expires_at, issued_by)
    crash_point("link.stored")
    return code


def claim_code(tx: Transaction, code: LinkCode, source: SessionSource, now: datetime) -> LinkResult | None:
    """Let an account ask to be linked with a code, and ask both sides; None if another account has sent it already."""
    account = people.find_account(source)
    if account is None:
        return LinkResult(
            say("link.no_identity", "This chat doesn't say who you are, so it can't be linked."), problem="no_account"
        )
    if code.claim is not None and code.claim.account != account:
        return None
    sender = people.find_by_account(tx, *account)
    issuer = _get_issuer(tx, code)
    refusal = _find_refusal(tx, issuer, sender)
    if refusal is not None:
        return refusal
    if code.claim is None:
        claim = LinkClaim(source=source, account=account, person_id=sender.person.id if sender else None)
        code = pairing_requests.claim_link_code(tx, code, claim, to_micros(now + LINK_CODE_LIFETIME))
        crash_point("link.stored")
        _ask(tx, code, to_micros(now), is_issuer=True)
    pending = _describe(tx, code, is_issuer=False)
    return LinkResult(format_question(pending), pending)


def _find_refusal(tx: Transaction, issuer: PersonRow, sender: PersonRow | None) -> LinkResult | None:
    if sender is None:
        return None
    if sender.person.id == issuer.person.id:
        text = say("link.already", "These accounts are already linked. Send the code from your other account.")
        return LinkResult(text, problem="already_linked")
    if ROLE_RANKS[issuer.person.role] < ROLE_RANKS[sender.person.role]:
        return LinkResult(
            say(
                "link.lower_role",
                "That code is from an account with fewer rights than yours. Use /link here instead, and send the new"
                " code from the other account.",
            ),
            problem="lower_role",
        )
    if linking.can_both_sign_in(tx, issuer, sender):
        return LinkResult(linking.BOTH_SIGN_IN, problem="both_sign_in")
    return None


def find_pending(
    tx: Transaction, source: SessionSource, person: Person | None, now: datetime
) -> PendingLinkJson | None:
    """Return the link that waits for the person who writes from a source. It changes nothing."""
    found = _find(tx, source, person, now, reads=True)
    return None if found is None else _describe(tx, found[0], is_issuer=found[1])


def answer(
    tx: Transaction,
    verb: str,
    source: SessionSource,
    person: Person | None,
    config: GatewayConfig,
    now: datetime,
    *,
    asked: str | None = None,
) -> LinkResult:
    """Confirm or cancel the link that waits for the person who writes; with both confirmed, link the accounts.

    `asked` says which question a button belongs to. Raises `NothingToDo` for an old one.
    """
    found = _find(tx, source, person, now)
    if asked is not None and (found is None or str(found[0].expires_at) != asked):
        raise NothingToDo.say("button.old", "This button no longer works.")
    if found is None:
        return LinkResult(
            say("link.nothing", "There is no link to confirm or cancel. It may have expired. Start again with /link."),
            problem="nothing_waits",
        )
    code, is_issuer = found
    if verb == CANCEL:
        return _cancel(tx, code, now, is_issuer=is_issuer)
    is_first = not (code.is_confirmed if is_issuer else code.claim and code.claim.is_confirmed)
    code = pairing_requests.confirm_link(tx, code, is_issuer=is_issuer)
    crash_point("link.stored")
    if code.claim is not None and code.is_confirmed and code.claim.is_confirmed:
        return _link(tx, code, config, now, is_issuer=is_issuer)
    if is_first:
        _ask(tx, code, to_micros(now), is_issuer=not is_issuer)
    pending = _describe(tx, code, is_issuer=is_issuer)
    name = escape_markdown(pending["other_name"])
    return LinkResult(
        say("link.confirmed", "Confirmed. Nothing is shared until **{name}** has confirmed, too.", name=name), pending
    )


def _find(
    tx: Transaction, source: SessionSource, person: Person | None, now: datetime, *, reads: bool = False
) -> tuple[LinkCode, bool] | None:
    """Return the waiting link, and whether the person is the one who has asked for the code."""
    account = people.find_account(source)
    person_id = person.id if person else None
    found = pairing_requests.find_waiting_link(tx, person_id, account, to_micros(now), reads=reads)
    if found is None or found.claim is None:
        return None
    return found, found.claim.account != account


def _cancel(tx: Transaction, code: LinkCode, now: datetime, *, is_issuer: bool) -> LinkResult:
    pairing_requests.delete_links_of_person(tx, code.person_id)
    assert code.claim is not None  # noqa: S101  (only links that wait are found)
    other = code.claim.source if is_issuer else code.source
    send_notice(
        tx,
        other,
        say("link.canceled_by_other", "The link was canceled by the other side. Nothing was shared."),
        to_micros(now),
    )
    return LinkResult(say("link.canceled", "Canceled. Nothing was shared, and the code no longer works."))


def _link(tx: Transaction, code: LinkCode, config: GatewayConfig, now: datetime, *, is_issuer: bool) -> LinkResult:
    """Link the accounts of a code that both sides have confirmed, unless something has changed since it was sent."""
    claim = code.claim
    assert claim is not None  # noqa: S101  (only links that wait are found)
    pairing_requests.delete_links_of_person(tx, code.person_id)
    sender = people.find_by_account(tx, *claim.account)
    issuer = _get_issuer(tx, code)
    other_source = claim.source if is_issuer else code.source
    if (sender.person.id if sender else None) != claim.person_id or _find_refusal(tx, issuer, sender) is not None:
        send_notice(tx, other_source, CHANGED, to_micros(now))
        return LinkResult(CHANGED, problem="changed")
    person = linking.link_account(tx, claim.source, issuer, config, now)
    crash_point("link.stored")
    linking.tell_about_link(tx, person, claim.source, now, except_source=code.source if is_issuer else claim.source)
    text = say(
        "link.done",
        "Linked: both accounts belong to **{name}**, {role}. Your conversations are the same everywhere. Use"
        " /unlink to undo this.",
        name=escape_markdown(person.name),
        role=linking.describe_role(person.role),
    )
    request = pairing_requests.find_by_account(tx, *claim.account, to_micros(now))
    if request is not None:
        pairing_requests.delete(tx, request)
    return LinkResult(text, person=person)


def _get_issuer(tx: Transaction, code: LinkCode) -> PersonRow:
    issuer = people.find_by_id(tx, code.person_id)
    assert issuer is not None  # noqa: S101  (the code is deleted with its person)
    return issuer


def _ask(tx: Transaction, code: LinkCode, now: int, *, is_issuer: bool) -> None:
    """Ask one side in its chat. On the page and in the terminal, people find the question themselves."""
    assert code.claim is not None  # noqa: S101  (only links that wait are found)
    address = find_delivery_address(code.source if is_issuer else code.claim.source)
    if address is None:
        return
    question = format_question(_describe(tx, code, is_issuer=is_issuer))
    buttons = tuple(
        Button(label, f"link-{verb}:{code.expires_at}")
        for label, verb in ((say("button.confirm", "Confirm"), CONFIRM), (say("button.cancel", "Cancel"), CANCEL))
    )
    send_notice_to_address(tx, str(address), question, now, buttons=buttons)


def _describe(tx: Transaction, code: LinkCode, *, is_issuer: bool) -> PendingLinkJson:
    """Describe a link for one of its sides, with nothing of the other that has not confirmed but name and platform."""
    claim = code.claim
    assert claim is not None  # noqa: S101  (only links that wait are found)
    issuer = _get_issuer(tx, code)
    sender = None if claim.person_id is None else people.find_by_id(tx, claim.person_id)
    claim_name = (sender.person.name if sender else None) or claim.source.user_name or claim.account[1]
    is_web = claim.source.platform in PLATFORMS_WITHOUT_DELIVERY
    keeps = sender if sender is not None and person_merge.can_sign_in(tx, sender.person.id) else issuer
    own_id, other_id = (issuer.person.id, claim.person_id) if is_issuer else (claim.person_id, issuer.person.id)
    is_other_confirmed = claim.is_confirmed if is_issuer else code.is_confirmed
    return build_json(
        PendingLinkJson,
        None,
        other_name=claim_name if is_issuer else issuer.person.name,
        other_platform=(claim.source if is_issuer else code.source).platform.label,
        other_account=claim.account[1] if is_issuer and not is_web else None,  # only of the account that has sent it
        is_issuer=is_issuer,
        is_confirmed=code.is_confirmed if is_issuer else claim.is_confirmed,
        is_other_confirmed=is_other_confirmed,
        shares=person_merge.count_belongings(tx, own_id),
        gets=person_merge.count_belongings(tx, other_id) if is_other_confirmed else None,
        role=issuer.person.role if is_issuer or code.is_confirmed else None,  # that both have afterwards
        kept_by=keeps.person.name,
        expires_at=from_micros(code.expires_at),
    )


_COUNT: Final[Mapping[str, Callable[[int], Text]]] = {
    "conversations": lambda count: say_count(
        "count.conversations", count, "{count} conversation", "{count} conversations"
    ),
    "group_conversations": lambda count: say_count(
        "count.group_conversations", count, "{count} group conversation", "{count} group conversations"
    ),
    "memories": lambda count: say_count("count.memories", count, "{count} memory", "{count} memories"),
    "jobs": lambda count: say_count("count.jobs", count, "{count} job", "{count} jobs"),
    "files": lambda count: say_count("count.files", count, "{count} file", "{count} files"),
    "projects": lambda count: say_count("count.projects", count, "{count} project", "{count} projects"),
    "prompts": lambda count: say_count("count.prompts", count, "{count} saved prompt", "{count} saved prompts"),
    "shares": lambda count: say_count("count.shares", count, "{count} shared link", "{count} shared links"),
    "budgets": lambda count: say_count("count.budgets", count, "{count} budget limit", "{count} budget limits"),
}


def format_counts(counts: Mapping[str, int]) -> str:
    """Return what there is of each kind in words: `3 conversations, 1 job`."""
    words = [_COUNT[kind](count) for kind, count in counts.items() if count]
    return join_texts(", ", words) or say("link.nothing_yet", "nothing yet")


def format_question(link: PendingLinkJson) -> str:
    """Write what one side shares and gets, for people in a chat or terminal."""
    name = escape_markdown(link["other_name"], 60)
    place = linking.format_account(link["other_platform"], link["other_account"] or "", link["other_name"])
    if link["is_issuer"]:
        first = say(
            "link.wants",
            "**{place}** wants to be linked to you with your code. If that isn't you, use `/link cancel`.",
            place=place,
        )
    else:
        first = say(
            "link.from", "This code is from **{name}** ({platform}).", name=name, platform=link["other_platform"]
        )
    gets = (
        say("link.unknown_amount", "how much that is, you see when {name} has confirmed", name=name)
        if link["gets"] is None
        else format_counts(link["gets"])
    )
    role = (
        say("link.role_of_code", "the one that the code's account has")
        if link["role"] is None
        else linking.describe_role(link["role"])
    )
    lines = [
        say(
            "link.question",
            "{first} Nothing is shared yet. If you both confirm, both accounts become one person:",
            first=first,
        ),
        "",
        say(
            "link.shares",
            "- **You share**: {counts}. {name} sees and can change all of it.",
            counts=format_counts(link["shares"]),
            name=name,
        ),
        say("link.gets", "- **You get**: everything that {name} has ({gets}).", name=name, gets=gets),
        say("link.role", "- **Role**: {role}, for both. Budgets count for both together.", role=role),
        say(
            "link.undo",
            "- **To undo it**: use /unlink. Each account gets back what it had before, and the role it had. What"
            " is new after the link stays with {name}.",
            name=escape_markdown(link["kept_by"], 60),
        ),
        "",
        say("link.answer", "Use `/link confirm` within 15 minutes, or `/link cancel`."),
    ]
    return join_texts("\n", lines)
