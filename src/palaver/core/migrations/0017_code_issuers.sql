-- Codes and links that were given to a browser stop working when that browser is signed out by its person.
ALTER TABLE link_code ADD COLUMN issued_by TEXT;             -- sign-in that got the code; NULL: a chat or a terminal did
ALTER TABLE sign_in_link ADD COLUMN issued_by TEXT;          -- sign-in that got the link; NULL: a terminal did
DELETE FROM link_code;                                       -- API tokens could get them; people can ask for another
