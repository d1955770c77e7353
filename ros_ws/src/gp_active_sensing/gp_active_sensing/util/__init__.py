"""General helpers that know nothing of sensing: files, YAML, wording, threads, caches."""
