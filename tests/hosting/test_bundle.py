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


def test_a_bundle_is_a_zip_of_what_the_folder_holds(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own")
    path = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", folder))
    bundle = read_bundle(path, tmp_path / "here")
    assert (bundle.title, bundle.folder) == ("Toy challenge", tmp_path / "here")
    content = bytearray(path.read_bytes())
    content[content.index(b"pages/overview.md") + 30] ^= 1
    path.write_bytes(content)
    assert "is a damaged zip file" in fault_of(path, tmp_path / "a")
    shutil.copytree(folder, tmp_path / "more/bundle")
    path = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", tmp_path / "more"))
    fault = fault_of(path, tmp_path / "b")
    assert f"holds no {YAML} at the top level, it lies in bundle/{YAML}" in fault
    path = write_zip(tmp_path / "bundle.zip", {"good": "x", "good/a": "y"})
    assert "good/a cannot be unpacked" in fault_of(path, tmp_path / "d")
    (folder / "pages/terms.md").unlink()
    assert fault_of(folder, tmp_path / "c") == f"/{YAML}: file pages/terms.md is not in the bundle"
    for text, expected in (
        ("title: [a\n", "expected what hosting/make_bundle.py writes (ParserError: "),
        ("a: !!python/object/apply:os.getcwd []", "(ConstructorError: "),
        ("title: x", "(KeyError: 'tasks')"),
        ("start: 2026-02-30", "(ValueError: day is out of range"),
    ):
        (folder / YAML).write_text(text)
        assert expected in fault_of(folder, tmp_path / "c")


@pytest.mark.parametrize("name", ["/a", "b/../../a", "..\\a", "C:/a"])
def test_no_member_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"good": "x", name: "y"})
    with pytest.raises(InputError, match="which leads out of its folder"):
        zips.unpack(path, tmp_path / "out", 100)
    assert not (tmp_path / "a").exists() and not (tmp_path / "out").exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    zeros = {"zeros": "\0" * 1_000_001}
    path = write_zip(tmp_path / "bomb.zip", zeros, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"unpacks to 1,000,001 bytes, expected at most 1,000,000"):
        zips.unpack(path, tmp_path / "out", 1_000_000)
    assert not (tmp_path / "out").exists()
