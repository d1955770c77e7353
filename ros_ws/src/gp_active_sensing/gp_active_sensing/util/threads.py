"""Limit BLAS to one thread: reproducible to the bit, and faster for small matrices.

With two threads on a busy two-core machine, choosing a place by `ie` took 50 ms instead of 0.7 ms:
the threads wait for each other.
"""

from __future__ import annotations

import os

__all__ = ["THREAD_VARIABLES", "one_blas_thread"]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def one_blas_thread() -> None:
    """Ask BLAS for one thread, unless the user has asked for something else.

    Only programs call this, never the library, and before numpy is loaded: BLAS reads the
    environment then.
    """
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
