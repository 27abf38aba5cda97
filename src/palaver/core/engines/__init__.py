"""Database engines: the port, SQLite and PostgreSQL behind it, group commit, change watching and migrations."""
