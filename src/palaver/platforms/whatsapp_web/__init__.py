"""A private WhatsApp account, linked like WhatsApp Web."""
