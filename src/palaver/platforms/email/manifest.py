"""The settings, capabilities and manifest of mailboxes."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003  (read at run time)
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from palaver.core.http_url import is_host_name
from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities
from palaver.people.model import is_loopback
from palaver.platforms.common.settings import check_text
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

MAX_FILE_BYTES = 18_000_000  # most servers take mails of 25 MB, and a file grows by a third in a mail

CAPABILITIES = Capabilities(
    max_file_bytes=MAX_FILE_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
)

Security = Literal["tls", "starttls", "none"]

_IMAP_PORTS: dict[str, int] = {"tls": 993, "starttls": 143, "none": 143}
_SMTP_PORTS: dict[str, int] = {"tls": 465, "starttls": 587, "none": 25}
# Their SMTP servers put what they send into the Sent folder by themselves.
_HOSTS_THAT_SAVE_SENT = ("gmail.com", "googlemail.com", "office365.com", "outlook.com")


def _split_list(value: object) -> object:
    """Let a list be written as one text with commas, as in an environment variable."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _clean_address(text: str) -> str:
    from palaver.platforms.email.headers import normalize_address  # it parses mails: needed with an account

    return normalize_address(text.strip()) or ""


_BAD_ADDRESS = say("email.bad_address", "this is not an e-mail address; write it like palaver@example.org")
_BAD_ALIAS = say("email.bad_alias", "each alias is an e-mail address, such as help@example.org")
_Address = Annotated[str, check_text(".+", _BAD_ADDRESS, clean=_clean_address)]
_Alias = Annotated[str, check_text(".+", _BAD_ALIAS, clean=_clean_address)]
_EMPTY_PASSWORD = say("email.password_empty", "the password is empty; most providers want an app password here")
_BROKEN_PASSWORD = say("email.password_has_line_break", "the password contains a line break; copy it again")
_Password = Annotated[
    SecretStr,
    check_text(str.strip, _EMPTY_PASSWORD, clean=str),
    check_text(r"[^\0\r\n]*", _BROKEN_PASSWORD, clean=str),
]
_Host = Annotated[
    str,
    check_text(
        lambda host: is_host_name(host) and not re.search(r"[/ @]", host),
        say(
            "email.bad_server_name",
            "this is not the name of a server; write it like imap.example.org, without https://",
        ),
    ),
]
_Line = Annotated[
    str,
    check_text(
        lambda text: text.strip() and text.isprintable(),
        say("email.empty_or_line_break", "this text is empty or has a line break in it"),
        clean=str,
    ),
]
_ServerName = Annotated[
    str,
    check_text(
        r"[^; \t]+",
        say(
            "email.bad_authserv_id",
            "copy the first word of the Authentication-Results header, such as mx.example.org",
        ),
        clean=lambda name: name.strip().lower(),
    ),
]


class EmailSettings(AccountSettings):
    """One mailbox: an IMAP server to read from, and an SMTP server to send with."""

    address: Annotated[_Address, "The address of the agent, such as palaver@example.org."]
    password: Annotated[
        _Password, FieldHelp("For both servers.", "With most providers: an app password from the security settings.")
    ]
    username: Annotated[str | None, "To sign in with, if it is not the address."] = None
    name: Annotated[_Line, "The name of the sender, as people see it."] = Field("Palaver", max_length=100)
    imap_host: Annotated[_Host, "The server that mails are read from, such as imap.example.org."]
    imap_port: Annotated[int | None, "Empty: the usual one."] = Field(None, ge=1, le=65535)
    imap_security: Annotated[Security, "How the connection is encrypted."] = "tls"
    smtp_host: Annotated[_Host, "The server that mails are sent with, such as smtp.example.org."]
    smtp_port: Annotated[int | None, "Empty: the usual one."] = Field(None, ge=1, le=65535)
    smtp_security: Annotated[Security, "How the connection is encrypted."] = "tls"
    allow_plaintext: Annotated[bool, "With security none: let the password travel unencrypted to another machine."] = (
        False
    )
    ca_file: Annotated[Path | None, "Certificates to trust instead of the system's, for a server with its own."] = None
    folder: Annotated[_Line, "The folder that mails are read from."] = "INBOX"
    sent_folder: Annotated[_Line | None, "Empty: the one that the server says is for sent mails."] = None
    save_sent: Annotated[bool | None, "Put a copy of each answer there; empty: unless the provider does it."] = None
    aliases: Annotated[tuple[_Alias, ...], BeforeValidator(_split_list), "Further addresses of this mailbox."] = ()
    authserv_id: Annotated[
        _ServerName | None, "Of your mail server, as it signs its Authentication-Results header."
    ] = None
    allow_unverified_senders: Annotated[bool, "Believe every sender: only where no stranger can send mail."] = False
    poll_seconds: Annotated[float, "How long to wait between two looks, if the server can't push."] = Field(
        60.0, ge=1, le=3600
    )

    @model_validator(mode="after")
    def _check_encryption(self) -> Self:
        servers = {"imap": (self.imap_host, self.imap_security), "smtp": (self.smtp_host, self.smtp_security)}
        for name, (host, security) in servers.items():
            if security == "none" and not self.allow_plaintext and not is_loopback(host):
                raise ValueError(
                    say(
                        "email.password_unencrypted",
                        "{name}: none sends the password unencrypted. Use tls or starttls, or set allow_plaintext if"
                        " the connection to the server is safe in another way",
                        name=f"{name}_security",
                    )
                )
        return self

    @property
    def own_addresses(self) -> frozenset[str]:
        return frozenset({self.address, *self.aliases})

    @property
    def login(self) -> str:
        return self.username or self.address

    def get_imap_port(self) -> int:
        return self.imap_port or _IMAP_PORTS[self.imap_security]

    def get_smtp_port(self) -> int:
        return self.smtp_port or _SMTP_PORTS[self.smtp_security]

    def should_save_sent(self) -> bool:
        """Return whether we put a copy of what we send into the Sent folder."""
        return not self.provider_saves_sent() if self.save_sent is None else self.save_sent

    def provider_saves_sent(self) -> bool:
        """Return whether a mail that the SMTP server has taken is certainly in the Sent folder."""
        return self.smtp_host.lower().endswith(_HOSTS_THAT_SAVE_SENT)


MANIFEST = PlatformManifest(
    platform=Platform.EMAIL,
    settings=EmailSettings,
    create="palaver.platforms.email.adapter:EmailAdapter",
    capabilities=CAPABILITIES,
    extra="email",
    modules=("aiosmtplib", "markdown_it", "nh3"),
    environment={
        "EMAIL_ADDRESS": "address",
        "EMAIL_PASSWORD": "password",
        "EMAIL_USERNAME": "username",
        "EMAIL_IMAP_HOST": "imap_host",
        "EMAIL_IMAP_PORT": "imap_port",
        "EMAIL_IMAP_SECURITY": "imap_security",
        "EMAIL_SMTP_HOST": "smtp_host",
        "EMAIL_SMTP_PORT": "smtp_port",
        "EMAIL_SMTP_SECURITY": "smtp_security",
        "EMAIL_AUTHSERV_ID": "authserv_id",
    },
    addresses=(
        *("imap_host", "imap_port", "imap_security", "smtp_host", "smtp_port", "smtp_security"),
        *("allow_plaintext", "ca_file"),
    ),
    summary="A mailbox: each thread is a conversation",
    steps=(
        "Create a mailbox for the agent.",
        "With most providers you need an app password: create one in the security settings of the mailbox.",
        "Enter the address, the password, and the names of the IMAP and SMTP servers.",
        "Test it, save it, then write a mail to the address.",
    ),
)
