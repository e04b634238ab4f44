"""Debiasing: the organisers' zips are unpacked with their passwords, wholly or not at all."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
from conftest import Write, fails, succeeds

SCRIPT = "related_challenges/debiasing/unpack.py"
PASSWORD = "65255c3677a40bf4d341b0c739ad6dff"
CLICKS = b"3,14,0.159\n2,65,0.358\n" * 20
QUERIES = b"9,0.79\n"
FEATURES = b"1,0.5,0.25\n"

# ---- Zips with a password ------------------------------------------------------------------------
# Python reads encrypted zips, but cannot write them. The cipher is described in APPNOTE 6.1.

CRC_TABLE = [0] * 256
for byte in range(256):
    value = byte
    for _ in range(8):
        value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    CRC_TABLE[byte] = value


class Cipher:
    """The three keys of the cipher, which change with every byte."""

    def __init__(self, password: str) -> None:
        self.keys = [0x12345678, 0x23456789, 0x34567890]
        for byte in password.encode():
            self.update(byte)

    def update(self, byte: int) -> None:
        """Change the keys by a byte of plain text."""
        first, second, third = self.keys
        first = first >> 8 ^ CRC_TABLE[(first ^ byte) & 0xFF]
        second = ((second + (first & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        third = third >> 8 ^ CRC_TABLE[(third ^ second >> 24) & 0xFF]
        self.keys = [first, second, third]

    @property
    def mask(self) -> int:
        """The next byte of the key stream: XOR with it encrypts or decrypts the next byte.

        The formula is that of `decrypt_byte` in section 6.1 of APPNOTE, the specification of zips.
        """
        word = self.keys[2] & 0xFFFF | 2
        return (word * (word ^ 1) >> 8) & 0xFF

    def encrypt(self, plain: bytes) -> bytes:
        """Encrypt bytes that follow those encrypted so far."""
        hidden = bytearray()
        for byte in plain:
            hidden.append(byte ^ self.mask)
            self.update(byte)
        return bytes(hidden)

    def decrypt(self, hidden: bytes) -> bytes:
        """Decrypt bytes that follow those decrypted so far."""
        plain = bytearray()
        for byte in hidden:
            plain.append(byte ^ self.mask)
            self.update(plain[-1])
        return bytes(plain)


def zip_with_password(members: Mapping[str, bytes], password: str) -> bytes:
    """Return a zip whose members are packed and encrypted.

    The zip holds each member behind a header, then a directory with an entry for each member, and
    at the end a record of the directory. The specification (APPNOTE) lists the fields of a header
    in section 4.3.7, of an entry in 4.3.12, and of the record in 4.3.16.
    """
    body = b""
    directory = b""
    for name, content in members.items():
        checksum = zlib.crc32(content)
        # A negative `wbits` gives a raw deflate stream, without the header that zlib adds.
        packer = zlib.compressobj(wbits=-15)
        packed = packer.compress(content) + packer.flush()
        # An encrypted file begins with twelve bytes. The first eleven should be random, but zeros
        # are good enough for a test. The last one is a byte of the checksum. It reveals a wrong
        # password.
        start = bytes(11) + bytes([checksum >> 24])
        hidden = Cipher(password).encrypt(start + packed)
        # These fields are in the header and also in the entry of the directory.
        shared_fields = struct.pack(
            "<HHHHHIIIHH",
            20,  # Needs version 2.0 of the format.
            1,  # Flags: encrypted.
            8,  # Method: deflate.
            0,  # Time: midnight.
            0x21,  # Date: 1 January 1980.
            checksum,
            len(hidden),
            len(content),
            len(name),
            0,  # Length of further fields: none.
        )
        made_by = struct.pack("<H", 20)
        last_fields = struct.pack(
            "<HHHII",
            0,  # Length of the comment: none.
            0,  # Number of the disk.
            0,  # Internal attributes: none.
            0,  # External attributes: none.
            len(body),  # Where the header of the member begins.
        )
        directory += b"PK\x01\x02" + made_by + shared_fields + last_fields + name.encode()
        body += b"PK\x03\x04" + shared_fields + name.encode() + hidden
    n = len(members)
    record = struct.pack(
        "<HHHHIIH",
        0,  # Number of the disk.
        0,  # Number of the disk on which the directory begins.
        n,  # Number of members on the disk.
        n,  # Number of members on all disks.
        len(directory),
        len(body),  # Where the directory begins.
        0,  # Length of the comment: none.
    )
    return body + directory + b"PK\x05\x06" + record


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """Return a zip without a password."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


