"""Reading Hermes: the files of hermes-agent and hermes-webui, from one folder such as `~/.hermes`."""

from palaver.transfer.readers.hermes.reader import open_reader

__all__ = ["open_reader"]
