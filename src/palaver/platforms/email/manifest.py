"""What Palaver knows of e-mail before the adapter is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.email.capabilities import CAPABILITIES
from palaver.platforms.email.settings import EmailSettings
from palaver.platforms.manifest import PlatformManifest

MANIFEST = PlatformManifest(
    platform=Platform.EMAIL,
    settings=EmailSettings,
    create="palaver.platforms.email.adapter:create_adapter",
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
)
