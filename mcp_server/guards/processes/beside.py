"""Who ends with a command? This file is a program: it starts one and stays beside it, to end all that it started.

    python -I -S beside.py PLAN PROGRAM ARGUMENTS...

PLAN is as `confine` reads it. When the command has ended, or the other end of a pipe is closed because somebody wants
that or is gone, everything the command started is ended too, also what made a session of its own. Like `confine`, this
starts with every command and takes of Python only what is there at once.
"""

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

    from mcp_server.guards.processes import confine
else:
    # By nobody's search path, and last of all.
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    import confine

EVERYBODY, KILL, STOP = -1, 9, 19
LEAST, MOST = 0.0005, 0.05


class Keeper:
    """Beside the command until it has ended, and then the end of everything it left behind."""

    def __init__(self, plan: "dict[str, Any]") -> None:
        self.plan = plan
        self.status, self.control, self.starter, self.terminal = plan["keep"]
        self.fenced = False
        """The kernel lets us signal nobody but what we start. Only then may everybody be meant."""
        for one in (self.status, self.control):
            os.set_inheritable(one, False)

    def prepare(self) -> None:
        if sys.platform.startswith("linux"):
            confine.control(confine.SUBREAPER, 1)
        if self.plan.get("open") is not None:
            os.kill(self.starter, 0)
            confine.Walls(files=0, net=0, scoped=confine.SIGNALS).close()
            self.fenced = self.is_fenced()

    def is_fenced(self) -> bool:
        """We could signal who started us, and now we cannot though it is still there."""
        try:
            os.kill(self.starter, 0)
        except PermissionError:
            return os.getppid() == self.starter
        return False

    def start(self, words: list[str]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                if self.terminal:
                    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
                if sys.platform.startswith("linux"):
                    confine.control(confine.DIE_WITH_PARENT, KILL)
                confine.become(self.plan, words)
            except BaseException as error:
                self.say(f"unable {error}")
            finally:
                os._exit(confine.UNABLE)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for one in (0, 1, 2):
            os.dup2(nowhere, one)
        return pid

    def say(self, text: str) -> None:
        try:
            os.write(self.status, text.encode(errors="replace") + b"\n")
        except OSError:  # nobody wants to know any more
            return

    def watch(self, child: int) -> None:
        """Until the command has ended, or somebody wants it to."""
        try:
            ended, pause = os.pidfd_open(child), None
        except (AttributeError, OSError):
            ended, pause = self.control, MOST
        while True:
            ready = select.select([self.control, ended], [], [], pause)[0]
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                self.say(f"exit {code if code >= 0 else 128 - code}")
                return
            if self.control in ready:
                return

    def end_all(self, child: int) -> None:
        """Until there is nothing left to wait for. Where everybody is meant, no fork is quick enough to be missed."""
        pause = LEAST
        while True:
            if self.fenced:
                signal(os.kill, EVERYBODY, KILL)
            else:
                end_below(os.getpid())
                signal(os.killpg, child, KILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(pause)
            pause = min(pause * 2, MOST)


def signal(way: "Callable[[int, int], None]", whom: int, what: int) -> None:
    try:
        way(whom, what)
    except OSError:  # nobody there
        return


def end_below(pid: int) -> None:
    """Stopped first, so that none has a child between the look and the blow."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listed:  # noqa: PTH123  # pathlib takes long to load
            found = [int(one) for one in listed.read().split()]
    except OSError:
        return
    for one in found:
        signal(os.kill, one, STOP)
        end_below(one)
        signal(os.kill, one, KILL)


def main(number: str, *words: str) -> None:
    with open(int(number), "rb") as file:  # noqa: PTH123
        keeper = Keeper(marshal.load(file))  # noqa: S302  # written by who started us
    try:
        keeper.prepare()
        child = keeper.start(list(words))
    except OSError as error:
        keeper.say(f"unable {error}")
        return
    keeper.watch(child)
    keeper.end_all(child)


if __name__ == "__main__":
    main(*sys.argv[1:])
