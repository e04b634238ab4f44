"""Bundles are read and zips unpacked; a fault is named in one line, and nothing is unpacked."""

import shutil
import zipfile
from pathlib import Path

from common import zips
from common.errors import InputError

import pytest
from bundle import read_bundle
from toy_bundle import write_folder, write_zip

YAML = "competition.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the toy bundle, a small stand-in for a real bundle."""
    return write_folder(tmp_path / "own")


def zip_folder(folder: Path) -> Path:
    """Write a zip of the contents of a folder; return its path."""
    return Path(shutil.make_archive(str(folder.with_name("bundle")), "zip", folder))


def read_fault(bundle: Path) -> str:
    """Return the message that refuses a bundle, without the bundle's path at its start."""
    with pytest.raises(InputError) as raised:
        read_bundle(bundle, bundle.with_name("unpacked"))
    message = str(raised.value)
    assert message.startswith(str(bundle))
    assert "\n" not in message
    return message.removeprefix(str(bundle))


def test_a_zip_of_a_folder_is_a_bundle(folder: Path, tmp_path: Path) -> None:
    bundle = read_bundle(zip_folder(folder), tmp_path / "here")
    assert bundle.title == "Toy challenge"
    assert bundle.folder == tmp_path / "here"


def test_a_zip_with_a_changed_byte_is_refused(folder: Path) -> None:
    path = zip_folder(folder)
    content = bytearray(path.read_bytes())
    # In a zip, the content of a file follows its name. Change byte 13 of the content of the page.
    name = b"pages/overview.md"
    content[content.index(name) + len(name) + 13] ^= 1
    path.write_bytes(content)
    assert "is a damaged zip file" in read_fault(path)


def test_a_zip_with_the_bundle_in_a_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "more/bundle")
    fault = read_fault(zip_folder(tmp_path / "more"))
    assert f"holds no {YAML} at the top level, it lies in bundle/{YAML}" in fault


def test_a_zip_whose_members_exclude_each_other_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "bundle.zip", {"good": "x", "good/a": "y"})
    assert "good/a cannot be unpacked" in read_fault(path)


def test_a_folder_without_one_of_its_pages_is_refused(folder: Path) -> None:
    (folder / "pages/terms.md").unlink()
    assert read_fault(folder) == f"/{YAML}: file pages/terms.md is not in the bundle"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: [a\n", "expected what hosting/make_bundle.py writes (ParserError: "),
        ("a: !!python/object/apply:os.getcwd []", "(ConstructorError: "),
        ("title: x", "(KeyError: 'tasks')"),
        ("start: 2026-02-30", "(ValueError: day is out of range"),
    ],
)
def test_a_faulty_description_is_refused(folder: Path, text: str, expected: str) -> None:
    (folder / YAML).write_text(text)
    assert expected in read_fault(folder)


@pytest.mark.parametrize("name", ["/a", "b/../../a", "..\\a", "C:/a"])
def test_no_member_of_a_zip_is_written_outside_the_folder(name: str, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"good": "x", name: "y"})
    with pytest.raises(InputError, match="which leads out of its folder"):
        zips.unpack(path, tmp_path / "out", 100)
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "out").exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    zeros = {"zeros": "\0" * 1_000_001}
    path = write_zip(tmp_path / "bomb.zip", zeros, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"unpacks to 1,000,001 bytes, expected at most 1,000,000"):
        zips.unpack(path, tmp_path / "out", 1_000_000)
    assert not (tmp_path / "out").exists()
