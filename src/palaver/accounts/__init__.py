"""Accounts: people, passwords, passkeys and sign-in."""
