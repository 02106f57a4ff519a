"""A room of bubblewrap in which an agent's commands run: what they can read, write, reach and use up is listed here.

Two rooms, one in the other. The outer one lives as long as an attempt: it holds the read-only files and two folders in
memory of a fixed size, and runs nothing but a process that waits. Every command gets an inner one of its own: user,
process, network, ipc and host name namespaces, an empty environment, limits; when it ends, or is ended, the kernel
kills all that it has started. Root is exempt from the limit of processes, in a user namespace too, so a harness that
runs as root steps down to a user without an account before it enters.
"""

from __future__ import annotations

import os
import platform
import re
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from eval.baselines.coding.processes import children, machine_is_short, resident_bytes
from eval.baselines.coding.seccomp import program
from rewards.errors import UserError

HOME = "/task"
"""The agent's folder inside."""

INSTALL = "apt-get install -y bubblewrap (Fedora: dnf install bubblewrap)"

OLDEST = (0, 8, 0)
"""First version with --disable-userns."""

NOBODY = 64_999
"""User and group outside when the harness is root: neither an account nor a range that systemd hands out."""

USER = 1000
"""The agent's user and group inside."""

TICK = 0.05
"""Seconds between two looks at what a command uses."""

SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

START = (
    'echo 1000 > /proc/self/oom_score_adj; ulimit -c 0 -n 512 -u {processes} -f {file} -t {cpu}{virtual} && exec "$@"'
)
"""Limits of a command, set inside so that they count inside; the kernel ends it first when memory runs out."""

PROBE = """import os, time
try:
    for _ in range(20):
        if os.fork() == 0:
            time.sleep(9)
    print("unlimited")
except BlockingIOError:
    print("limited")
"""
"""Starts more processes than it may: this limit depends on who runs the harness, so it is tried, not believed."""


class Stop(StrEnum):
    """Why a command was ended. Looked at in this order."""

    OUTPUT = "output limit"
    TIME = "time limit"
    MEMORY = "memory limit"
    FILES = "file limit"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host that is read-only inside, at an absolute path."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use; the folders are shared by the commands of an attempt."""

    processes: int = 128
    memory_bytes: int = 2 << 30
    """All processes together, looked at 20 times a second."""
    virtual_bytes: int | None = 2 << 30
    """Address space of each process; None for programs that reserve more than they use."""
    disk_bytes: int = 256 << 20
    """The attempt's folder, and as much again for /tmp. They live in memory."""
    files: int = 20_000
    output_bytes: int = 4 << 20
    """Of stdout and of stderr."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left. `code` is None when it was ended."""

    code: int | None
    stdout: str
    stderr: str
    stop: Stop | None
    full: bool
    """A folder has no room left."""
    seconds: float


class NoFile(RuntimeError):
    """The agent's file is not there, or is not a plain file of a sensible size; the message says which."""


