"""A whole gateway with a mailbox: nothing lost, nothing doubled, and each thread is a conversation of its own."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from palaver.core.source import Platform
from palaver.delivery import parts
from palaver.inbox.answer_brake import LIMITS
from palaver.platforms.email import adapter as adapter_module, manifest
from palaver.sessions.delivery import DeliveryState
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, skip_retry_wait, wait_for_states

from .mail_server import ADDRESS, ANNA, BOB, MailServer


@pytest.fixture
def starter(starter: GatewayStarter) -> GatewayStarter:
    """Starts gateways, and waits until they receive: the first start reads no old mails."""
    starter.after_start = lambda gateway: wait_until(gateway.accounts.list_live_adapters)
    return starter


async def test_each_thread_is_a_conversation(server: MailServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start()
    lunch = await server.say("about lunch", subject="Lunch")
    await server.say("about dinner", subject="Dinner")
    await wait_until(lambda: len(server.mails) == 2)
    by_subject = {str(mail.message["Subject"]): mail for mail in server.mails}
    assert by_subject["Re: Lunch"].message["In-Reply-To"] == f"<{lunch}>"
    await server.say("still about lunch", subject="Re: Lunch", references=[lunch, by_subject["Re: Lunch"].message_id])
    deliveries = await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert len({delivery.session_id for delivery in deliveries}) == 2
    [asked] = [request for request in starter.agent.requests if "still about lunch" in json.dumps(request.messages)]
    assert "You said: about lunch" in json.dumps(asked.messages)
    assert "dinner" not in json.dumps(asked.messages)
    assert server.mails[2].message["References"].split()[0] == f"<{lunch}>"
    assert all(mail.recipients == (ANNA,) for mail in server.mails)


async def test_nothing_leaks_between_people_and_groups(server: MailServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start()
    first = await server.say("Anna's secret", subject="Private")
    await wait_until(lambda: len(server.mails) == 1)
    private = server.mails[0].message_id
    # Bob replies to Anna's thread, whose ids he knows somehow; and there is a group in the same thread.
    await server.say("Bob asks", sender=BOB, subject="Re: Private", references=[first, private])
    await server.say("to both", to=[ADDRESS, BOB], subject="Re: Private", references=[first, private])
    await wait_until(lambda: len(server.mails) == 3)
    await server.say("both again", sender=BOB, to=[ADDRESS, ANNA], subject="Re: Private", references=[first, private])
    deliveries = await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    assert len({delivery.session_id for delivery in deliveries}) == 3
    recipients = {mail.text.removeprefix("You said: "): set(mail.recipients) for mail in server.mails}
    assert recipients["Anna's secret"] == {ANNA}
    assert recipients["Bob asks"] == {BOB}
    assert [each for each in recipients.values() if each == {ANNA, BOB}] == [{ANNA, BOB}] * 2
    for request in starter.agent.requests:
        asked = json.dumps(request.messages)
        assert asked.count("Anna's secret") == 0 or "Bob asks" not in asked
        assert "Anna's secret" not in asked or "to both" not in asked


async def test_in_a_group_only_what_is_addressed_is_answered_and_the_rest_is_known(
    server: MailServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start()
    root = await server.say("Hi Bob, the code is 42", to=[BOB], cc=[ADDRESS], subject="Plan")
    await server.say("What is the code?", sender=BOB, to=[ADDRESS, ANNA], subject="Re: Plan", references=[root])
    await wait_for_states(gateway, DeliveryState.SENT)
    [mail] = server.mails
    assert set(mail.recipients) == {ANNA, BOB}
    assert "the code is 42" in json.dumps(starter.agent.requests[0].messages, default=str)


async def test_commands_work_as_lines(server: MailServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start()
    root = await server.say("remember me", subject="Hi")
    await wait_for_states(gateway, DeliveryState.SENT)
    await server.say("/new", subject="Re: Hi", references=[root])
    await wait_until(lambda: len(server.mails) == 2)
    await server.say("who am I?", subject="Re: Hi", references=[root])
    await wait_until(lambda: len(server.mails) == 3)
    assert "remember me" not in json.dumps(starter.agent.requests[-1].messages)
    assert server.mails[1].message["Auto-Submitted"] == "auto-replied"


async def test_mails_of_programs_are_not_answered_unless_they_are_allowed(
    server: MailServer, starter: GatewayStarter
) -> None:
    gateway, first = await starter.start()
    await server.say("news", headers=[("List-Id", "<news.example>")])
    await server.say("I am on vacation", headers=[("Auto-Submitted", "auto-replied")])
    await server.say("alert", sender="noreply@example.com")
    await server.say("a person")
    await wait_for_states(gateway, DeliveryState.SENT)
    assert [mail.text for mail in server.mails] == ["You said: a person"]
    await first.aclose()
    gateway, _ = await starter.start(bot_platforms=frozenset({Platform.EMAIL}))
    await server.say("more news", headers=[("List-Id", "<news.example>")])
    await server.say("I am still on vacation", headers=[("Auto-Submitted", "auto-replied")])
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert [mail.text for mail in server.mails] == ["You said: a person", "You said: more news"]


CALENDAR = "BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nSUMMARY:Lunch\nDTSTART:20261120\nEND:VEVENT\nEND:VCALENDAR\n"


async def test_only_what_a_person_writes_to_an_invitation_is_answered(
    server: MailServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start()
    for text in (" ", "I will be late."):
        await server.say(text, subject="Accepted: Lunch", calendar=("REPLY", CALENDAR))
    await wait_for_states(gateway, DeliveryState.SENT)
    assert [mail.text for mail in server.mails] == ["You said: I will be late."]


async def test_a_robot_without_a_mark_is_not_answered_for_ever(server: MailServer, starter: GatewayStarter) -> None:
    limit = LIMITS[0].max_answers
    gateway, _ = await starter.start()
    thread = [await server.say("Ticket created.", subject="Ticket")]
    for number in range(limit):
        await wait_for_states(gateway, *[DeliveryState.SENT] * (number + 1))
        thread = [thread[0], server.mails[-1].message_id]
        await server.say(f"Ticket {number} created.", subject="Re: Ticket", references=thread)
    await wait_for_states(gateway, *[DeliveryState.SENT] * (limit + 1))
    assert "I'm not answering here for" in server.mails[-1].text
    await server.say("Ticket closed.", subject="Re: Ticket", references=[thread[0], server.mails[-1].message_id])
    await server.say("about something else")
    await wait_for_states(gateway, *[DeliveryState.SENT] * (limit + 2))
    assert server.mails[-1].text == "You said: about something else"


async def test_a_quote_is_cut_only_where_it_is_known(server: MailServer, starter: GatewayStarter) -> None:
    """The answer of one thread is nothing that another thread has."""
    gateway, _ = await starter.start()
    lunch = await server.say(
        "about lunch on Friday, at noon, with all of the people from the office upstairs", subject="Lunch"
    )
    dinner = await server.say("about dinner", subject="Dinner")
    await wait_until(lambda: len(server.mails) == 2)
    by_subject = {str(mail.message["Subject"]): mail for mail in server.mails}
    quote = f"On 11/16/26 3:00 PM, Palaver wrote:\n> {by_subject['Re: Lunch'].text}"
    for subject, root in (("Lunch", lunch), ("Dinner", dinner)):
        references = [root, by_subject[f"Re: {subject}"].message_id]
        await server.say(f"And now?\n\n{quote}", subject=f"Re: {subject}", references=references)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 4)
    answers = sorted(mail.text.replace("\r\n", "\n") for mail in server.mails[2:])
    assert answers == ["You said: And now?", f"You said: And now?\n\n{quote}"]


async def test_a_reply_to_all_needs_no_new_address_until_another_person_is_addressed(
    server: MailServer, starter: GatewayStarter
) -> None:
    gateway, _ = await starter.start()
    thread = [await server.say("when is lunch?", to=[ADDRESS, BOB], subject="Plan")]
    await wait_until(lambda: len(server.mails) == 1)
    thread.append(server.mails[0].message_id)
    thread.append(await server.say("and dinner?", to=[BOB], cc=[ADDRESS], references=thread))
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    thread.append(await server.say("Anna, I can't come", sender=BOB, to=[ANNA], cc=[ADDRESS], references=thread))
    thread.append(await server.say("why?", to=[BOB], cc=[ADDRESS], references=thread))
    await server.say("what do you say?", to=[ADDRESS, BOB], references=thread)
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert [mail.text.splitlines()[-1].split()[-1] for mail in server.mails] == ["lunch?", "dinner?", "say?"]
    assert "I can't come" in json.dumps(starter.agent.requests[-1].messages)


async def test_a_stranger_gets_a_code_and_a_forged_sender_nothing(server: MailServer, starter: GatewayStarter) -> None:
    await starter.start(open_platforms=frozenset())
    await server.say("I am Bob, let me in", sender=BOB, dmarc="fail")
    await server.say("news", sender="noreply@example.com")
    await server.say("let me in")
    await wait_until(lambda: server.mails)
    [mail] = server.mails
    assert mail.recipients == (ANNA,)
    assert starter.agent.requests == []


async def test_files_reach_the_agent(server: MailServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start()
    await server.say("read this", files=[("notes.txt", b"the answer is 42")])
    await wait_for_states(gateway, DeliveryState.SENT)
    assert "the answer is 42" in json.dumps(starter.agent.requests[0].messages, default=str)


async def test_what_came_during_a_restart_is_answered_once(server: MailServer, starter: GatewayStarter) -> None:
    gateway, first = await starter.start()
    await server.say("one")
    await wait_for_states(gateway, DeliveryState.SENT)
    await first.aclose()
    await server.say("two")
    await server.say("three")
    gateway, _ = await starter.start()
    await server.imap.cut()
    await wait_for_states(gateway, *[DeliveryState.SENT] * 3)
    assert sorted(mail.text for mail in server.mails) == ["You said: one", "You said: three", "You said: two"]


async def test_an_uncertain_answer_is_certain_when_it_is_found_in_the_sent_folder(
    server: MailServer, starter: GatewayStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_module, "CONFIRM_DELAYS", (0.05, 0.1, 0.5, 2.0))
    await server.get_folder("Sent")
    server.saves_sent = True
    gateway, _ = await starter.start()
    await server.say("first")
    await wait_for_states(gateway, DeliveryState.SENT)
    server.faults.loses_answer = True
    await server.say("hello")
    await wait_for_states(gateway, DeliveryState.SENT, DeliveryState.SENT)
    assert len(server.mails) == 2


async def test_a_busy_server_gets_the_answer_later(server: MailServer, starter: GatewayStarter) -> None:
    server.faults.next_answers = ["451 4.3.0 Try again"]
    gateway, _ = await starter.start()
    await server.say("hello")
    await skip_retry_wait(gateway)
    await wait_for_states(gateway, DeliveryState.SENT)
    assert (server.faults.next_answers, len(server.mails)) == ([], 1)


@pytest.fixture
def provider_saves_sent(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the provider be one that puts each mail that it takes into the Sent folder, without a delay."""
    monkeypatch.setattr(manifest, "_HOSTS_THAT_SAVE_SENT", ("127.0.0.1",))
    monkeypatch.setattr(adapter_module, "SENT_DELAY", timedelta(0))
    server.saves_sent = True


