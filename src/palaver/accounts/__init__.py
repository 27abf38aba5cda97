"""Accounts: what people do with them. Signing in, passkeys and tokens; pairing, linking and unlinking; who may speak.

`person_tables.py` collects what every table declares about the rows of a person, and linking derives its work from it.
Always true: an account gives its person nothing that was not proven; unlinking returns what an account had before; a
stranger who only writes is not stored as a person.
"""
