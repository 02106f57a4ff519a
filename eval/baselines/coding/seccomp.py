"""System calls that the sandbox refuses: what namespaces do not contain.

Sockets of other families than unix, internet and netlink (AF_VSOCK talks to a hypervisor past every network
namespace), kernel keyrings, memory that belongs to no process and would be counted nowhere, and the parts of the kernel
that a search through files does not need. A classic BPF program, as the kernel takes it (linux/filter.h,
linux/seccomp.h).
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_ALU|BPF_AND|BPF_K, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGE|BPF_K, BPF_RET|BPF_K."""

NUMBER, ARCHITECTURE, FIRST_ARGUMENT, FOURTH_ARGUMENT = 0, 4, 16, 40
"""Offsets in struct seccomp_data; an argument's low half (both machines are little-endian)."""

ALLOW, ERROR = 0x7FFF0000, 0x00050000

X32 = 0x40000000
"""Bit of the x32 system calls, other numbers for the same calls."""

SHARED_ANONYMOUS = 0x01 | 0x20
"""MAP_SHARED and MAP_ANONYMOUS: pages that stay when their process lets go of them, and then count for nobody."""

FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: all in a network namespace of their own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Numbers of one architecture (asm/unistd.h)."""

    audit: int
    socket: int
    mmap: int
    refused: tuple[int, ...]
    """ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, process_madvise,
    add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd, io_uring_setup,
    memfd_create, memfd_secret, shmget, semget, msgget, mq_open."""


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        41,
        9,
        (101, 310, 311, 312, 438, 440, 248, 249, 250, 321, 298, 323, 425, 319, 447, 29, 64, 68, 240),
    ),
    "aarch64": Machine(
        0xC00000B7,
        198,
        222,
        (117, 270, 271, 272, 438, 440, 217, 218, 219, 280, 241, 282, 425, 279, 447, 194, 190, 186, 180),
    ),
}


def program(machine: str) -> bytes | None:
    """The filter for bwrap's --seccomp, or None on an architecture whose numbers are not known."""
    known = MACHINES.get(machine)
    if known is None:
        return None
    refuse = [(RETURN, 0, 0, ERROR | errno.EPERM)]
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, known.audit), *refuse, (LOAD, 0, 0, NUMBER)]
    code += [(AT_LEAST, 0, 1, X32), *refuse]
    for number in known.refused:
        code += [(EQUAL, 0, 1, number), *refuse]
    # not mmap: past its flags
    code += [(EQUAL, 0, 4, known.mmap), (LOAD, 0, 0, FOURTH_ARGUMENT), (AND, 0, 0, SHARED_ANONYMOUS)]
    code += [(EQUAL, 0, 1, SHARED_ANONYMOUS), *refuse, (LOAD, 0, 0, NUMBER)]
    # not a socket: past the families
    code += [(EQUAL, 0, len(FAMILIES) + 2, known.socket), (LOAD, 0, 0, FIRST_ARGUMENT)]
    code += [(EQUAL, len(FAMILIES) - place, 0, family) for place, family in enumerate(FAMILIES)]
    code += [(RETURN, 0, 0, ERROR | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in code)
