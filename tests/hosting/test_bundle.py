"""What is read of a bundle, and zips that do not unpack: each fault is named in one line."""

import shutil
import zipfile
from pathlib import Path

from common import zips
from common.errors import InputError

import pytest
from bundle import read_bundle
from toy_bundle import write_folder, write_zip

YAML = "competition.yaml"


def fault_of(path: Path, folder: Path) -> str:
    """Return why a bundle is refused."""
    with pytest.raises(InputError) as raised:
        read_bundle(path, folder)
    text = str(raised.value)
    assert text.startswith(str(path)) and "\n" not in text
    return text.removeprefix(str(path))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"title: [a\n", "expected what hosting/make_bundle.py writes (ParserError: "),
        (b"start: 2026-02-30", "(ValueError: day is out of range"),
        (b"a: " + b"[" * 5_000, "(RecursionError: "),
        (b"a: !!python/object/apply:os.getcwd []", "(ConstructorError: "),
        (b"- version: 2", "(TypeError: "),
        (b"title: x", "(KeyError: 'tasks')"),
    ],
)
def test_what_the_kit_did_not_write_is_refused(data: bytes, expected: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own")
    (folder / YAML).write_bytes(data)
    assert expected in fault_of(folder, tmp_path / "read")


def test_a_bundle_is_a_zip_of_what_the_folder_holds(tmp_path: Path) -> None:
    whole = write_folder(tmp_path / "whole")
    path = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", whole))
    bundle = read_bundle(path, tmp_path / "here")
    assert (bundle.title, bundle.folder) == ("Toy challenge", tmp_path / "here")
    content = bytearray(path.read_bytes())
    content[content.index(b"pages/overview.md") + 30] ^= 1
    path.write_bytes(content)
    assert "is a damaged zip file" in fault_of(path, tmp_path / "a")
    shutil.copytree(whole, tmp_path / "more/bundle")
    path = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", tmp_path / "more"))
    fault = fault_of(path, tmp_path / "b")
    assert f"holds no {YAML} at the top level, it lies in bundle/{YAML}" in fault
    without = write_folder(tmp_path / "without", terms="a.md")
    assert fault_of(without, tmp_path / "c") == f"/{YAML}: file a.md is not in the bundle"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *((name, "which leads out of its folder") for name in ("/a", "b/../../a", "..\\a", "C:/a")),
        *((name, "cannot be unpacked") for name in ("good/a", "x" * 300)),
    ],
)
def test_no_member_leads_out_of_the_folder_or_has_a_name_that_cannot_be_written(
    name: str, fault: str, tmp_path: Path
) -> None:
    path = write_zip(tmp_path / "a.zip", {"good": "x", name: "y"})
    with pytest.raises(InputError, match=fault):
        zips.unpack(path, tmp_path / "out", 100)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "out").exists() == (fault == "cannot be unpacked")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    zeros = {"zeros": "\0" * 1_000_001}
    path = write_zip(tmp_path / "bomb.zip", zeros, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"unpacks to 1,000,001 bytes, expected at most 1,000,000"):
        zips.unpack(path, tmp_path / "out", 1_000_000)
    assert not (tmp_path / "out").exists()
    # One that states less than it holds.
    data = bytearray(path.read_bytes())
    for start in (22, data.rindex(b"PK\x01\x02") + 24):
        data[start : start + 4] = (100).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="is a damaged zip file"):
        zips.unpack(path, tmp_path / "out", 1_000_000)
    assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) <= 100