@pytest.mark.usefixtures("provider_saves_sent")
async def test_a_mail_whose_answer_was_lost_is_sent_if_it_is_in_the_sent_folder(
    server: MailServer, starter: GatewayStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_module, "CONFIRM_DELAYS", (60.0,))  # the outbox itself looks for it
    await server.get_folder("Sent")
    gateway, _ = await starter.start()
    server.faults.loses_answer = True
    await server.say("hello")
    await skip_retry_wait(gateway)
    [delivery] = await wait_for_states(gateway, DeliveryState.SENT)
    assert delivery.error is None
    assert len(server.mails) == 1


@pytest.mark.usefixtures("provider_saves_sent")
async def test_a_mail_that_is_not_in_the_sent_folder_of_such_a_provider_is_sent_again(
    server: MailServer, starter: GatewayStarter
) -> None:
    await server.get_folder("Sent")
    gateway, _ = await starter.start()
    server.smtp.cut_after = b"DATA"
    await server.say("hello")
    await skip_retry_wait(gateway)
    await wait_for_states(gateway, DeliveryState.SENT)
    [mail] = server.mails
    assert mail.text == "You said: hello"


@pytest.mark.usefixtures("provider_saves_sent")
async def test_a_mail_that_cannot_be_looked_for_is_uncertain_with_the_reason(
    server: MailServer, starter: GatewayStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_DELIVERY_ATTEMPTS", 2)
    server.saves_sent = False  # and there is no folder
    gateway, _ = await starter.start()
    server.faults.loses_answer = True
    await server.say("hello")
    await skip_retry_wait(gateway)
    [delivery] = await wait_for_states(gateway, DeliveryState.UNCERTAIN)
    assert "no folder for sent mails" in (delivery.error or "")
    assert len(server.mails) == 1


async def test_a_mail_is_uncertain_where_absence_from_the_sent_folder_proves_nothing(
    server: MailServer, starter: GatewayStarter
) -> None:
    await server.get_folder("Sent")
    gateway, _ = await starter.start()
    server.faults.loses_answer = True
    await server.say("hello")
    [delivery] = await wait_for_states(gateway, DeliveryState.UNCERTAIN)
    assert "did not say whether it has taken the mail" in (delivery.error or "")
    assert len(server.mails) == 1
