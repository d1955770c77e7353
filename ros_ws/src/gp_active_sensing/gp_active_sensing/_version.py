"""Version of the package; this module has no imports, so any module may import it."""

__version__ = "0.2.0"
"""Version of all three packages; `make version` copies it into package.xml and CITATION.cff."""
