"""The filter of system calls: a program that the kernel runs before each call (seccomp).

seccomp(2) describes the filter. Its program is written in the byte code of the classic Berkeley
Packet Filter (BPF): it loads 32-bit words of `struct seccomp_data`, which describes the call,
compares them, and returns what happens to the call.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from .seccomp_rules import Action, Rule, rules
from .system_calls import PR_SET_SECCOMP, try_call

# Codes of BPF instructions (linux/bpf_common.h).
_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS: load the word at an offset
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# Bytes of an instruction.
_INSTRUCTION_SIZE = 8

# Offsets in struct seccomp_data. An argument has 64 bits; on a little-endian machine the lower 32
# bits come first.
_OFFSET_OF_NUMBER = 0
_OFFSET_OF_ARCHITECTURE = 4
_OFFSET_OF_ARGUMENTS = 16
_SIZE_OF_ARGUMENT = 8

# An argument of prctl(PR_SET_SECCOMP, …): it says that a BPF program decides on each system call.
_SECCOMP_MODE_FILTER = 2
# The results of such a BPF program for a system call (linux/seccomp.h). With SECCOMP_RET_ALLOW, the
# kernel executes the call. With SECCOMP_RET_ERRNO, the kernel only returns an error number to the
# caller: the lower 16 bits of the result.
_SECCOMP_RET_ALLOW = 0x7FFF0000
_SECCOMP_RET_ERRNO = 0x00050000
_RESULTS = {
    Action.ALLOW: _SECCOMP_RET_ALLOW,
    Action.REFUSE: _SECCOMP_RET_ERRNO | errno.EPERM,
    # The error number 0 means success.
    Action.PRETEND: _SECCOMP_RET_ERRNO | 0,
}

# From this number on, system calls of x86_64 belong to the x32 programming interface.
_FIRST_X32_NUMBER = 0x40000000


@dataclass(frozen=True)
class Architecture:
    """A processor architecture whose numbers of system calls are known."""

    # The kernel's number of the architecture, a constant of linux/audit.h. A 32-bit program on the
    # same machine has the number of another architecture.
    audit_number: int
    # Whether system calls have the numbers that are the same on most architectures
    # (`Rule.generic`), instead of those of x86_64.
    has_generic_numbers: bool

    def number_of(self, rule: Rule) -> int | None:
        """Return the number of a rule's system call; None if there is no such call."""
        return rule.generic if self.has_generic_numbers else rule.x86_64


# The known architectures, by the machine's name in uname(2).
ARCHITECTURES = {
    # AUDIT_ARCH_X86_64 in linux/audit.h.
    "x86_64": Architecture(audit_number=0xC000003E, has_generic_numbers=False),
    # AUDIT_ARCH_AARCH64 in linux/audit.h.
    "aarch64": Architecture(audit_number=0xC00000B7, has_generic_numbers=True),
    # AUDIT_ARCH_RISCV64 in linux/audit.h.
    "riscv64": Architecture(audit_number=0xC00000F3, has_generic_numbers=True),
}


def filter_system_calls(has_root: bool) -> bool:
    """Install the filter of system calls for this process; return whether it is installed.

    `has_root` tells whether the entry has a root file system of its own. There is no filter if the
    numbers of this machine's system calls are unknown or the kernel refuses the filter.
    """
    architecture = ARCHITECTURES.get(os.uname().machine)
    is_64_bit = sys.maxsize > 1 << 32
    if architecture is None or not is_64_bit or sys.byteorder != "little":
        return False
    program = assemble(architecture, rules(has_root))
    instructions = ctypes.create_string_buffer(program)
    # struct sock_fprog: the number of instructions, and their address.
    n_instructions = len(program) // _INSTRUCTION_SIZE
    fields = struct.pack("@HP", n_instructions, ctypes.addressof(instructions))
    sock_fprog = ctypes.create_string_buffer(fields)
    address = ctypes.addressof(sock_fprog)
    return try_call("prctl", PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address, 0, 0)


def assemble(architecture: Architecture, rules: Iterable[Rule]) -> bytes:
    """Return the BPF program that applies rules, in order, on an architecture.

    A call that no rule names is allowed. The program refuses calls through other interfaces of the
    kernel. There, calls have other numbers than in the rules, so the rules would not find them.
    """
    # The kernel of a 64-bit machine also takes 32-bit calls, which have other numbers: refuse a
    # call unless it is made for this architecture.
    program = _load(_OFFSET_OF_ARCHITECTURE)
    # If the call is made for this architecture, skip the next instruction, which refuses the call.
    program += _instruction(_JUMP_IF_EQUAL, architecture.audit_number, skip_if_true=1)
    program += _return(Action.REFUSE)

    # On x86_64, processes can also make calls of the x32 interface. The rules do not name the
    # numbers of these calls, so they would be allowed: refuse all of them.
    program += _load(_OFFSET_OF_NUMBER)
    # If the number is too small for a call of x32, skip the refusal.
    program += _instruction(_JUMP_IF_AT_LEAST, _FIRST_X32_NUMBER, skip_if_false=1)
    program += _return(Action.REFUSE)

    for rule in rules:
        number = architecture.number_of(rule)
        if number is not None:
            decision = _decide(rule)
            # If the call has another number, skip the instructions that decide on this call.
            n_instructions = len(decision) // _INSTRUCTION_SIZE
            program += _instruction(_JUMP_IF_EQUAL, number, skip_if_false=n_instructions)
            program += decision
    return program + _return(Action.ALLOW)


def _decide(rule: Rule) -> bytes:
    """Return the instructions that decide on the system call of a rule: its `action` for the call.

    If the rule names an argument of the call, the action depends on the value of this argument.
    """
    if rule.argument is None:
        return _return(rule.action)
    instructions = _load(_OFFSET_OF_ARGUMENTS + _SIZE_OF_ARGUMENT * rule.argument)
    for value in rule.values:
        # If the argument has another value, skip the instruction that returns the action.
        instructions += _instruction(_JUMP_IF_EQUAL, value, skip_if_false=1)
        instructions += _return(rule.action)
    return instructions + _return(rule.otherwise)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD_WORD, offset)


def _return(action: Action) -> bytes:
    return _instruction(_RETURN, _RESULTS[action])


def _instruction(code: int, value: int, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    """Pack an instruction, `struct sock_filter`.

    A comparison skips the next `skip_if_true` instructions if it is true, and the next
    `skip_if_false` instructions if it is false.
    """
    return struct.pack("=HBBI", code, skip_if_true, skip_if_false, value)
