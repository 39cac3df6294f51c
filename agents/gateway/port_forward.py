"""Runs inside a sandbox: a program, and beside it a port of the loopback that leads out by the sandbox's door.

``python3 -c THIS DOOR PORT COMMAND …`` ends as the command does. It knows only the standard library, of Python 3.8 on.
"""

# No `from turnwise …` here: a sandbox has an interpreter of its own.
import asyncio
import os
import signal
import socket
import sys
import threading

NOT_FOUND = 127
_PART = 1 << 16


def main(door: str, port: int, argv: "list[str]") -> None:
    """Run the command; the port is open before it begins."""
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    program = os.fork()
    if program == 0:
        become(argv)
    threading.Thread(target=end_with, args=(program,), daemon=True).start()
    asyncio.run(relay(listener, door))


def become(argv: "list[str]") -> None:
    """Be the program."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    os._exit(NOT_FOUND)


def end_with(program: int) -> None:
    """End with the program's exit code, 128 + n where signal n ended it."""
    _, status = os.waitpid(program, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


async def relay(listener: socket.socket, door: str) -> None:
    """Join each connection with one of the door's."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            outer_reader, outer_writer = await asyncio.open_unix_connection(door)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, outer_writer), pump(outer_reader, writer))

    server = await asyncio.start_server(serve, sock=listener)
    await server.serve_forever()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what comes, until one side closes."""
    try:
        while True:
            part = await reader.read(_PART)
            if not part:
                break
            writer.write(part)
            await writer.drain()
    except OSError:
        pass  # the other pump ends by the same
    finally:
        writer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
