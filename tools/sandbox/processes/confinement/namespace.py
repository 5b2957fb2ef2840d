"""Creates a network namespace with nothing but loopback, and passes it on.

An interpreter runs this file as text, without access to our modules:
`python -c TEXT outside|inside ADDRESS:PORT ...`. With `inside`, the caller has already created the
namespace, in a user namespace, and brought loopback up. Standard input is a Unix socket. Through it
the program sends a listening socket for each address, and then the namespaces to join: a user
namespace, if the network's is in one, and the network namespace. They exist as long as a process
holds them.
"""

import array
import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEW* of linux/sched.h
_USER, _NETWORK = "/proc/self/ns/user", "/proc/self/ns/net"
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS of linux/sockios.h, IFF_UP of linux/if.h


def _unshare(kinds: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(kinds):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123  # as simple as can be
        file.write(text)


def _enter_new() -> list[str]:
    """Enters a new network namespace; returns the paths of the namespaces to join."""
    try:
        _unshare(_NEW_NETWORK)
    except PermissionError:  # non-root users need a user namespace, and stay the same user there
        user, group = os.geteuid(), os.getegid()
        _unshare(_NEW_USER | _NEW_NETWORK)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        return [_USER, _NETWORK]
    return [_NETWORK]


def main(where: str, addresses: Sequence[str]) -> None:
    """Creates the namespace, unless already inside one, and sends it."""
    if where == "inside":
        namespaces = [_USER, _NETWORK]
    else:
        namespaces = _enter_new()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    listeners = []
    for each in addresses:
        host, _, port = each.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listeners.append(socket.create_server((host, int(port)), family=family, backlog=128))
    descriptors = [each.fileno() for each in listeners]
    descriptors += [os.open(each, os.O_RDONLY) for each in namespaces]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    with socket.socket(fileno=0) as channel:
        channel.sendmsg([b"!"], rights)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
