"""WhatsApp through Meta's Cloud API: one business number."""
