"""The clauses of the environment contract, each as a test of one environment."""
