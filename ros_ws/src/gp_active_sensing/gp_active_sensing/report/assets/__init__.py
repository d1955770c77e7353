"""Scripts, styles and frames of the pages; read as files, no code."""
