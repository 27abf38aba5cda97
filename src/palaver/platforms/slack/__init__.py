"""Slack apps, through slack-sdk: by Socket Mode, or by HTTP."""
