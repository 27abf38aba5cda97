"""Matrix: a Palaver account on any homeserver, in rooms, direct chats and threads."""
