"""How does a sandboxed program reach the proxy? Through a listening socket in a network namespace of its own.

    python -I -S proxy_lane.py SOCKET PORT PROGRAM ARGUMENTS...

This file is a program too: it listens at PORT of its own loopback, hands the listening socket to its parent through
SOCKET, and becomes PROGRAM. The parent answers the connections outside the sandbox; there is no other way out. Like
`landlock_exec`, it runs before every command and imports only what Python has loaded anyway.
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
INTERFACE_UP = 1
UNABLE = 97
BACKLOG = 128


def hand_over_listener(descriptor: int, port: int, isolate: bool) -> None:
    """`isolate`: create a network namespace first, because the sandbox has none."""
    parent = _socket.socket(fileno=descriptor)
    try:
        if isolate:
            enter_network()
            bring_up_loopback()
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
        listener_bytes = listener.fileno().to_bytes(4, sys.byteorder)
        parent.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener_bytes)])
        listener.close()
    finally:
        parent.close()


def enter_network() -> None:
    """Enter a new network namespace. Only root can do so without a new user namespace."""
    import ctypes

    unshare = ctypes.CDLL(None, use_errno=True).unshare
    user, group = os.geteuid(), os.getegid()
    if unshare(NEW_NET) == 0:
        return
    if unshare(NEW_USER | NEW_NET) != 0:
        raise OSError(ctypes.get_errno(), "cannot create a network namespace")
    for name, text in (("uid_map", f"{user} {user} 1"), ("setgroups", "deny"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  # pathlib takes long to load
            file.write(text)


def bring_up_loopback() -> None:
    import fcntl

    control = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    interface = b"lo".ljust(16, b"\0")
    flags = fcntl.ioctl(control.fileno(), READ_FLAGS, interface + bytes(24))[16:18]
    new_flags = (int.from_bytes(flags, sys.byteorder) | INTERFACE_UP).to_bytes(2, sys.byteorder)
    fcntl.ioctl(control.fileno(), SET_FLAGS, interface + new_flags + bytes(22))
    control.close()


def restore_signals() -> None:
    """As in `landlock_exec`, which this program cannot import inside a sandbox."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main(descriptor: str, port: str, *command: str) -> None:
    try:
        hand_over_listener(int(descriptor), int(port), isolate=False)
    except OSError as error:
        sys.stderr.write(f"cannot reach the proxy: {error}\n")
        sys.exit(UNABLE)
    restore_signals()
    os.execv(command[0], command)  # noqa: S606  # the point of this program


if __name__ == "__main__":
    main(*sys.argv[1:])
