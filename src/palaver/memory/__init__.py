"""Memory turns: a model looks once through what people wrote in a conversation, and remembers lasting facts."""
