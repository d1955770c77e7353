"""Helpers that know nothing of sensing: files, YAML, words, threads, caches."""
