"""Entry point of the command ``gp-active-sensing``; the commands are in `commands`."""

from __future__ import annotations

from gp_active_sensing.commands.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
