"""Slash commands about conversations, their answers and their settings."""
