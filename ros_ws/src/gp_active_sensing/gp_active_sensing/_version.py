"""The version, apart from the package's face, so that any module may import it."""

__version__ = "0.1.0"
"""Version of the three packages."""
