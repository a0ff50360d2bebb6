"""Run a command in namespaces of its own, by the system calls of Linux: what `bwrap` does, where it is not installed.

    python -I -S enclose.py [--network none|loopback|host] --chdir DIR
        [--dir DIR | --tmpfs DIR | --symlink TEXT PATH | --bind SRC DST | --ro-bind SRC DST]…
        -- PROGRAM [WORD…]

Of the machine only what is named is seen, mounted in that order on an empty root that cannot be written; `/proc` shows
the command's own processes alone, and no further user namespace can be made. The program ends with the command's
status, and everything that the command started ends with it. It needs user namespaces, Linux 5.12 or newer; status 125
and a line on stderr say what is missing. Standard library alone.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import stat
import struct
import sys
from typing import NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_RECURSIVE, _ATTR_RDONLY = 0x8000, 1
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 1, 4, 38, 24
_LAST_CAPABILITY = 63
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_FAILED = 125


def main(words: list[str]) -> NoReturn:
    """Make the namespaces, run the command, end with its status."""
    at = words.index("--")
    mounts, options = _read(words[:at])
    try:
        _unshare(options["network"])
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        child = os.fork()
        if child == 0:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _root(mounts)
            if options["network"] == "loopback":
                _loopback_up()
            _no_capabilities()
            os.chdir(options["chdir"])
            _serve(words[at + 1 :])
    except OSError as error:
        print(f"enclose: {error}", file=sys.stderr)
        os._exit(_FAILED)
    _, status = os.waitpid(child, 0)
    _leave(status)


def _read(words: list[str]) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    mounts: list[tuple[str, ...]] = []
    options = {"network": "none", "chdir": "/"}
    rest = iter(words)
    for word in rest:
        if word in ("--bind", "--ro-bind", "--symlink"):
            mounts.append((word, next(rest), next(rest)))
        elif word in ("--tmpfs", "--dir"):
            mounts.append((word, next(rest)))
        else:
            options[word[2:]] = next(rest)
    return mounts, options


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _unshare(network: str) -> None:
    uid, gid = os.getuid(), os.getgid()
    flags = _NEWUSER | _NEWNS | _NEWPID | _NEWIPC | _NEWUTS | (0 if network == "host" else _NEWNET)
    _check(_LIBC.unshare(flags), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = (source.encode(), os.fsencode(target), kind.encode(), flags, data.encode())
    _check(_LIBC.mount(words[0], words[1], words[2], ctypes.c_ulong(words[3]), words[4]), f"mount {target}")


def _read_only(path: str, reach: int = _AT_RECURSIVE) -> None:
    attributes = struct.pack("QQQQ", _ATTR_RDONLY, 0, 0, 0)
    result = _LIBC.syscall(_SYS_MOUNT_SETATTR, -100, os.fsencode(path), reach, attributes, len(attributes))
    _check(result, f"mount_setattr {path}")


def _root(mounts: list[tuple[str, ...]]) -> None:
    """Build the root that the command sees, and enter it."""
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    build = "/tmp"
    sources = {row[1]: os.open(row[1], os.O_PATH | os.O_CLOEXEC) for row in mounts if row[0].endswith("bind")}
    _mount("tmpfs", build, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    root = f"{build}/root"
    os.mkdir(root)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    for name in ("dev", "proc"):
        os.mkdir(f"{root}/{name}")
    _devices(root)
    _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV)
    with open(f"{root}/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as limit:
        limit.write("0")
    for row in mounts:
        target = f"{root}{row[-1]}"
        if row[0] == "--symlink":
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(row[1], target)
        elif row[0] in ("--dir", "--tmpfs"):
            os.makedirs(target, exist_ok=True)
            if row[0] == "--tmpfs":
                _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
        else:
            _place(target, sources[row[1]])
            _mount(f"/proc/self/fd/{sources[row[1]]}", target, "", _MS_BIND | _MS_REC)
            if row[0] == "--ro-bind":
                _read_only(target)
    _read_only(root, 0)
    os.chdir(root)
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root: unknown on {os.uname().machine}")
    _check(_LIBC.syscall(number, b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def _devices(root: str) -> None:
    """Put the few devices that every program may use in place of the machine's."""
    names = ("null", "zero", "full", "random", "urandom", "tty")
    opened = {
        name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in names if os.path.exists(f"/dev/{name}")
    }
    _mount("tmpfs", f"{root}/dev", "tmpfs", _MS_NOSUID, "mode=755")
    for name, descriptor in opened.items():
        with open(f"{root}/dev/{name}", "wb"):
            pass
        _mount(f"/proc/self/fd/{descriptor}", f"{root}/dev/{name}", "", _MS_BIND)
    os.mkdir(f"{root}/dev/shm", 0o1777)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")


def _place(target: str, source: int) -> None:
    """Make the file or folder that something is mounted on, where there is none yet.

    The source is an open descriptor: a folder of `/tmp` is not seen by its path any more.
    """
    if os.path.lexists(target):
        return
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb"):
        pass


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("16xh", fcntl.ioctl(link, _SIOCGIFFLAGS, request))
        fcntl.ioctl(link, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _no_capabilities() -> None:
    """Give up every capability that the user namespace gave, for good."""
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for number in range(_LAST_CAPABILITY + 1):
        _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header = struct.pack("II", 0x20080522, 0)
    _check(_LIBC.capset(header, bytes(24)), "capset")


def _serve(argv: list[str]) -> NoReturn:
    """Be the first process of the namespace: start the command, reap what it leaves, end with its status."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody inside is let into its memory
    child = os.fork()
    if child == 0:
        program = shutil.which(argv[0]) or argv[0]
        try:
            os.execv(program, argv)
        except OSError as error:
            print(f"enclose: {argv[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127 if error.errno == 2 else 126)
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


main(sys.argv[1:])
