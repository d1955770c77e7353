"""Helpers without knowledge of sensing: files, YAML, wording, processes, caches."""
