"""Helpers that are independent of sensing: files, YAML, wording, processes, caches."""
