"""R3: as root the kernel's settings could be written from within the sandbox, setuid files could be made in the
workspace, and as nobody bubblewrap allowed user namespaces inside of it.

One program does its worst in each sandbox, as root and as nobody; what became of it is looked at from outside.
"""

import os
import shutil
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.nobody import NOBODY, python
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import ROOT, command

BECOME = "import os, sys; os.setgroups([]); os.setgid({id}); os.setuid({id}); os.execvp(sys.argv[1], sys.argv[1:])"
WITHOUT_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$0" "$@"'
KERNEL = """
import os
open_ones = []
def writable(top):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [one for one in folders if not one.isdigit() and one not in ("self", "thread-self")]
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                except OSError:
                    continue
                open_ones.append(path)
writable("/proc")
writable("/sys")
if open_ones:
    print("OPEN", len(open_ones), *open_ones[:10])
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sys/kernel/hostname"):
    try:
        with open(path) as file:
            was = file.read()
        with open(path, "w") as file:
            file.write(was)
        print("WROTE", path)
    except OSError:
        pass
print("LOOKED", len(os.listdir("/proc/sys/kernel")))
"""
NAMESPACES = """
import ctypes, os, platform, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
NEW, SIGCHLD = 0x10000000, 17
def child(act):
    pid = os.fork()
    if pid == 0:
        os._exit(7 if act() == 0 else 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
for extra in (0, 0x20000, 0x40000000, 0x20000000 | 0x20000):
    if child(lambda: libc.unshare(NEW | extra)):
        print("UNSHARED", hex(extra))
    pid = libc.syscall(220 if arm else 56, ctypes.c_ulong(NEW | extra | SIGCHLD), 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        print("CLONED", hex(extra))
        os.waitpid(pid, 0)
about = ctypes.create_string_buffer(struct.pack("8Q", NEW, 0, 0, 0, SIGCHLD, 0, 0, 0))
pid = libc.syscall(435, about, ctypes.c_size_t(64))
if pid == 0:
    os._exit(0)
print("CLONE3" if pid > 0 else f"clone3 {ctypes.get_errno()}")
if child(lambda: libc.setns(os.open("/proc/self/ns/user", os.O_RDONLY), NEW)):
    print("ENTERED")
in_bubblewrap = ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"]
for words in (["unshare", "-U", "true"], ["unshare", "-Ur", "true"], in_bubblewrap):
    try:
        if subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0:
            print("STARTED", *words)
    except OSError:
        pass
"""
SETUID = r"""
import ctypes, os, platform, shutil, stat, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
HERE, number = os.path.abspath("src"), iter(range(10000))
def fresh(made=True):
    path = os.path.join(HERE, f"made{next(number)}")
    if made:
        shutil.copy("/bin/true", path)
    return path
def call(what, *arguments):
    return libc.syscall(what, *[ctypes.c_long(one) if isinstance(one, int) else one for one in arguments])
AT = -100
for bits in (0o4755, 0o2755, 0o6755, 0o4000, 0o4711 | 0o100000):
    path = fresh(); libc.chmod(path.encode(), bits)
    path = fresh(); file = os.open(path, os.O_RDWR); libc.fchmod(file, bits)
    path = fresh(); libc.fchmodat(AT, path.encode(), bits, 0)
    path = fresh(); call(452, AT, path.encode(), bits, 0)
    path = fresh(); call(452, AT, path.encode(), bits, 0x100)
    for flags in (os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC):
        call(56 if arm else 257, AT, fresh(False).encode(), flags | os.O_WRONLY, bits)
        how = ctypes.create_string_buffer(struct.pack("3Q", flags | os.O_WRONLY, bits & 0o7777, 0))
        call(437, AT, fresh(False).encode(), how, 24)
    call(33 if arm else 259, AT, fresh(False).encode(), stat.S_IFREG | bits & 0o7777, 0)
    hidden = call(56 if arm else 257, AT, HERE.encode(), os.O_TMPFILE | os.O_WRONLY, bits)
    if hidden >= 0:
        libc.linkat(AT, f"/proc/self/fd/{hidden}".encode(), AT, fresh(False).encode(), 0x400)
    if not arm:
        call(90, fresh().encode(), bits)
        call(2, fresh(False).encode(), os.O_CREAT | os.O_WRONLY, bits)
        call(85, fresh(False).encode(), bits)
        call(133, fresh(False).encode(), stat.S_IFREG | bits & 0o7777, 0)
        call(90 | 0x40000000, fresh().encode(), bits)
        # The calls of 32 bits, which have numbers of their own.
        libc.mmap.restype = ctypes.c_void_p
        low = libc.mmap(None, 4096, 7, 0x62, -1, 0)
        if low not in (None, ctypes.c_void_p(-1).value):
            words = fresh().encode() + b"\0"
            ctypes.memmove(low + 512, words, len(words))
            code = b"\x53\xb8" + struct.pack("I", 15) + b"\xbb" + struct.pack("I", low + 512)
            code += b"\xb9" + struct.pack("I", bits & 0o7777) + b"\xcd\x80\x5b\xc3"
            ctypes.memmove(low, code, len(code))
            if os.fork() == 0:
                ctypes.CFUNCTYPE(ctypes.c_int)(low)()
                os._exit(0)
            os.wait()
    subprocess.run(["install", "-m", oct(bits & 0o7777)[2:], "/bin/true", fresh(False)], stderr=subprocess.DEVNULL)
subprocess.run(["chmod", "u+s", fresh()], stderr=subprocess.DEVNULL)
subprocess.run(["cp", "-p", "/usr/bin/su", fresh(False)], stderr=subprocess.DEVNULL)
everything = (0xFFFFFFFF, 0, 0x1FF, 0)
for rights in (struct.pack("<5I", 0x02000001, *everything), struct.pack("<6I", 0x03000001, *everything, 0)):
    try:
        os.setxattr(fresh(), "security.capability", rights)
    except OSError:
        pass
# One that was there already is no setuid file any more once it is written to.
with open("src/theirs", "r+b") as file:
    file.write(b"x")
print("TRIED", next(number))
"""
EVERYDAY = """
set -e
mkdir -m 755 plain && chmod 750 plain && install -m 755 /bin/true plain/true && cp -a plain copy && chmod -R u+w copy
umask 022; echo x > plain/x; chmod 644 plain/x; mktemp -p plain > /dev/null; ln -s x plain/l; tar cf all.tar plain
rm -r plain && tar xf all.tar && tar xpf all.tar && test -x plain/true
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q repo && cd repo && git commit -q --allow-empty -m one && git log -1 > /dev/null && cd ..
/usr/bin/python3 -c "
import threading, subprocess, shutil, multiprocessing, tempfile
t = threading.Thread(target=subprocess.run, args=(['true'],)); t.start(); t.join()
shutil.copytree('plain', 'again', symlinks=True)
tempfile.NamedTemporaryFile(dir='.').close()
"
if [ "$(id -u)" != 0 ]; then mkdir team && chmod g+s team && mkdir -m 2775 both; fi
(sleep 0 & wait) && echo EVERYDAY-DONE
"""


