"""What open pages and terminals see while it happens: one feed for each follower, by cursor, and its channels.

Always true: everything in a feed is stored first, so a follower that was away reads what it missed from the log and
misses nothing; and a feed has only what its principal may see at that moment.
"""
