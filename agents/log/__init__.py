"""Episodes on disk: the log, its frames and records, Parquet, repair."""
