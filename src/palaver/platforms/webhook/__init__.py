"""Signed HTTP requests, for programs: messages come in as webhooks, and answers go out as webhooks."""
