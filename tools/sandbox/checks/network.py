"""Checks of the network: there is none, in any direction.

Nothing is sent to find out: a wall is proven by missing routes and interfaces, and by listeners of the host's own
that nobody reaches. Connecting a datagram socket makes the kernel look for a route, and sends nothing.
"""

from __future__ import annotations

from socket import AF_INET

import psutil

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same

_TRY = """
import socket, sys
try:
    {body}
    print('reached')
except Exception as error:
    print('no', type(error).__name__, error)
"""


def _unreached(lab: Lab, body: str, *arguments: str) -> None:
    result = lab.py(_TRY.format(body=body), *arguments)
    assert result.out.startswith("no "), f"{result.out} {result.err[-200:]}"


def _no_route(lab: Lab, *addresses: str) -> None:
    """No packet finds a way to these addresses."""
    for address in addresses:
        family = "socket.AF_INET6" if ":" in address else "socket.AF_INET"
        _unreached(lab, f"socket.socket({family}, socket.SOCK_DGRAM).connect((sys.argv[1], 53))", address)


@check("network", "no TCP to the internet", 53, 56)
def tcp(lab: Lab) -> None:
    same(lab.sh("cat /proc/net/route").out.splitlines()[1:], [])
    _no_route(lab, "192.0.2.1", "198.51.100.1", "10.0.0.1")


@check("network", "no UDP to the internet", 53, 56)
def udp(lab: Lab) -> None:
    _no_route(lab, "203.0.113.1", "224.0.0.251", "255.255.255.255")


@check("network", "no IPv6 to the internet", 53, 56)
def ipv6(lab: Lab) -> None:
    routes = [line.split() for line in lab.sh("cat /proc/net/ipv6_route 2>/dev/null").out.splitlines()]
    same([words for words in routes if words[-1] != "lo"], [])
    _no_route(lab, "2001:db8::1", "fe80::1", "ff02::fb")


@check("network", "no names are resolved, so none carries a secret out", 53, 55)
def dns(lab: Lab) -> None:
    words = lab.sh("grep ^nameserver /etc/resolv.conf").out.split()
    servers = [word for word in words if word != "nameserver" and not word.startswith(("127.", "::1"))]
    _no_route(lab, "192.0.2.53", *servers)  # and only then is a name asked for
    _unreached(lab, "socket.getaddrinfo('secret.invalid', 443)")


@check("network", "no raw packets", 53)
def icmp(lab: Lab) -> None:
    _unreached(lab, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)")
    _unreached(lab, "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)")


@check("network", "no metadata service", 54)
def metadata(lab: Lab) -> None:
    _no_route(lab, "169.254.169.254", "fd00:ec2::254")


@check("network", "no service of the host, by loopback or by any address of its own", 54)
def host_loopback(lab: Lab) -> None:
    for address in ("127.0.0.1", "::1", "localhost", "0.0.0.0"):
        _unreached(lab, "socket.create_connection((sys.argv[1], int(sys.argv[2])))", address, str(lab.port))
    own = [
        one.address for all_of in psutil.net_if_addrs().values() for one in all_of if one.family == AF_INET
    ]
    _no_route(lab, *(address for address in own if not address.startswith("127.")))
    same(lab.knocks, [])


@check("network", "no abstract unix socket of the host", 54)
def host_abstract_socket(lab: Lab) -> None:
    _unreached(lab, "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + sys.argv[1])", lab.abstract)
    same(lab.knocks, [])


@check("network", "no unix socket of the host: no docker.sock, no bus", 51, 54)
def host_unix_sockets(lab: Lab) -> None:
    program = (
        "import os, stat\n"
        "for here, _, files in os.walk('/'):\n"
        "    if here.startswith(('/proc', '/sys')): continue\n"
        "    for name in files:\n"
        "        try:\n"
        "            if stat.S_ISSOCK(os.lstat(os.path.join(here, name)).st_mode): print(here, name)\n"
        "        except OSError: pass\n"
    )
    same(lab.py(program).out, "")


@check("network", "no virtual-machine sockets to the host", 54)
def vsock(lab: Lab) -> None:
    _unreached(lab, "s = socket.socket(40, socket.SOCK_STREAM); s.connect((2, 1024))")
    same(
        lab.py("import socket\ntry: socket.socket(40, 1); print('made')\nexcept OSError: print('no')").out,
        "no\n",
    )


@check("network", "the only interface is the sandbox's own loopback", 53, 56)
def interfaces(lab: Lab) -> None:
    same(lab.py("import socket; print([name for _, name in socket.if_nameindex()])").out.strip(), "['lo']")


@check("network", "two commands within one sandbox's command can talk over loopback")
def own_loopback(lab: Lab) -> None:
    program = (
        "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: s.accept()[0].sendall(b'hello')).start()\n"
        "print(socket.create_connection(s.getsockname()).recv(9))"
    )
    same(lab.py(program).out.strip(), "b'hello'")


@check("network", "a port that one sandbox listens on is free in the next", 60)
def ports_apart(lab: Lab) -> None:
    program = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 45678)); print('bound', flush=True)"
    )
    with lab.start() as other:
        same(lab.py(program).out, "bound\n")
        same(other.exec(["python3", "-c", program]).out, "bound\n")