# ---- The organisers' files -----------------------------------------------------------------------

TRAIN_CLICKS = {"underexpose_train_click-3.csv": CLICKS}
TEST_CLICKS = {
    "underexpose_test_click-3/underexpose_test_click-3.csv": CLICKS[:44],
    "underexpose_test_click-3/underexpose_test_qtime-3.csv": QUERIES,
}
TRAIN = {
    "underexpose_train/underexpose_user_feat.csv": FEATURES,
    "underexpose_train/underexpose_train_click-0.zip": zip_of(
        {"underexpose_train_click-0.csv": CLICKS[:22]}
    ),
    "underexpose_train/underexpose_train_click-3.zip": zip_with_password(TRAIN_CLICKS, PASSWORD),
    "underexpose_train/readme.txt": b"of no use",
    "__MACOSX/underexpose_train/._underexpose_user_feat.csv": b"of no use",
}
TEST = {"underexpose_test_click-3.zip": zip_with_password(TEST_CLICKS, "a")}
PASSWORDS = f"{PASSWORD} underexpose_train_click-3  \r\n\r\n    a underexpose_test_click-3\n"
UNPACKED = {
    "underexpose_user_feat.csv": FEATURES,
    "underexpose_train_click-0.csv": CLICKS[:22],
    "underexpose_train_click-3.csv": CLICKS,
    "underexpose_test_click-3.csv": CLICKS[:44],
    "underexpose_test_qtime-3.csv": QUERIES,
}


@pytest.fixture
def folder(write: Write) -> Path:
    """Return a folder with the organisers' two zips."""
    write("clicks/underexpose_test.zip", zip_of(TEST))
    return write("clicks/underexpose_train.zip", zip_of(TRAIN)).parent


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each file in a folder, also of hidden ones."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_all_files_are_unpacked_beside_the_zips(folder: Path, write: Write) -> None:
    before = contents(folder)
    command = [SCRIPT, folder, "--passwords", write("passwords.txt", PASSWORDS)]
    assert succeeds(command) == f"written: 5 files to {folder}\n"
    assert contents(folder) == {**before, **UNPACKED}
    # A second run unpacks nothing, since the files exist already.
    assert succeeds(command) == f"written: 0 files to {folder}\n"


def test_a_zip_with_a_password_need_not_be_inside_another(write: Write) -> None:
    """A zip with a password may lie in the folder itself, not only inside another zip.

    Here the same zip lies in the folder and also in underexpose_train.zip. Since the file in both
    copies has the same content, the script accepts it.
    """
    inner = TRAIN["underexpose_train/underexpose_train_click-3.zip"]
    folder = write("clicks/underexpose_train_click-3.zip", inner).parent
    write("clicks/underexpose_train.zip", zip_of(TRAIN))
    succeeds([SCRIPT, folder, "--passwords", write("passwords.txt", PASSWORDS)])
    assert (folder / "underexpose_train_click-3.csv").read_bytes() == CLICKS


def test_a_zip_may_itself_be_encrypted_in_another(write: Write) -> None:
    """An outer zip holds an encrypted zip, which holds a file that is not encrypted.

    The password is published under the name of the inner zip, not of the outer zip.
    """
    outer = zip_with_password({"underexpose_train_click-3.zip": zip_of(TRAIN_CLICKS)}, PASSWORD)
    folder = write("clicks/underexpose_train.zip", outer).parent
    succeeds([SCRIPT, folder, "--passwords", write("passwords.txt", PASSWORDS)])
    assert (folder / "underexpose_train_click-3.csv").read_bytes() == CLICKS


