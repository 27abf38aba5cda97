"""Slack: an app that people mention in channels, write to in direct messages, and open in its agent view."""
