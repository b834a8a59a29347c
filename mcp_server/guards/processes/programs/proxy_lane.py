"""How does a sandboxed program reach the proxy? By a listening socket in a network with nobody else in it.

    python -I -S proxy_lane.py SOCKET PORT PROGRAM ARGUMENTS...

This file is a program too: it listens at PORT of its own loopback, hands the listening socket through SOCKET to its
parent, and becomes PROGRAM. Connections there are answered outside the sandbox; there is no other way out. Like
`landlock_exec`, it starts with commands and imports only what Python has loaded anyway.
"""

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

NEW_USER, NEW_NET = 0x10000000, 0x40000000
READ_FLAGS, SET_FLAGS = 0x8913, 0x8914
UP = 1
UNABLE = 97
WAITING = 128


def lay(hand: int, port: int, alone: bool) -> None:
    """`alone`: there is no network namespace yet."""
    to_starter = _socket.socket(fileno=hand)
    try:
        if alone:
            enter_network()
            raise_loopback()
        listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listening.bind(("127.0.0.1", port))
        listening.listen(WAITING)
        number = listening.fileno().to_bytes(4, sys.byteorder)
        to_starter.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
        listening.close()
    finally:
        to_starter.close()


def enter_network() -> None:
    """Enter a new network namespace. Root can do so directly, others only together with a new user namespace."""
    import ctypes

    unshare = ctypes.CDLL(None, use_errno=True).unshare
    user, group = os.geteuid(), os.getegid()
    if unshare(NEW_NET) == 0:
        return
    if unshare(NEW_USER | NEW_NET) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own can be made")
    for name, text in (("uid_map", f"{user} {user} 1"), ("setgroups", "deny"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  # pathlib takes long to load
            file.write(text)


def raise_loopback() -> None:
    import fcntl

    any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    name = b"lo".ljust(16, b"\0")
    flags = fcntl.ioctl(any_socket.fileno(), READ_FLAGS, name + bytes(24))[16:18]
    raised = (int.from_bytes(flags, sys.byteorder) | UP).to_bytes(2, sys.byteorder)
    fcntl.ioctl(any_socket.fileno(), SET_FLAGS, name + raised + bytes(22))
    any_socket.close()


def restore_signals() -> None:
    """As in `landlock_exec`, which is not available where this program runs: Python ignores SIGPIPE and SIGXFSZ, and a
    command that inherits this goes on printing though nobody reads it."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main(hand: str, port: str, *words: str) -> None:
    try:
        lay(int(hand), int(port), alone=False)
    except OSError as error:
        sys.stderr.write(f"cannot reach out: {error}\n")
        sys.exit(UNABLE)
    restore_signals()
    os.execv(words[0], words)  # noqa: S606  # the point of this program


if __name__ == "__main__":
    main(*sys.argv[1:])
