"""Which processes end with a command? This program starts a command and later ends everything that came of it.

    python -I -S subreaper.py SOCKET

It starts in advance and waits on SOCKET for a command: the files to use, and a plan as `landlock_exec` reads it. When
the command ends, or the other end of the control pipe closes (on request, or because the server is gone), it ends
everything the command started, including processes in sessions of their own. Like `landlock_exec`, it imports only what
Python has loaded anyway.
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

EVERY_PROCESS, SIGKILL, SIGSTOP = -1, 9, 19
MAX_FILES = 16
STREAM_COUNT = 3
MIN_PAUSE, MAX_PAUSE = 0.0005, 0.05


class Subreaper:
    """Waits for the command to end, then ends everything it left behind."""

    def __init__(self, plan: "dict[str, Any]") -> None:
        self.plan = plan
        self.status, self.control, self.starter, self.terminal = plan["keep"]
        self.signals_confined = False
        """True if the kernel lets us signal only what we started. Only then is it safe to signal every process."""
        for descriptor in (self.status, self.control):
            os.set_inheritable(descriptor, False)

    def prepare(self) -> None:
        if "group" in self.plan:
            join_control_group(self.plan["group"])
        if sys.platform.startswith("linux"):
            landlock_exec.control(landlock_exec.SUBREAPER, 1)
        if self.plan.get("open") is not None:
            os.kill(self.starter, 0)
            landlock_exec.LandlockRules(files=0, net=0, scoped=landlock_exec.SIGNALS).enforce()
            self.signals_confined = self.are_signals_confined()

    def are_signals_confined(self) -> bool:
        """Is our parent, which we could signal before, out of reach although it still lives?"""
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
                    landlock_exec.control(landlock_exec.DIE_WITH_PARENT, SIGKILL)
                landlock_exec.become(self.plan, self.plan["words"])
            except BaseException as error:
                self.report(f"unable {error}")
            finally:
                os._exit(landlock_exec.UNABLE)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        return pid

    def report(self, text: str) -> None:
        try:
            os.write(self.status, text.encode(errors="replace") + b"\n")
        except OSError:  # the server no longer listens
            return

    def watch(self, child: int) -> None:
        """Wait until the command ends or the control pipe closes."""
        try:
            pidfd, poll_seconds = os.pidfd_open(child), None
        except (AttributeError, OSError):
            pidfd, poll_seconds = self.control, MAX_PAUSE
        while True:
            ready = select.select([self.control, pidfd], [], [], poll_seconds)[0]
            ended_pid, status = os.waitpid(child, os.WNOHANG)
            if ended_pid:
                code = os.waitstatus_to_exitcode(status)
                self.report(f"exit {code if code >= 0 else 128 - code}")
                return
            if self.control in ready:
                return

    def end_all(self, child: int) -> None:
        """Kill until no child is left. Forking fast does not escape a signal to every process."""
        pause = MIN_PAUSE
        while True:
            if self.signals_confined:
                send_signal(os.kill, EVERY_PROCESS, SIGKILL)
            else:
                kill_below(os.getpid())
                send_signal(os.killpg, child, SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE)


def send_signal(send: "Callable[[int, int], None]", target: int, number: int) -> None:
    try:
        send(target, number)
    except OSError:  # already gone
        return


def kill_below(pid: int) -> None:
    """Stop each process first, so that it cannot fork before it is killed."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listing:  # noqa: PTH123  # pathlib takes long to load
            children = [int(child) for child in listing.read().split()]
    except OSError:
        return
    for child in children:
        send_signal(os.kill, child, SIGSTOP)
        kill_below(child)
        send_signal(os.kill, child, SIGKILL)


def join_control_group(procs_file: str) -> None:
    """Join the control group, which counts what we start."""
    try:
        with open(procs_file, "w") as file:  # noqa: PTH123  # pathlib takes long to load
            file.write("0")
    except OSError:  # the server counts as well
        return


def receive_plan(descriptor: int) -> "dict[str, Any] | None":
    """Wait for the plan; None if it never comes. The files arrive in this order: our three streams, the plan, and files
    lent to the command, which the plan names by their numbers in the sending process."""
    channel = _socket.socket(fileno=descriptor)
    _, messages, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(MAX_FILES * 4))
    channel.close()
    if not messages:
        return None
    data = messages[0][2]
    files = [int.from_bytes(data[offset : offset + 4], sys.byteorder) for offset in range(0, len(data), 4)]
    for stream, file in enumerate(files[:STREAM_COUNT]):
        os.dup2(file, stream)
        os.close(file)
    for file in files[STREAM_COUNT:]:
        os.set_inheritable(file, False)
    with open(files[STREAM_COUNT], "rb") as file:  # noqa: PTH123
        plan = marshal.load(file)  # noqa: S302  # written by our parent
    numbers = dict(zip(plan["files"], files[STREAM_COUNT + 1 :], strict=True))
    status, control, *rest = plan["keep"]
    plan["keep"] = (numbers[status], numbers[control], *rest)
    if "lane" in plan:
        plan["lane"] = (numbers[plan["lane"][0]], *plan["lane"][1:])
    return plan


def main(descriptor: str) -> None:
    plan = receive_plan(int(descriptor))
    if plan is None:
        return
    subreaper = Subreaper(plan)
    try:
        subreaper.prepare()
        child = subreaper.start()
    except OSError as error:
        subreaper.report(f"unable {error}")
        return
    subreaper.watch(child)
    subreaper.end_all(child)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # skip the interpreter's clean-up, because the server is waiting
