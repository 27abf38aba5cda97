"""E-mail: one mailbox, read by IMAP and answered by SMTP."""
