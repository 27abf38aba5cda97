"""What the agent sees of mails as people's mail programs write them, read by a whole gateway from a real mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, wait_for_states

from .mail_corpus import ANSWER, MAILS, QUESTION, Mail, fill

if TYPE_CHECKING:
    from palaver import SessionStore

    from .mail_server import MailServer, SentMail


def test_the_corpus_is_wide_enough() -> None:
    assert len(MAILS) >= 60
    assert len({mail.client.partition(",")[0].partition(" on ")[0].partition(" for ")[0] for mail in MAILS}) >= 10
    assert len({mail.language for mail in MAILS}) >= 8


async def test_the_agent_sees_what_a_person_has_sent(server: MailServer, starter: GatewayStarter) -> None:
    starter.after_start = lambda gateway: wait_until(gateway.accounts.list_live_adapters)
    gateway, _ = await starter.start(agent=ScriptedAgent(ANSWER))
    for number in range(len(MAILS)):
        sender = f"Anna Berg <anna{number}@example.com>"
        await server.say(QUESTION, sender=sender, subject="Lunch", message_id=f"question{number}@mail.example")
    await wait_for_states(gateway, *[DeliveryState.SENT] * len(MAILS))
    answers = {mail.recipients[0]: mail for mail in server.mails}
    for number, mail in enumerate(MAILS):
        await _reply(server, number, mail, answers[f"anna{number}@example.com"])
    await wait_for_states(gateway, *[DeliveryState.SENT] * 2 * len(MAILS))
    seen = _list_contents(gateway.store)
    wrong = {}
    for number, mail in enumerate(MAILS):
        text, html = _get_bodies(answers[f"anna{number}@example.com"])
        template = mail.text if mail.seen is None else mail.seen
        expected = fill(template or "", text=text, html=html).strip()
        got = seen[f"case{number}@mail.example"]
        if got.split("\n") != [line.rstrip() for line in expected.split("\n")]:
            wrong[f"{number} {mail.client} ({mail.language})"] = (got, expected)
    assert wrong == {}


async def _reply(server: MailServer, number: int, mail: Mail, answer: SentMail) -> None:
    text, html = _get_bodies(answer)
    sender = f"anna{number}@example.com"
    data = server.make_mail(
        fill(mail.text or "", text=text, html=html).replace("SENDER", sender),
        html=fill(mail.html, text=text, html=html) if mail.html else None,
        sender=f"Anna Berg <{sender}>",
        subject=mail.subject,
        message_id=f"case{number}@mail.example",
        references=[f"question{number}@mail.example", answer.message_id],
        charset=mail.charset,
        calendar=mail.calendar,
    )
    await server.deliver(data)


def _get_bodies(mail: SentMail) -> tuple[str, str]:
    html = mail.message.get_body(("html",))
    assert html is not None
    return mail.text, html.get_content().partition("<body>")[2].partition("</body>")[0]


def _list_contents(store: SessionStore) -> dict[str, str]:
    """Return the texts of all messages by the ids of their mails."""
    sql = "SELECT platform_message_id, content FROM event WHERE platform_message_id IS NOT NULL"
    return dict(store.engine.run(Read(lambda tx: [tuple(row) for row in tx.fetch_all(sql)])))
