"""Group E of the catalogue: what leaves the sandbox, calls out, or reads secrets."""

from turnwise.envs.code.battery.core import look, plant

ESCAPES = (
    look(
        "host_file",
        "48, 58",
        "reads a file of the host, directly and around corners",
        """
        for path in ("SECRET_FILE", "/proc/1/rootSECRET_FILE", "/proc/self/root/../../..SECRET_FILE", "../../../..SECRET_FILE"):
            try:
                print("REACHED", open(path).read())
            except OSError as error:
                print(type(error).__name__)
        """,
    ),
    look(
        "host_write",
        "48, 50",
        "writes where the host would read",
        """
        import os
        os.symlink("SECRET_FILE", "/tmp/link")
        for path in ("SECRET_FILE", "/tmp/link", "/etc/passwd", "/usr/bin/python3", "/proc/sys/kernel/core_pattern"):
            try:
                open(path, "w").write("changed")
                print("REACHED", path)
            except OSError as error:
                print(type(error).__name__)
        """,
    ),
    look(
        "privileges",
        "51",
        "looks for root, sockets, devices, mounts, traces",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        print("REACHED root" if os.getuid() == 0 else "user")
        for path in ("/var/run/docker.sock", "/run/docker.sock", "/dev/kvm", "/dev/mem", "/dev/sda"):
            if os.path.exists(path):
                print("REACHED", path)
        for name, call in (("mount", lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)), ("unshare", lambda: libc.unshare(0x10000000)),
                           ("ptrace", lambda: libc.ptrace(16, 1, 0, 0)), ("setuid", lambda: libc.setuid(0)), ("chroot", lambda: libc.chroot(b"/tmp"))):
            print("REACHED " + name if call() == 0 else "refused")
        """,
    ),
    look(
        "terminal",
        "52",
        "types into the operator's terminal",
        """
        import fcntl
        for path in ("/dev/tty", "/dev/console", "/proc/1/fd/0"):
            try:
                with open(path, "w") as file:
                    fcntl.ioctl(file, 0x5412, b"x")
                print("REACHED", path)
            except OSError as error:
                print(type(error).__name__)
        """,
    ),
    look(
        "network",
        "53, 55, 56",
        "calls out: TCP, UDP, IPv6, names",
        """
        import socket
        routes = 0  # connecting a datagram socket looks for a route, and sends nothing
        for family, address in ((2, "192.0.2.1"), (2, "10.0.0.1"), (10, "2001:db8::1")):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as one:
                    one.connect((address, 53))
                routes += 1
                print("REACHED", address)
            except OSError as error:
                print(type(error).__name__)
        try:
            if not routes:
                print("REACHED", socket.gethostbyname("secret.invalid"))
        except OSError as error:
            print(type(error).__name__)
        """,
    ),
    look(
        "host_services",
        "54",
        "calls the host's loopback and the metadata service",
        """
        import socket
        try:
            socket.create_connection(("127.0.0.1", HOST_PORT)).close()
            print("REACHED the host")
        except OSError as error:
            print(type(error).__name__)
        for address in ("169.254.169.254", "172.17.0.1"):  # a route is looked for, nothing is sent
            try:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                    one.connect((address, 53))
                print("REACHED", address)
            except OSError as error:
                print(type(error).__name__)
        """,
    ),
    look(
        "variables",
        "57",
        "prints all variables that it can find",
        """
        import glob, os
        print(dict(os.environ))
        for path in glob.glob("/proc/*/environ"):
            try:
                print(open(path, "rb").read())
            except OSError:
                pass
        """,
    ),
    look(
        "processes",
        "58",
        "reads command lines and memory of other processes",
        """
        import glob, os
        for path in glob.glob("/proc/[0-9]*"):
            if path != "/proc/%d" % os.getpid():
                try:
                    print(open(path + "/cmdline", "rb").read()[:300])
                    open(path + "/mem", "rb").read(1)
                    print("REACHED memory")
                except OSError as error:
                    print(type(error).__name__)
        """,
    ),
    plant(
        "leftovers",
        "60, 78",
        "plants files, folders and links for later runs",
        """
        import os
        for place in ("/work", "/tmp", "/dev/shm"):
            open(place + "/REACHED", "w").write("x")
            os.makedirs(place + "/tests/deep", exist_ok=True)
            os.symlink("/etc", place + "/REACHED-link")
            os.chmod(place + "/tests", 0)
        """,
        "import os\nfor place in ('/work', '/tmp', '/dev/shm'):\n    print(os.listdir(place))",
    ),
)
