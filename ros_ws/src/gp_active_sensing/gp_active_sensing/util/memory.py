"""Return free heap memory from the C library to the operating system."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["hand_back"]


def hand_back() -> bool:
    """Hand free memory back to the system, where the C library can be asked to (glibc).

    It keeps what a large piece of work needed for a moment. A node that reads a long journal at its
    start would hold that memory for the rest of the mission.

    Returns:
        Whether it was asked.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library
        return False
    return True
