"""Files and pages: attachments of messages, the text of documents, and access to the web.

Always true: every attachment in the database has its bytes in place. Documents and pages are parsed in a child process
with limits, never in the server. An address from outside is checked before a connection is opened to it.
"""