class Sandbox:
    """The outer room; a context manager. Used by the thread that opened it."""

    def __init__(self, mounts: Sequence[Mount], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._mounts = tuple(mounts)
        self._bwrap, self._nsenter = _programs()
        self._holder: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        command = [self._bwrap, *_outer(self._mounts, self.limits), "sh", "-c", "echo $$; exec cat"]
        self._holder = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
        )
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        line = self._holder.stdout.readline()
        if not line:
            reason = " ".join(self._holder.stderr.read().decode(errors="replace").split())
            self._end()
            raise UserError(f"bubblewrap cannot make a sandbox here ({reason}); {_advice(reason)}")
        self._pid = int(line)
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        assert self._holder is not None
        self._holder.kill()
        for stream in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            if stream:
                stream.close()
        self._holder.wait()

    def run(self, command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> Finished:
        """Run a program to its end or to the first limit. Nothing of it is alive afterwards."""
        code = program(platform.machine())
        filter_file = os.memfd_create("filter") if code else None
        if filter_file is not None and code:
            os.write(filter_file, code)
            os.lseek(filter_file, 0, os.SEEK_SET)
        try:
            process = subprocess.Popen(
                [*self._enter(), *_inner(environment or {}, filter_file), *_limited(self.limits, seconds), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin"},
                pass_fds=() if filter_file is None else (filter_file,),
                start_new_session=True,
            )
        finally:
            if filter_file is not None:
                os.close(filter_file)
        return self._watch(process, seconds)

    def shell(self, text: str, seconds: float) -> Finished:
        """Run a line of bash."""
        return self.run(["bash", "--noprofile", "--norc", "-c", text], seconds)

    def read(self, name: str, most: int) -> bytes:
        """The agent's file of that name in its folder; links are not followed. Raises `NoFile`."""
        try:
            # through the waiting process, which agents never see; the folder itself is a mount, not theirs to move
            folder = os.open(f"/proc/{self._pid}/root{HOME}", os.O_RDONLY | os.O_DIRECTORY)
            try:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError:
            raise NoFile("missing") from None
        except OSError as error:
            raise NoFile(f"no plain file ({error.strerror})") from error
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise NoFile("no plain file")
            if status.st_size > most:
                raise NoFile(f"larger than {most} bytes")
            with os.fdopen(file, "rb", closefd=False) as handle:
                return handle.read(most + 1)
        finally:
            os.close(file)

    def _enter(self) -> list[str]:
        user = ["-S", str(NOBODY), "-G", str(NOBODY)] if _steps_down() else ["-U", "--preserve-credentials"]
        return [self._nsenter, "-t", str(self._pid), "-m", *user, self._bwrap]

    def _watch(self, process: subprocess.Popen[bytes], seconds: float) -> Finished:
        started = time.monotonic()
        out, errors = bytearray(), bytearray()
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr, selectors.DefaultSelector() as ready:
            for stream, held in ((process.stdout, out), (process.stderr, errors)):
                os.set_blocking(stream.fileno(), False)
                ready.register(stream, selectors.EVENT_READ, held)
            try:
                stop = self._until_closed(process.pid, ready, started + seconds)
                if stop is None:
                    process.wait(max(0.0, started + seconds - time.monotonic()))
            except subprocess.TimeoutExpired:
                stop = Stop.TIME
            finally:  # also when the harness is interrupted
                _end_all(process.pid)
                process.wait()
        return Finished(
            code=None if stop else process.returncode,
            stdout=out.decode("utf-8", "replace"),
            stderr=errors.decode("utf-8", "replace"),
            stop=stop,
            full=any(self._room(folder).f_bavail == 0 for folder in (HOME, "/tmp")),
            seconds=time.monotonic() - started,
        )

    def _until_closed(self, pid: int, ready: selectors.BaseSelector, deadline: float) -> Stop | None:
        """Collect output until both streams are closed or a limit is met."""
        looked, before = time.monotonic(), self._files()
        while ready.get_map():
            for key, _ in ready.select(TICK):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    ready.unregister(key.fileobj)
                key.data.extend(data[: self.limits.output_bytes - len(key.data)])
                if len(key.data) >= self.limits.output_bytes:
                    return Stop.OUTPUT
            now = time.monotonic()
            if now > deadline:
                return Stop.TIME
            if now - looked > TICK:
                looked = now
                if stop := self._used(pid, before):
                    return stop
        return None

    def _used(self, pid: int, before: int) -> Stop | None:
        # the second for memory that belongs to no process; what runs here goes before anything else does
        if resident_bytes(pid) > self.limits.memory_bytes or machine_is_short():
            return Stop.MEMORY
        return Stop.FILES if self._files() > max(self.limits.files, before) else None

    def _files(self) -> int:
        return sum(room.f_files - room.f_ffree for room in map(self._room, (HOME, "/tmp")))

    def _room(self, folder: str) -> os.statvfs_result:
        return os.statvfs(f"/proc/{self._pid}/root{folder}")


def require() -> str:
    """The version of bubblewrap when a sandbox can be made here. Raises `UserError` with what to do: nothing ever
    runs unconfined."""
    bwrap, _ = _programs()
    text = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST:
        raise UserError(f"{text or 'bwrap'} is too old: the coding agents need 0.8.0 or newer: {INSTALL}")
    with Sandbox([], Limits(processes=8)) as sandbox:
        done = sandbox.run(["python3", "-c", PROBE], 20.0)
    if done.stdout.strip() == "unlimited":
        raise UserError("the limit of processes does not hold here: run as an ordinary user, or as root of the machine")
    if done.stdout.strip() != "limited":
        reason = " ".join(done.stderr.split()) or str(done.stop)
        raise UserError(f"bubblewrap cannot run a command here ({reason}); {_advice(reason)}")
    return numbers.group()


def _end_all(monitor: int) -> None:
    """Kill the first process of a command's namespace, and with it all others; then bwrap's monitor outside of it."""
    for pid in (*children(monitor), monitor):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _programs() -> tuple[str, str]:
    bwrap, nsenter = shutil.which("bwrap"), shutil.which("nsenter")
    if bwrap is None:
        raise UserError(f"coding agents run in bubblewrap only, and it is not installed: {INSTALL}")
    if nsenter is None:
        raise UserError("coding agents need nsenter of util-linux: apt-get install -y util-linux")
    return bwrap, nsenter


def _advice(reason: str) -> str:
    if "setting up uid map" in reason or "No permissions" in reason or "namespace" in reason:
        return "user namespaces are forbidden here: allow them (sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
    if "mount proc" in reason:
        return "this container hides parts of /proc: start it with --security-opt systempaths=unconfined"
    return "coding agents are never run without it"


def _steps_down() -> bool:
    """Whether the harness is root, and there is the user to step down to: in a user namespace there may be none."""
    with open("/proc/self/uid_map") as lines:
        ranges = [tuple(map(int, line.split())) for line in lines]
    return os.getuid() == 0 and any(first <= NOBODY < first + count for first, _, count in ranges)


def _outer(mounts: Sequence[Mount], limits: Limits) -> list[str]:
    size = str(limits.disk_bytes)
    flags = ["--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
    if _steps_down():
        flags += ["--cap-drop", "ALL"]
    else:
        flags += ["--unshare-user", "--uid", str(USER), "--gid", str(USER)]
    for name in SYSTEM_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            flags += ["--symlink", os.readlink(folder), name]
        elif folder.is_dir():
            flags += ["--ro-bind", name, name]
    flags += _folders(Path("/etc/x"))
    for name in SYSTEM_FILES:
        flags += ["--ro-bind-try", name, name]
    if python := _python():
        flags += [*_folders(python), "--ro-bind", str(python), str(python)]
    # not --dev: for its terminals bwrap would add a user namespace that its own mounts do not belong to
    flags += ["--perms", "0755", "--dir", "/dev", "--bind", "/proc", "/proc"]
    for name in DEVICES:
        flags += ["--dev-bind", name, name]
    for folder in (HOME, "/tmp"):
        flags += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    for mount in mounts:
        flags += [*_folders(Path(mount.target)), "--ro-bind", str(mount.source), mount.target]
    return [*flags, "--remount-ro", "/", "--chdir", "/", "--"]


def _inner(environment: Mapping[str, str], filter_file: int | None) -> list[str]:
    flags = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER)]
    flags += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    flags += ["--ro-bind", "/", "/", "--bind", HOME, HOME, "--bind", "/tmp", "/tmp"]
    flags += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--size",
        str(16 << 20),
        "--tmpfs",
        "/dev/shm",
        "--remount-ro",
        "/dev",
    ]
    # the first process is killed with the command's monitor: who could write to its memory could keep it from that
    flags += ["--perms", "0555", "--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"]
    # reads the same, but cannot be mapped: shared pages of /dev/zero are memory that is counted nowhere
    flags += ["--dev-bind", "/dev/full", "/dev/zero"]
    flags += ["--chdir", HOME, "--clearenv"]
    python = _python()
    known = {
        "PATH": f"{f'{python}/bin:' if python else ''}/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
    }
    for name, value in (known | dict(environment)).items():
        flags += ["--setenv", name, value]
    if filter_file is not None:
        flags += ["--seccomp", str(filter_file)]
    return [*flags, "--"]


def _python() -> Path | None:
    """The folder of an interpreter for the helper, where the system has none of its own."""
    system = any(Path(folder, "python3").exists() for folder in ("/usr/bin", "/usr/local/bin"))
    return None if system else Path(sys.base_prefix)


def _folders(target: Path) -> list[str]:
    """Make the folders above a mount, open to everybody: bwrap makes them private, and root steps down."""
    above = [folder for folder in reversed(target.parents) if str(folder) not in ("/", HOME, "/usr", "/tmp")]
    return [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]


def _limited(limits: Limits, seconds: float) -> list[str]:
    virtual = "" if limits.virtual_bytes is None else f" -v {limits.virtual_bytes >> 10}"
    start = START.format(
        processes=limits.processes, file=limits.disk_bytes >> 10, cpu=int(seconds) + 1, virtual=virtual
    )
    return ["bash", "--noprofile", "--norc", "-c", start, "sandbox"]
