"""Moving in and out: import from other programs, Palaver's own format, exports for people.

The room owns the readers of other programs' files and their entry points (`readers`), the import that writes what they
read (`importer`, `conversation_writer`), the files that people upload for it, and exports: one conversation as a
document, several in a folder or a .zip, everything about a person, a whole store.

Always true: importing twice changes nothing, and an import that was interrupted goes on where it stopped. A person's
own import writes only to that person's conversations, projects and memories. What cannot be read is reported and left
out. An export has only what its reader may see, and no secret.
"""
