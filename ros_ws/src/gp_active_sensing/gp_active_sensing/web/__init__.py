"""Watch a mission in a browser while it goes on; needs the extra ``web`` (tornado)."""
