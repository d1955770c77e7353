"""The commands of ``gp-active-sensing``, one a file; `main` gathers them."""
