"""Watch a running mission in a browser; needs the extra ``web`` (tornado)."""
