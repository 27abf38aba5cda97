"""The base of all rooms: ids, clock, errors, text, sources, files, logs, operations and the database engines.

Always true: nothing here knows a session, a person or any other noun of the product. Only `engines` imports a database
driver; a unit of work is a plain function over a transaction and runs on SQLite and PostgreSQL alike. The clock is
passed in. What the library imports loads neither asyncio nor an optional package.
"""
