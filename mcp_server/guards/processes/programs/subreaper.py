"""Which processes end with a command? This file is a program: it starts a command and later ends everything it started.

    python -I -S subreaper.py SOCKET

It starts before there is a command, and receives one through SOCKET: the files to use, and a plan as `landlock_exec`
reads it. When the command ends, or the other end of a pipe is closed (on request, or because the server is gone), it
ends everything the command started, including processes in sessions of their own. Like `landlock_exec`, it imports only
what Python has loaded anyway.
"""

import _socket
import fcntl
import marshal
import os
import select
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcp_server.guards.processes.programs import landlock_exec
else:
    # Appended, so that nothing on a search path is shadowed.
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    import landlock_exec

EVERYBODY, KILL, STOP = -1, 9, 19
MOST_FILES = 16
STREAMS = 3
LEAST, MOST = 0.0005, 0.05


class Keeper:
    """Stays beside the command until it ends, then ends everything it left behind."""

    def __init__(self, plan: "dict[str, Any]") -> None:
        self.plan = plan
        self.status, self.control, self.starter, self.terminal = plan["keep"]
        self.fenced = False
        """True if the kernel lets us signal only what we started. Only then may a signal go to every process."""
        for one in (self.status, self.control):
            os.set_inheritable(one, False)

    def prepare(self) -> None:
        if "fence" in self.plan:
            join_control_group(self.plan["fence"])
        if sys.platform.startswith("linux"):
            landlock_exec.control(landlock_exec.SUBREAPER, 1)
        if self.plan.get("open") is not None:
            os.kill(self.starter, 0)
            landlock_exec.LandlockRules(files=0, net=0, scoped=landlock_exec.SIGNALS).close()
            self.fenced = self.is_fenced()

    def is_fenced(self) -> bool:
        """Could we signal our parent before, and not any more although it still lives?"""
        try:
            os.kill(self.starter, 0)
        except PermissionError:
            return os.getppid() == self.starter
        return False

    def start(self) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                if self.terminal:
                    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
                if sys.platform.startswith("linux"):
                    landlock_exec.control(landlock_exec.DIE_WITH_PARENT, KILL)
                landlock_exec.become(self.plan, self.plan["words"])
            except BaseException as error:
                self.report(f"unable {error}")
            finally:
                os._exit(landlock_exec.UNABLE)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for one in (0, 1, 2):
            os.dup2(nowhere, one)
        return pid

    def report(self, text: str) -> None:
        try:
            os.write(self.status, text.encode(errors="replace") + b"\n")
        except OSError:  # the server no longer listens
            return

    def watch(self, child: int) -> None:
        """Wait until the command ends or the control pipe closes."""
        try:
            ended, pause = os.pidfd_open(child), None
        except (AttributeError, OSError):
            ended, pause = self.control, MOST
        while True:
            ready = select.select([self.control, ended], [], [], pause)[0]
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                self.report(f"exit {code if code >= 0 else 128 - code}")
                return
            if self.control in ready:
                return

    def end_all(self, child: int) -> None:
        """Repeat until no child is left. With a signal to every process, no fork is quick enough to escape."""
        pause = LEAST
        while True:
            if self.fenced:
                send_signal(os.kill, EVERYBODY, KILL)
            else:
                kill_below(os.getpid())
                send_signal(os.killpg, child, KILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(pause)
            pause = min(pause * 2, MOST)


def send_signal(way: "Callable[[int, int], None]", whom: int, what: int) -> None:
    try:
        way(whom, what)
    except OSError:  # already gone
        return


def kill_below(pid: int) -> None:
    """Stop each process first, so that it cannot fork before it is killed."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listed:  # noqa: PTH123  # pathlib takes long to load
            found = [int(one) for one in listed.read().split()]
    except OSError:
        return
    for one in found:
        send_signal(os.kill, one, STOP)
        kill_below(one)
        send_signal(os.kill, one, KILL)


def join_control_group(door: str) -> None:
    """Join the control group that counts what we start."""
    try:
        with open(door, "w") as file:  # noqa: PTH123  # pathlib takes long to load
            file.write("0")
    except OSError:  # the server counts as well
        return


def receive_plan(hand: int) -> "dict[str, Any] | None":
    """Wait for the plan; None if it will never come. The first files received are our own streams, then the plan; the
    rest are lent, and the plan names them by their numbers in the process they came from."""
    asking = _socket.socket(fileno=hand)
    _, found, _, _ = asking.recvmsg(1, _socket.CMSG_SPACE(MOST_FILES * 4))
    asking.close()
    if not found:
        return None
    data = found[0][2]
    files = [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
    for stream, file in enumerate(files[:STREAMS]):
        os.dup2(file, stream)
        os.close(file)
    for file in files[STREAMS:]:
        os.set_inheritable(file, False)
    with open(files[STREAMS], "rb") as file:  # noqa: PTH123
        plan = marshal.load(file)  # noqa: S302  # written by our parent
    ours = dict(zip(plan["files"], files[STREAMS + 1 :], strict=True))
    status, control, *rest = plan["keep"]
    plan["keep"] = (ours[status], ours[control], *rest)
    if "lane" in plan:
        plan["lane"] = (ours[plan["lane"][0]], *plan["lane"][1:])
    return plan


def main(hand: str) -> None:
    plan = receive_plan(int(hand))
    if plan is None:
        return
    keeper = Keeper(plan)
    try:
        keeper.prepare()
        child = keeper.start()
    except OSError as error:
        keeper.report(f"unable {error}")
        return
    keeper.watch(child)
    keeper.end_all(child)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # skip the interpreter's clean-up: the server is waiting
