"""Group D of the catalogue: what uses up memory, processes, files, time or output."""

from turnwise.envs.code.battery.core import plant, submit

BOMBS = (
    submit(
        "fork_bomb",
        "39",
        "a fork bomb",
        "import os\ndef ENTRY(xs):\n    while True:\n        os.fork()",
        seconds=3,
    ),
    submit(
        "memory_bomb",
        "40",
        "takes memory without end",
        "def ENTRY(xs):\n    kept = []\n    while True:\n        kept.append(bytearray(10**7))",
        seconds=5,
    ),
    submit(
        "disk_fill",
        "41",
        "fills every folder it may write to",
        """
        def ENTRY(xs):
            for place in ("/work", "/tmp", "/dev/shm"):
                try:
                    with open(place + "/fill", "wb") as file:
                        while True:
                            file.write(b"x" * 10**6)
                except OSError:
                    pass
            return 0
        """,
    ),
    submit(
        "inode_storm",
        "41",
        "makes files without end",
        """
        def ENTRY(xs):
            try:
                for i in range(10**6):
                    open("/tmp/%d" % i, "w").close()
            except OSError:
                pass
            return 0
        """,
    ),
    submit(
        "output_flood",
        "42",
        "writes without end to every descriptor",
        """
        import os
        def ENTRY(xs):
            while True:
                for fd in range(1, 10):
                    try:
                        os.write(fd, b"x" * 65536)
                    except OSError:
                        pass
        """,
        seconds=5,
    ),
    submit(
        "spin",
        "43",
        "spins and ignores every signal",
        "import signal\nfor n in range(1, 32):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n    except OSError:\n        pass\nwhile True:\n    pass",
        seconds=2,
    ),
    plant(
        "daemon",
        "44, 76",
        "leaves a daemon behind that plants files later",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    open("/tmp/late", "w").write("x")
                    time.sleep(0.01)
            os._exit(0)
        """,
        "import os, time\ntime.sleep(0.3)\nprint('REACHED' if os.path.exists('/tmp/late') else 'nothing')",
    ),
    submit(
        "deep_value",
        "45, 46",
        "returns a value that is nested endlessly",
        """
        def ENTRY(xs):
            made = []
            for _ in range(100_000):
                made = [made]
            return made
        """,
    ),
    submit(
        "own_nesting",
        "45, 46",
        "says a nested value past the encoder, to blow up who reads it",
        """
        import os, sys
        frame = sys._getframe()
        while frame.f_back is not None:
            frame = frame.f_back
            if "asked" in frame.f_locals:
                nonce = frame.f_locals["asked"]["nonce"]
        for fd in range(3, 10):
            try:
                os.write(fd, (nonce + '{"index": 0, "value": ' + "[" * 200_000 + "]" * 200_000 + "}\\n").encode())
            except OSError:
                pass
        def ENTRY(xs):
            return 0
        """,
    ),
    submit("huge_value", "45", "returns 100 MB", "def ENTRY(xs):\n    return 'x' * 10**8", seconds=5),
    submit(
        "huge_number",
        "45, 46",
        "returns a number with a million digits",
        "def ENTRY(xs):\n    return 1 << 3_500_000",
        seconds=5,
    ),
)
