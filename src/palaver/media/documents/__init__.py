"""Text out of documents and web pages. Files are parsed in a process of its own, within limits (`extraction.py`)."""
