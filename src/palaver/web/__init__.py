"""The web: a typed API, a live stream, sign-in, and the page."""
