"""The running gateway: it starts and stops everything that turns messages into delivered answers, keeps each account
on a chat platform connected, and takes in what adapters receive.

Always true: an account is connected by the one process that holds its lease; a failure of an adapter concerns only its
account; and settings that change apply to what starts after them, while what runs keeps what it began with.
"""
