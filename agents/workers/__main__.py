"""``python -m turnwise.agents.workers FD``: a worker process, and the keeper over it."""

import sys

from turnwise.agents.workers.keeper import keep

if __name__ == "__main__":
    descriptor = int(sys.argv[1])
    keep(descriptor)
    from turnwise.agents.workers.child import main

    main(descriptor)
