"""WhatsApp accounts of private persons, linked like WhatsApp Web; the library runs in a process of its own."""
