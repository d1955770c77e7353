"""Page about a kernel model."""
