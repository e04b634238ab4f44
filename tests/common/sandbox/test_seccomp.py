"""The filter of system calls allows what an entry needs, on any processor.

A small interpreter runs the filter, so that filters for other processors can be tested too.
"""

import errno
import struct
from dataclasses import dataclass

from common.sandbox.inside.seccomp import ARCHITECTURES, assemble
from common.sandbox.inside.seccomp_rules import rules

import pytest

# The values that the filter returns (seccomp(2)). "Pretended" means that the call returns 0 and
# does nothing.
ALLOWED = 0x7FFF0000
REFUSED = 0x00050000 | errno.EPERM
PRETENDED = 0x00050000
# Numbers of architectures in the kernel's audit.h.
X86_64 = 0xC000003E
AARCH64 = 0xC00000B7
I386 = 0x40000003
# Instructions of the filter.
LOAD = 0x20
JUMP_IF_EQUAL = 0x15
JUMP_IF_AT_LEAST = 0x35
RETURN = 0x06


@dataclass(frozen=True)
class Call:
    """A system call as the filter sees it."""

    # The number of the call on its architecture. The ids of the tests below give the name of the
    # call.
    number: int
    arguments: tuple[int, ...] = ()
    architecture: int = X86_64

    def packed(self) -> bytes:
        """Pack `struct seccomp_data`: number, architecture, instruction pointer, arguments."""
        arguments = [*self.arguments, *[0] * 6][:6]
        return struct.pack("<iIQ6Q", self.number, self.architecture, 0, *arguments)


def run_filter(call: Call, *, has_root: bool, machine: str = "x86_64") -> int:
    """Run the filter's instructions on a call; return the verdict, such as `ALLOWED`.

    The filter is a program of BPF (Berkeley Packet Filter), of which seccomp filters use four kinds
    of instructions. An instruction is a `struct sock_filter`: a code (16 bits), how many
    instructions to skip if its condition is true and if it is false (8 bits each), and a value (32
    bits).

    `has_root` tells whether the entry has a file system root of its own.
    """
    program = assemble(ARCHITECTURES[machine], rules(has_root))
    instructions = list(struct.iter_unpack("=HBBI", program))
    position = 0
    word = 0
    while True:
        code, skip_if_true, skip_if_false, value = instructions[position]
        position += 1
        if code == RETURN:
            return int(value)
        if code == LOAD:
            (word,) = struct.unpack_from("<I", call.packed(), value)
            continue
        if code == JUMP_IF_EQUAL:
            is_true = word == value
        else:
            assert code == JUMP_IF_AT_LEAST
            is_true = word >= value
        position += skip_if_true if is_true else skip_if_false


@pytest.mark.parametrize("has_root", [False, True])
@pytest.mark.parametrize(
    ("call", "result"),
    [
        pytest.param(Call(0), ALLOWED, id="read"),
        pytest.param(Call(250), REFUSED, id="keyctl"),
        pytest.param(Call(425), REFUSED, id="io_uring_setup"),
        pytest.param(Call(203, (0,)), ALLOWED, id="own processors"),
        pytest.param(Call(203, (7,)), PRETENDED, id="processors of another thread"),
        pytest.param(Call(302, (0,)), ALLOWED, id="own limits"),
        pytest.param(Call(302, (7,)), REFUSED, id="limits of another process"),
        pytest.param(Call(16, (3, 0x5401)), ALLOWED, id="ioctl of a terminal"),
        pytest.param(Call(16, (3, 0x40086602)), REFUSED, id="ioctl that sets flags"),
        pytest.param(Call(16, (3, 1 << 32 | 0x40086602)), REFUSED, id="upper bits are ignored"),
        pytest.param(Call(72, (3, 1036)), REFUSED, id="fcntl with a hint"),
        pytest.param(Call(41, (2,)), REFUSED, id="internet socket"),
        pytest.param(Call(250, architecture=I386), REFUSED, id="32-bit call"),
        pytest.param(Call(0, architecture=I386), REFUSED, id="32-bit call of an allowed number"),
        pytest.param(Call(0x40000000), REFUSED, id="x32 call"),
    ],
)
def test_a_call_is_allowed_or_refused_with_a_root_and_without(
    call: Call, result: int, has_root: bool
) -> None:
    assert run_filter(call, has_root=has_root) == result


@pytest.mark.parametrize(
    ("number", "argument"),
    [
        pytest.param(41, 1, id="local socket"),
        pytest.param(41, 16, id="socket that asks the kernel"),
    ],
)
def test_local_sockets_need_a_root_of_its_own(number: int, argument: int) -> None:
    call = Call(number, (argument,))
    assert run_filter(call, has_root=True) == ALLOWED
    assert run_filter(call, has_root=False) == REFUSED


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(90, id="chmod"),
        pytest.param(91, id="fchmod"),
        pytest.param(92, id="chown"),
        pytest.param(235, id="utimes"),
        pytest.param(260, id="fchownat"),
        pytest.param(268, id="fchmodat"),
        pytest.param(280, id="utimensat"),
        pytest.param(452, id="fchmodat2"),
    ],
)
def test_without_a_root_modes_owners_and_times_only_seem_to_change(number: int) -> None:
    assert run_filter(Call(number), has_root=True) == ALLOWED
    assert run_filter(Call(number), has_root=False) == PRETENDED


@pytest.mark.parametrize(
    ("call", "result"),
    [
        pytest.param(Call(63, architecture=AARCH64), ALLOWED, id="read"),
        pytest.param(Call(219, architecture=AARCH64), REFUSED, id="keyctl"),
        pytest.param(Call(53, architecture=AARCH64), PRETENDED, id="fchmodat"),
        pytest.param(Call(198, (1,), AARCH64), REFUSED, id="socket"),
        pytest.param(Call(63, architecture=X86_64), REFUSED, id="call of another architecture"),
    ],
)
def test_other_architectures_number_their_system_calls_differently(call: Call, result: int) -> None:
    assert run_filter(call, has_root=False, machine="aarch64") == result
