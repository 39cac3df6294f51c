"""Model Context Protocol: tasks out of any server (``env``), and our environments served to others (``serve``)."""
