"""Processing of messages to used readings, or to counted reasons of rejection."""
