"""Notifications to browsers while the page is closed (Web Push: RFC 8030, 8291 and 8292)."""
