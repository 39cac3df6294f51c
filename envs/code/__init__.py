"""Programming to a specification: code runs in a sandbox and is judged by hidden tests it never meets the answers of."""
