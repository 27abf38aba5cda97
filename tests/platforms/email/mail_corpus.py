# ruff: noqa: E501  (mails have lines as long as their programs write them)
"""Mails as common mail programs write them, each with what the agent must see of it.

Each belongs to a thread: a person has asked QUESTION, and the agent has answered ANSWER. In the texts stand for them

    {marked}   the text of the answer, as programs quote it that quote the plain text: with `> `, lines broken anew
    {gmail}    the same as Gmail, Apple Mail and others make it from the HTML
    {outlook}  the same as Outlook makes it from the HTML, with links that lead through its server
    {html}     the HTML of the answer
    {question} the text of the person's own mail

and `None` as what must be seen stands for everything.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

QUESTION = "Where can we have lunch?\n\nThree of us, on Friday.\n\n-- \nAnna Berg\nExample Ltd."
ANSWER = """## Lunch options

Here are **two places** that are near you, open on Friday, and large enough for the three of you:

1. *Café Blau*: soup and salad
2. Osteria Roma: pasta, see [the menu](https://example.org/menu?day=1&for=3)

| place | price |
|---|---|
| Café Blau | 12 € |
| Osteria Roma | 18 € |

Shall I book a table?"""
_OUTLOOK = """Lunch options
Here are two places that are near you, open on Friday, and large enough for the three of you:

  1.  Café Blau: soup and salad
  2.  Osteria Roma: pasta, see the menu<https://eur02.safelinks.protection.outlook.com/?url=https%3A%2F%2Fexample.org%2Fmenu%3Fday%3D1%26for%3D3&data=05%7C02%7Canna&reserved=0>
place   price
Café Blau       12 €
Osteria Roma    18 €

Shall I book a table?"""
_GMAIL = """> Lunch options
> Here are *two places* that are near you, open on Friday, and large enough for
> the three of you:
>
>    1. *Café Blau*: soup and salad
>    2. Osteria Roma: pasta, see the menu
>    <https://example.org/menu?day=1&for=3>
>
> place price
> Café Blau 12 €
> Osteria Roma 18 €
>
> Shall I book a table?
>"""
AGENT = "Palaver <palaver@example.org>"


@dataclass(frozen=True)
class Mail:
    client: str
    language: str
    text: str | None
    seen: str | None
    html: str | None = None
    subject: str = "Re: Lunch"
    charset: str = "utf-8"
    calendar: tuple[str, str] | None = None  # the method of the part, and its text


def fill(template: str, *, text: str, html: str) -> str:
    """Return a mail with the answer in it, whose text and HTML were sent."""
    values = {
        "{marked}": mark(text),
        "{gmail}": _GMAIL,
        "{outlook}": _OUTLOOK,
        "{html}": html,
        "{question}": QUESTION,
        "{marked_question}": mark(QUESTION),
    }
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def mark(text: str) -> str:
    """Quote a text as plain text: lines longer than 72 characters are broken."""
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, 72, break_long_words=False) or [""]]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def mark_twice(text: str) -> str:
    return "\n".join(f">{line}" for line in mark(text).split("\n"))


# ---- replies on top of the quoted answer -----------------------------------------------------------------------

REPLIES = [
    Mail(
        "Gmail", "en", f"Yes, please.\n\nOn Mon, Nov 16, 2026 at 3:00 PM {AGENT} wrote:\n\n{{gmail}}\n", "Yes, please."
    ),
    Mail(
        "Gmail",
        "en",
        "Yes, at noon.\n\nOn Mon, Nov 16, 2026 at 3:00 PM The Palaver Agent of Example\n<palaver@example.org> wrote:\n\n{gmail}\n",
        "Yes, at noon.",
    ),
    Mail(
        "Gmail",
        "de",
        "Ja, gerne.\n\nAm Mo., 16. Nov. 2026 um 15:00 Uhr schrieb Palaver <\npalaver@example.org>:\n\n{gmail}\n",
        "Ja, gerne.",
    ),
    Mail("Gmail", "fr", f"Oui !\n\nLe lun. 16 nov. 2026 à 15:00, {AGENT} a écrit :\n\n{{gmail}}\n", "Oui !"),
    Mail(
        "Gmail",
        "es",
        f"Sí, gracias.\n\nEl lun, 16 nov 2026 a las 15:00, {AGENT} escribió:\n\n{{gmail}}\n",
        "Sí, gracias.",
    ),
    Mail("Gmail", "pt", f"Sim.\n\nEm seg., 16 de nov. de 2026 às 15:00, {AGENT} escreveu:\n\n{{gmail}}\n", "Sim."),
    Mail(
        "Gmail",
        "it",
        f"Sì, grazie.\n\nIl giorno lun 16 nov 2026 alle ore 15:00 {AGENT} ha scritto:\n\n{{gmail}}\n",
        "Sì, grazie.",
    ),
    Mail("Gmail", "nl", f"Ja graag.\n\nOp ma 16 nov 2026 om 15:00 schreef {AGENT}:\n\n{{gmail}}\n", "Ja graag."),
    Mail("Gmail", "pl", f"Tak.\n\npon., 16 lis 2026 o 15:00 {AGENT} napisał(a):\n\n{{gmail}}\n", "Tak."),
    Mail("Gmail", "ru", f"Да.\n\nпн, 16 нояб. 2026 г. в 15:00, {AGENT}:\n\n{{gmail}}\n", "Да."),
    Mail("Gmail", "ja", f"はい。\n\n2026年11月16日(月) 15:00 {AGENT}:\n\n{{gmail}}\n", "はい。"),
    Mail("Gmail", "zh", f"好的。\n\n{AGENT} 于2026年11月16日周一 15:00写道：\n\n{{gmail}}\n", "好的。"),
    Mail(
        "Gmail, HTML only",
        "en",
        None,
        "Yes, please.",
        html='<div dir="ltr">Yes, please.</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">On Mon, Nov 16,'
        ' 2026 at 3:00 PM Palaver &lt;<a href="mailto:palaver@example.org">palaver@example.org</a>&gt; wrote:<br></div>'
        '<blockquote class="gmail_quote" style="margin:0 0 0 .8ex;border-left:1px solid #ccc">{html}</blockquote></div>',
    ),
    Mail(
        "Apple Mail",
        "en",
        f"Yes.\n\nAnna\n\n> On Nov 16, 2026, at 3:00 PM, {AGENT} wrote:\n> \n{{gmail}}\n",
        "Yes.\n\nAnna",
    ),
    Mail("Apple Mail", "de", f"Ja.\n\n> Am 16.11.2026 um 15:00 schrieb {AGENT}:\n> \n{{gmail}}\n", "Ja."),
    Mail("Apple Mail", "fr", f"Oui.\n\n> Le 16 nov. 2026 à 15:00, {AGENT} a écrit :\n> \n{{gmail}}\n", "Oui."),
    Mail(
        "Apple Mail on iPhone",
        "en",
        f"Sounds good\n\nSent from my iPhone\n\n> On Nov 16, 2026, at 3:00 PM, {AGENT} wrote:\n> \n> \n{{gmail}}\n",
        "Sounds good\n\nSent from my iPhone",
    ),
    Mail(
        "Apple Mail, HTML only",
        "it",
        None,
        "Va bene.",
        html="<html><body>Va bene.<br><div><br><blockquote type='cite'><div>Il giorno 16 nov 2026, alle ore 15:00, Palaver"
        " &lt;palaver@example.org&gt; ha scritto:</div><br><div>{html}</div></blockquote></div></body></html>",
    ),
    Mail(
        "Outlook",
        "en",
        f"Yes.\n\nKind regards\nAnna\n\nFrom: {AGENT}\nSent: Monday, November 16, 2026 3:00 PM\nTo: Anna Berg"
        " <anna@example.com>\nSubject: Re: Lunch\n\n{outlook}\n",
        "Yes.\n\nKind regards\nAnna",
    ),
    Mail(
        "Outlook",
        "de",
        f"Ja bitte.\n\nVon: {AGENT}\nGesendet: Montag, 16. November 2026 15:00\nAn: Anna Berg <anna@example.com>\n"
        "Betreff: Re: Lunch\n\n{outlook}\n",
        "Ja bitte.",
        subject="AW: Lunch",
    ),
    Mail(
        "Outlook",
        "fr",
        f"Oui.\n\nDe : {AGENT}\nEnvoyé : lundi 16 novembre 2026 15:00\nÀ : Anna Berg <anna@example.com>\nObjet : Re: Lunch\n\n{{outlook}}\n",
        "Oui.",
    ),
    Mail(
        "Outlook",
        "es",
        f"Sí.\n\nDe: {AGENT}\nEnviado el: lunes, 16 de noviembre de 2026 15:00\nPara: Anna Berg <anna@example.com>\n"
        "Asunto: Re: Lunch\n\n{outlook}\n",
        "Sí.",
    ),
    Mail(
        "Outlook",
        "pt",
        f"Sim, por favor.\n\nDe: {AGENT}\nEnviada em: segunda-feira, 16 de novembro de 2026 15:00\nPara: Anna Berg"
        " <anna@example.com>\nAssunto: Re: Lunch\n\n{outlook}\n",
        "Sim, por favor.",
    ),
    Mail(
        "Outlook",
        "it",
        f"Sì.\n\nDa: {AGENT}\nInviato: lunedì 16 novembre 2026 15:00\nA: Anna Berg <anna@example.com>\nOggetto: Re: Lunch\n\n{{outlook}}\n",
        "Sì.",
    ),
    Mail(
        "Outlook",
        "nl",
        f"Prima.\n\nVan: {AGENT}\nVerzonden: maandag 16 november 2026 15:00\nAan: Anna Berg <anna@example.com>\n"
        "Onderwerp: Re: Lunch\n\n{outlook}\n",
        "Prima.",
    ),
    Mail(
        "Outlook",
        "sv",
        f"Ja tack.\n\nFrån: {AGENT}\nSkickat: den 16 november 2026 15:00\nTill: Anna Berg <anna@example.com>\nÄmne: Re: Lunch\n\n{{outlook}}\n",
        "Ja tack.",
    ),
    Mail(
        "Outlook, HTML only",
        "de",
        None,
        "Ja bitte.",
        html="<html xmlns:o='urn:schemas-microsoft-com:office:office'><head><style>p.MsoNormal{margin:0cm}</style></head><body>"
        "<div class=WordSection1><p class=MsoNormal>Ja bitte.<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p>"
        "<div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal><b>Von:</b>"
        " Palaver &lt;palaver@example.org&gt; <br><b>Gesendet:</b> Montag, 16. November 2026 15:00<br><b>An:</b> Anna Berg"
        " &lt;anna@example.com&gt;<br><b>Betreff:</b> Re: Lunch<o:p></o:p></p></div><p class=MsoNormal><o:p>&nbsp;</o:p></p>"
        "{html}</div></body></html>",
        subject="AW: Lunch",
    ),
    Mail(
        "Outlook on the web",
        "en",
        f"Yes\n________________________________\nFrom: {AGENT}\nSent: Monday, November 16, 2026 3:00:12 PM\nTo: Anna Berg"
        " <anna@example.com>\nSubject: Re: Lunch\n\n{outlook}\n",
        "Yes",
    ),
    Mail(
        "Outlook on the web, HTML only",
        "es",
        None,
        "Sí.",
        html='<html><body><div style="font-family:Aptos">Sí.</div><div id="appendonsend"></div><hr style="width:98%"><div'
        ' id="divRplyFwdMsg" dir="ltr"><font face="Calibri"><b>De:</b> Palaver &lt;palaver@example.org&gt;<br><b>Enviado:</b>'
        " lunes, 16 de noviembre de 2026 15:00<br><b>Para:</b> Anna Berg &lt;anna@example.com&gt;<br><b>Asunto:</b> Re:"
        " Lunch</font><div>&nbsp;</div></div><div>{html}</div></body></html>",
    ),
    Mail(
        "Outlook for iOS",
        "en",
        f"Yes\n\nGet Outlook for iOS<https://aka.ms/o0ukef>\n________________________________\nFrom: {AGENT}\nSent: Monday,"
        " November 16, 2026 3:00 PM\nTo: Anna Berg <anna@example.com>\nSubject: Re: Lunch\n\n{outlook}\n",
        "Yes\n\nGet Outlook for iOS<https://aka.ms/o0ukef>",
    ),
    Mail("Thunderbird", "en", f"Yes.\n\nOn 11/16/26 3:00 PM, {AGENT.partition(' ')[0]} wrote:\n{{marked}}\n", "Yes."),
    Mail("Thunderbird", "de", "Ja.\n\nAm 16.11.26 um 15:00 schrieb Palaver:\n{marked}\n", "Ja."),
    Mail("Thunderbird", "fr", "Oui.\n\nLe 16/11/2026 à 15:00, Palaver a écrit :\n{marked}\n", "Oui."),
    Mail("Thunderbird", "pl", "Tak.\n\nW dniu 16.11.2026 o 15:00, Palaver pisze:\n{marked}\n", "Tak."),
    Mail("Thunderbird", "ru", "Да.\n\n16.11.2026 15:00, Palaver пишет:\n{marked}\n", "Да."),
    Mail(
        "Yahoo Mail",
        "en",
        f" Yes, book it.\n    On Monday, November 16, 2026 at 03:00:00 PM GMT+1, {AGENT} wrote:  \n \n {{outlook}}  \n",
        "Yes, book it.",
    ),
    Mail(
        "Proton Mail",
        "en",
        f"Yes.\n\nSent with Proton Mail secure email.\n\nOn Monday, November 16th, 2026 at 3:00 PM, {AGENT} wrote:\n\n{{marked}}\n",
        "Yes.\n\nSent with Proton Mail secure email.",
    ),
    Mail(
        "Proton Mail for Android",
        "en",
        f"Yes.\n\n-------- Original Message --------\nOn 11/16/26 15:00, {AGENT} wrote:\n\n{{marked}}\n",
        "Yes.",
    ),
    Mail("K-9 Mail", "de", f"Ja\n\nAm 16. November 2026 15:00:00 MEZ schrieb {AGENT}:\n{{marked}}\n", "Ja"),
    Mail(
        "Samsung Email",
        "en",
        f"Yes\n\nSent from my Galaxy\n\n-------- Original message --------\nFrom: {AGENT}\nDate: 16/11/2026 15:00 (GMT+01:00)\n"
        "To: Anna Berg <anna@example.com>\nSubject: Re: Lunch\n\n{outlook}\n",
        "Yes\n\nSent from my Galaxy",
    ),
    Mail(
        "GMX",
        "de",
        'Ja\n\n\nGesendet: Montag, 16. November 2026 um 15:00 Uhr\nVon: "Palaver" <palaver@example.org>\nAn: anna@example.com\n'
        "Betreff: Re: Lunch\n\n{outlook}\n",
        "Ja",
    ),
    Mail("Fastmail", "en", "Yes.\n\nOn Mon, 16 Nov 2026, at 3:00 PM, Palaver wrote:\n{marked}\n", "Yes."),
    Mail("Roundcube", "en", "Yes.\n\nOn 2026-11-16 15:00, Palaver wrote:\n{marked}\n", "Yes."),
    Mail("Roundcube", "es", "Sí.\n\nEl 2026-11-16 15:00, Palaver escribió:\n{marked}\n", "Sí.", charset="iso-8859-15"),
    Mail(
        "Outlook, the thread below it",
        "en",
        f"Yes.\n\nFrom: {AGENT}\nSent: Monday, November 16, 2026 3:00 PM\nTo: Anna Berg <SENDER>\nSubject: Re: Lunch\n\n"
        "{outlook}\n\nFrom: Anna Berg <SENDER>\nSent: Monday, November 16, 2026 2:58 PM\nTo: Palaver\nSubject: Lunch\n\n{question}\n",
        "Yes.",
    ),
    Mail(
        "Thunderbird, the thread below it",
        "en",
        "Yes.\n\nOn 11/16/26 3:00 PM, Palaver wrote:\n{marked}\n>\n> On 11/16/26 2:58 PM, Anna Berg wrote:\n"
        f"{mark_twice(QUESTION.partition('--')[0].strip())}\n",
        "Yes.",
    ),
    Mail("bare marks", "en", "Yes.\n\n{marked}\n", "Yes."),
    Mail(
        "a signature below",
        "en",
        "Yes.\n\nOn 11/16/26 3:00 PM, Palaver wrote:\n{marked}\n\n-- \nAnna\n",
        "Yes.\n\n-- \nAnna",
    ),
]

# ---- what people forward ---------------------------------------------------------------------------------------

_LETTER = "Dear Ms. Berg,\n\nyour rent is 950 euros from January on.\n\nJ. Landlord"
_MARKED_LETTER = "\n".join(f"> {line}".rstrip() for line in _LETTER.split("\n"))
_LANDLORD = "J. Landlord <landlord@example.net>"

FORWARDS = [
    Mail(
        "Gmail",
        "en",
        f"Please summarize this.\n\n---------- Forwarded message ---------\nFrom: {_LANDLORD}\nDate: Mon, Nov 16, 2026 at"
        f" 9:00 AM\nSubject: Rent\nTo: <anna@example.com>\n\n\n{_LETTER}\n",
        None,
        subject="Fwd: Rent",
    ),
    Mail(
        "Apple Mail",
        "en",
        f"Please summarize this.\n\n> Begin forwarded message:\n> \n> From: {_LANDLORD}\n> Subject: Rent\n> Date: November 16,"
        f" 2026 at 9:00:00 AM GMT+1\n> To: anna@example.com\n> \n{_MARKED_LETTER}\n",
        None,
        subject="Fwd: Rent",
    ),
    Mail(
        "Apple Mail",
        "de",
        f"Bitte zusammenfassen.\n\n> Anfang der weitergeleiteten Nachricht:\n> \n> Von: {_LANDLORD}\n> Betreff: Rent\n> Datum:"
        f" 16. November 2026 um 09:00:00 MEZ\n> An: anna@example.com\n> \n{_MARKED_LETTER}\n",
        None,
        subject="Fwd: Rent",
    ),
    Mail(
        "Outlook",
        "en",
        f"Please summarize this.\n\nFrom: {_LANDLORD}\nSent: Monday, November 16, 2026 9:00 AM\nTo: Anna Berg\nSubject: Rent\n\n{_LETTER}\n",
        None,
        subject="FW: Rent",
    ),
    Mail(
        "Outlook",
        "de",
        f"Bitte zusammenfassen.\n\nVon: {_LANDLORD}\nGesendet: Montag, 16. November 2026 09:00\nAn: Anna Berg\nBetreff: Rent\n\n{_LETTER}\n",
        None,
        subject="WG: Rent",
    ),
    Mail(
        "Outlook, HTML only",
        "en",
        None,
        f"Please summarize this.\n\nFrom: {_LANDLORD}\nSent: Monday, November 16, 2026 9:00 AM\nTo: Anna Berg\nSubject:"
        " Rent\n\nyour rent is 950 euros",
        html="<div><p class=MsoNormal>Please summarize this.</p><div><p class=MsoNormal><b>From:</b> J. Landlord"
        " &lt;landlord@example.net&gt;<br><b>Sent:</b> Monday, November 16, 2026 9:00 AM<br><b>To:</b> Anna Berg<br>"
        "<b>Subject:</b> Rent</p></div><p class=MsoNormal>your rent is 950 euros</p></div>",
        subject="FW: Rent",
    ),
    Mail(
        "Thunderbird",
        "en",
        f"Please summarize this.\n\n\n-------- Forwarded Message --------\nSubject: \tRent\nDate: \tMon, 16 Nov 2026 09:00:00"
        f" +0100\nFrom: \t{_LANDLORD}\nTo: \tanna@example.com\n\n\n\n{_LETTER}\n",
        None,
        subject="Fwd: Rent",
    ),
    Mail(
        "Thunderbird",
        "fr",
        f"Résume, s'il te plaît.\n\n\n-------- Message transféré --------\nSujet : \tRent\nDate : \tMon, 16 Nov 2026\nDe :"
        f" \t{_LANDLORD}\nPour : \tanna@example.com\n\n\n{_LETTER}\n",
        None,
        subject="Fwd: Rent",
    ),
    Mail(
        "Gmail, the agent's own answer",
        "en",
        f"Translate this into German.\n\n---------- Forwarded message ---------\nFrom: {AGENT}\nDate: Mon, Nov 16, 2026 at"
        " 3:00 PM\nSubject: Re: Lunch\nTo: <anna@example.com>\n\n\n{outlook}\n",
        None,
        subject="Fwd: Lunch",
    ),
]

# ---- what only looks like a quote, and quotes of what the agent has never read ----------------------------------

OWN_WORDS = [
    Mail("Gmail", "en", "On Monday the landlord wrote:\nyou have to pay 950 euros\n\nIs that allowed?", None),
    Mail("Gmail", "en", "On Monday, 16 November 2026, at 9:00 the landlord wrote:\n\nyou have to pay 950 euros", None),
    Mail("Outlook", "de", "Am 16.11.2026 um 9:00 schrieb der Vermieter:\n950 Euro ab Januar.\n\nDarf er das?", None),
    Mail("Thunderbird", "en", "Find a train:\n\nFrom: Berlin\nTo: Paris\nDate: 20 November\n\nSecond class.", None),
    Mail("Yahoo Mail", "es", "Busca un tren:\n\nDe: Madrid\nPara: Lisboa\nFecha: 20 de noviembre\n\nGracias", None),
    Mail(
        "Gmail, another person",
        "en",
        f"What do you say to this?\n\nOn Mon, Nov 16, 2026 at 9:00 AM {_LANDLORD} wrote:\n\n{_MARKED_LETTER}\n",
        None,
    ),
    Mail(
        "Outlook, another person",
        "en",
        f"What do you say to this?\n\nFrom: {_LANDLORD}\nSent: Monday, November 16, 2026 9:00 AM\nTo: Anna Berg\nSubject:"
        f" Rent\n\n{_LETTER}\n",
        None,
        subject="RE: Rent",
    ),
    Mail(
        "Gmail, the same words of another person",
        "en",
        "Bob has found the same.\n\nOn Mon, Nov 16, 2026 at 9:00 AM Bob <bob@example.net> wrote:\n\n{gmail}\n",
        None,
    ),
    Mail(
        "Outlook, the answer and another person below it",
        "en",
        f"Yes.\n\nFrom: {AGENT}\nSent: Monday, November 16, 2026 3:00 PM\nTo: Anna Berg\nSubject: Re: Lunch\n\n{{outlook}}\n\n"
        f"From: {_LANDLORD}\nSent: Monday, November 16, 2026 9:00 AM\nTo: Anna Berg\nSubject: Rent\n\n{_LETTER}\n",
        f"Yes.\n\nFrom: {_LANDLORD}\nSent: Monday, November 16, 2026 9:00 AM\nTo: Anna Berg\nSubject: Rent\n\n{_LETTER}",
    ),
    Mail(
        "Thunderbird, one sentence",
        "en",
        "What does this mean?\n\nOn 11/16/26 3:00 PM, Palaver wrote:\n> 1. Café Blau: soup and salad\n",
        None,
    ),
    Mail(
        "Outlook, answers within the quote",
        "en",
        f"See below.\n\nFrom: {AGENT}\nSent: Monday, November 16, 2026 3:00 PM\nTo: Anna Berg\nSubject: Re: Lunch\n\n"
        "{outlook}\nYes, at noon.\n",
        None,
    ),
    Mail(
        "Thunderbird, answers between",
        "en",
        "On 11/16/26 3:00 PM, Palaver wrote:\n> Here are two places that are near you\n\nThe second.\n\n> Shall I book a"
        " table?\n\nYes.\n\n-- \nAnna",
        None,
    ),
    Mail("Thunderbird, an answer below", "de", "Am 16.11.26 um 15:00 schrieb Palaver:\n{marked}\n\nJa, bitte.\n", None),
    Mail("K-9 Mail, own marks", "en", "> is this how to quote?\n\nAnna", None),
    Mail("mutt", "en", "The log says:\n\n> disk full\n> stopping\n", None),
]

# ---- lists, newsletters, invitations ----------------------------------------------------------------------------

_EVENT = """BEGIN:VCALENDAR
METHOD:{method}
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:16010101T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
ORGANIZER;CN=Anna:mailto:anna@example.com
SUMMARY;LANGUAGE=de-DE:Lunch\\, all of us
DTSTART;TZID=Europe/Berlin:20261120T120000
DTEND;TZID=Europe/Berlin:20261120T130000
LOCATION:Café Blau\\, Main
  Street 1
BEGIN:VALARM
DESCRIPTION:REMINDER
END:VALARM
END:VEVENT
END:VCALENDAR
"""
_WHEN = "2026-11-20 12:00 Europe/Berlin – 2026-11-20 13:00 Europe/Berlin"

OTHERS = [
    Mail(
        "Outlook, an invitation",
        "de",
        "Kommst du auch?\n",
        f"[Invitation: Lunch, all of us; {_WHEN}; Café Blau, Main Street 1]\n\nKommst du auch?",
        subject="Mittagessen",
        calendar=("REQUEST", _EVENT.replace("{method}", "REQUEST")),
    ),
    Mail(
        "Google Calendar, canceled",
        "en",
        "This event has been canceled.\n",
        f"[Canceled invitation: Lunch, all of us; {_WHEN}; Café Blau, Main Street 1]\n\nThis event has been canceled.",
        subject="Canceled event: Lunch",
        calendar=("CANCEL", _EVENT.replace("{method}", "CANCEL")),
    ),
    Mail(
        "Outlook, an invitation accepted with words",
        "fr",
        "Je viens un peu plus tard.\n",
        "Je viens un peu plus tard.",
        subject="Accepté : Lunch",
        calendar=("REPLY", _EVENT.replace("{method}", "REPLY")),
    ),
    Mail(
        "a newsletter that was forwarded",
        "en",
        None,
        "Is this worth it?\n\nSpring offer\n\nPlan | Price\nSmall | 5 €\nLarge | 9 €\n\nRead more (https://shop.example/a)",
        html="<div>Is this worth it?</div><br><div style='display:none;font-size:1px;max-height:0px;overflow:hidden'>Save 50%"
        " today only!&zwnj;&nbsp;&#847;<div>&nbsp;</div></div><span style='opacity: 0'>hidden</span><table width='100%'><tr><td"
        " style='font-size:0'><table><tr><td><h1>Spring offer</h1></td></tr></table></td></tr></table><table border=1><tr><th>"
        "Plan</th><th>Price</th></tr><tr><td><p class=MsoNormal>Small</p></td><td><p>5&nbsp;€</p></td></tr><tr><td>Large<td>9"
        " €</tr></table><p><a href='https://shop.example/a'>Read more</a></p>",
    ),
    Mail(
        "Word table",
        "de",
        None,
        "Wer kommt?\n\nName | Tag\nAnna | Mo\nBernd | Di",
        html="<p>Wer kommt?</p><table class=MsoTableGrid><tbody><tr><td><p class=MsoNormal><b>Name<o:p></o:p></b></p></td><td>"
        "<p class=MsoNormal>Tag</p></td></tr><tr><td><p>Anna</p></td><td><p>Mo</p></td></tr><tr><td><p>Bernd</p></td><td><p>"
        "Di</p></td></tr></tbody></table>",
    ),
    Mail(
        "numbered list",
        "en",
        None,
        "1. bread\n2. milk\n- eggs",
        html="<ol><li>bread</li><li>milk</li></ol><ul><li>eggs</ul>",
    ),
    Mail(
        "two columns of a newsletter",
        "fr",
        None,
        f"{'Un long texte. ' * 20}".strip() + "\n" + f"{'Un autre texte. ' * 20}".strip(),
        html=f"<table><tr><td>{'Un long texte. ' * 20}</td><td>{'Un autre texte. ' * 20}</td></tr></table>",
    ),
]

MAILS = [*REPLIES, *FORWARDS, *OWN_WORDS, *OTHERS]