@pytest.fixture
def room() -> Generator[Path, None, None]:
    """A folder that nobody in particular can get to."""
    folder = Path("/var/tmp") / f"menugate-r3-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def run_words(who: str, sandbox: str) -> list[str]:
    """How the server is started as that user, where it finds that sandbox; skipped where this machine cannot."""
    if os.geteuid() != 0 and (who == "nobody" or sandbox == "landlock"):
        pytest.skip("only root can become somebody else or take bubblewrap away")
    words = command("serve")
    if who == "nobody":
        program = python()
        if program is None:
            pytest.skip("there is no Python here that nobody may start")
        path = os.pathsep.join([str(ROOT), *(one for one in sys.path if one)])
        about = [f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS="]
        words = [sys.executable, "-c", BECOME.format(id=NOBODY), "/usr/bin/env", *about, program, *words[1:]]
    if sandbox == "landlock" and Path("/usr/bin/bwrap").exists():
        words = ["unshare", "--mount", "sh", "-c", WITHOUT_BUBBLEWRAP, *words]
    return words


def give_away(room: Path, who: str) -> None:
    if who == "nobody":
        for path in (room, *room.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def worst(one: Pipe, program: str) -> str:
    """What a program prints that runs as a command."""
    ran: dict[str, Any] = one.call("bash", command=f"/usr/bin/python3 src/{program}.py", timeout=100)
    assert not ran["isError"], ran
    return str(ran["structuredContent"]["output"])


def set_bits(work: Path, who: str) -> list[str]:
    """Files that give whoever runs them more than he has, as they are for everybody outside. The bit of the group is
    what folders of a team have, and gives only root's files more than their maker has."""
    bits = stat.S_ISUID | (stat.S_ISGID if who == "root" and os.geteuid() == 0 else 0)
    files = [path for path in work.rglob("*") if path.is_file() and not path.is_symlink()]
    found = [path.name for path in files if path.stat().st_mode & bits]
    return found + [path.name for path in files if "security.capability" in os.listxattr(path)]


@contextmanager
def at_work(room: Path, who: str, sandbox: str) -> Generator[tuple[Pipe, Path], None, None]:
    work, home = room / "work", room / "home"
    (work / "src").mkdir(parents=True)
    home.mkdir()
    for name, text in (("kernel", KERNEL), ("namespaces", NAMESPACES), ("setuid", SETUID)):
        (work / "src" / f"{name}.py").write_text(text)
    shutil.copy("/bin/true", work / "src" / "theirs")
    give_away(room, who)
    (work / "src" / "theirs").chmod(0o6755)
    with pipe(work, home, "--mode", "swe", "--profile", "trusted", run=run_words(who, sandbox)) as one:
        one.hello()
        yield one, work


everywhere = pytest.mark.parametrize(
    ("who", "sandbox"), [(who, sandbox) for who in ("root", "nobody") for sandbox in ("bubblewrap", "landlock")]
)


@everywhere
def test_no_command_writes_to_the_kernels_settings(room: Path, who: str, sandbox: str) -> None:
    with at_work(room, who, sandbox) as (one, _):
        said = worst(one, "kernel").splitlines()
        assert [line for line in said if not line.startswith("LOOKED")] == []
        assert any(line.startswith("LOOKED") for line in said), said


@everywhere
def test_no_command_makes_a_world_of_users(room: Path, who: str, sandbox: str) -> None:
    with at_work(room, who, sandbox) as (one, _):
        assert worst(one, "namespaces").splitlines() == ["clone3 38"]


@everywhere
def test_no_command_makes_a_file_that_runs_as_its_owner(room: Path, who: str, sandbox: str) -> None:
    with at_work(room, who, sandbox) as (one, work):
        assert "TRIED" in worst(one, "setuid")
        assert len(list((work / "src").iterdir())) > 20
        assert set_bits(work, who) == []


@everywhere
def test_what_everybody_does_goes_on(room: Path, who: str, sandbox: str) -> None:
    with at_work(room, who, sandbox) as (one, _):
        ran = one.call("bash", command=EVERYDAY, exec_dir="src")
        assert "EVERYDAY-DONE" in ran["structuredContent"]["output"], ran
