"""How an update's episodes are rolled out: apart from each other, branching, or with forks that measure."""
