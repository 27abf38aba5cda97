"""WhatsApp business numbers, through Meta's Cloud API and its webhooks."""
