"""Platform adapters: they connect Palaver to the places where people chat."""
