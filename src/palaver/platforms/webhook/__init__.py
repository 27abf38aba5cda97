"""Signed HTTP requests in and out, for programs."""
