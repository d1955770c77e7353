"""Version of the package, in a module of its own so that any module may import it."""

__version__ = "0.2.0"
"""Version of the three packages; `make version` writes it into package.xml and CITATION.cff."""
