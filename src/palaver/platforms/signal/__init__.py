"""Signal accounts, through signal-cli, which writes what it receives into a spool."""
