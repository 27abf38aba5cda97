"""Mailboxes: IMAP receives, SMTP sends, and each thread is a conversation."""
