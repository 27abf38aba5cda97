"""Settings in the database: reading them below config.yaml and the environment, changing them, their history, the
encryption of secrets, and the catalogs of model providers and platforms that a page offers.

Always true: only owners change settings; a change is stored whole or not at all, after it was validated with everything
else; a secret leaves this room only to the address that it was entered for.
"""
