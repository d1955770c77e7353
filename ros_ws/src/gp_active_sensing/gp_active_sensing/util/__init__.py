"""General helpers, independent of sensing: files, YAML, wording, threads, caches."""