def wrong_password_that_looks_right() -> str:
    """Return a wrong password that passes the check of the first twelve bytes."""
    content = TRAIN["underexpose_train/underexpose_train_click-3.zip"]
    (name,) = TRAIN_CLICKS
    # The first twelve bytes follow the header, which has 30 bytes, and the name.
    start = content[30 + len(name) :][:12]
    right = zlib.crc32(CLICKS) >> 24
    candidates = (f"wrong{number}" for number in count())
    return next(word for word in candidates if Cipher(word).decrypt(start)[-1] == right)


@pytest.mark.parametrize("password", ["wrong", wrong_password_that_looks_right()])
def test_a_wrong_password_is_named_and_nothing_is_left(
    password: str, folder: Path, write: Write
) -> None:
    before = contents(folder)
    path = write("passwords.txt", PASSWORDS.replace(PASSWORD, password))
    line = fails([SCRIPT, folder, "--passwords", path])
    assert line == (
        f"{path}: the password of underexpose_train_click-3 does not open underexpose_train.zip/"
        "underexpose_train_click-3.zip/underexpose_train_click-3.csv, expected the published one"
    )
    assert contents(folder) == before


def test_a_missing_password_is_named_and_nothing_is_left(folder: Path, write: Write) -> None:
    before = contents(folder)
    path = write("passwords.txt", PASSWORDS.replace("click-3\n", "click-4\n"))
    line = fails([SCRIPT, folder, "--passwords", path])
    assert line == (
        f"{path}: holds no password for underexpose_test.zip/underexpose_test_click-3.zip/"
        "underexpose_test_click-3.csv, expected a line with a password and underexpose_test_click-3"
    )
    assert contents(folder) == before


def test_a_file_that_is_there_must_be_the_one_in_the_zip(folder: Path, write: Write) -> None:
    path = write("clicks/underexpose_train_click-3.csv", "1,2,0.5\n")
    before = contents(folder)
    line = fails([SCRIPT, folder, "--passwords", write("passwords.txt", PASSWORDS)])
    assert line.startswith(
        f"{path}: is not the file in underexpose_train.zip/underexpose_train_click-3.zip/"
    )
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (
            zip_of({**TRAIN, "underexpose_train_click-4.zip": b"PK"}),
            "underexpose_train_click-4.zip",
        ),
        (zip_of(TRAIN)[:60], "underexpose_train.zip"),
        (zip_of(TRAIN).replace(FEATURES, FEATURES[::-1]), "underexpose_train.zip"),
    ],
    ids=["inside", "cut off", "other content"],
)
def test_a_damaged_zip_is_named_and_nothing_is_left(
    content: bytes, name: str, folder: Path, write: Write
) -> None:
    write("clicks/underexpose_train.zip", content)
    before = contents(folder)
    line = fails([SCRIPT, folder, "--passwords", write("passwords.txt", PASSWORDS)])
    assert f"{name}: is " in line
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", "row 1 is 'a b c', expected a password and a name"),
        ("\na b\nc b\n", "row 3 repeats the name 'b', expected it once"),
    ],
)
def test_a_malformed_file_of_passwords_is_refused(
    text: str, message: str, folder: Path, write: Write
) -> None:
    path = write("passwords.txt", text)
    assert fails([SCRIPT, folder, "--passwords", path]) == f"{path}: {message}"


def test_a_folder_without_zips_is_refused(write: Write) -> None:
    path = write("empty/passwords.txt", PASSWORDS)
    line = fails([SCRIPT, path.parent, "--passwords", path])
    assert line == f"{path.parent}: holds no zip, expected underexpose_train.zip or another"
