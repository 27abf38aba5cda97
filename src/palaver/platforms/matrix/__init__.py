"""Matrix accounts, through the client API of a homeserver; encrypted rooms with nio."""
