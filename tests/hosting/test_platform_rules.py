"""Which bundles the platform takes: one that is all right, and one fault for every rule."""

import shutil
import zipfile
from datetime import date, datetime
from pathlib import Path

from common import zips
from common.errors import InputError

import pytest
from platform_rules import program_command, read_bundle
from toy_bundle import GONE, change, content, write_folder, write_zip, zip_folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle that is all right: only read from it."""
    return write_folder(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def reworded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of which a test may write competition.yaml anew, with `change`."""
    return write_folder(tmp_path_factory.mktemp("reworded"))


def fault_of(path: Path, unpacked: Path) -> str:
    """Return why a bundle is refused."""
    with pytest.raises(InputError) as raised:
        read_bundle(path, unpacked)
    text = str(raised.value)
    assert text.startswith(str(path)) and "\n" not in text
    return text.removeprefix(str(path))


# Where competition.yaml has which fault, and what is said of it.
COLUMN = "leaderboards.0.columns.1"
FAULTS: list[tuple[str, object, str]] = [
    ("version", GONE, "version is missing, and the platform then reads the format of version 1"),
    ("version", "1.5", "version is '1.5', expected 2"),
    ("title", GONE, "title is missing, expected text"),
    ("title", "x" * 257, "title has 257 characters"),
    ("pages", GONE, "pages is missing, expected a list"),
    ("pages.0", "a.md", "pages, entry 1: is 'a.md', expected keys with values"),
    ("pages.0.file", "a.md", "pages, entry 1 ('Overview'): file: file 'a.md' is not in the bundle"),
    ("pages.0.file", "../../etc/passwd", "file is '../../etc/passwd', which leads out of the"),
    ("image", "a.png", "image: file 'a.png' is not in the bundle"),
    ("image", "pages/terms.md", "is no PNG, JPEG or GIF"),
    ("tasks", [], "tasks is [], expected a list of at least one"),
    ("tasks.1.index", 0, "tasks, entry 2 ('Task 1, private'): index is 0, as of another task"),
    ("tasks.2.scoring_program", GONE, "scoring_program is missing, expected a folder or zip"),
    ("tasks.2.reference_data", "a", "reference_data: 'a' is not in the bundle"),
    ("phases.0.start", GONE, "start is missing, expected a time in quotes"),
    ("phases.0.start", "soon", "start is 'soon', expected a time in quotes"),
    ("phases.0.end", GONE, "before it, 'Public', has no end"),
    ("phases.1.start", "2026-11-01 09:00", "expected a time after 2026-11-01 09:00"),
    # What YAML takes for a date loses its hours.
    ("phases.1.start", datetime(2026, 11, 1, 9, 1), "start is 2026-11-01 00:00:00, expected a ti"),
    ("phases.0.execution_time_limit", -1, "execution_time_limit is -1"),
    ("phases.0.public_data", "data.zip", "public_data: 'data.zip' is not in the"),
    ("phases.1.tasks", GONE, "tasks is missing, expected at least one index of a task"),
    ("phases.1.tasks", [1, 17], "tasks names 17, expected indexes of tasks: 0"),
    ("leaderboards.0.submission_rule", "Best", "submission_rule is 'Best', expected one of Add"),
    ("leaderboards.0.primary_index", 9, "primary_index is 9, expected an index of a column: 0, 1"),
    (f"{COLUMN}.index", 0, "columns, entry 2 ('Standard error'): index is 0, as of"),
    (f"{COLUMN}.key", "score", "key is 'score', as of another column"),
    (f"{COLUMN}.sorting", "down", "sorting is 'down', expected one of desc, asc"),
]


@pytest.mark.parametrize(("place", "value", "expected"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_in_what_the_file_says_is_refused(
    place: str, value: object, expected: str, reworded: Path, tmp_path: Path
) -> None:
    change(reworded, {place: value})
    assert expected in fault_of(reworded, tmp_path / "none")


WARNINGS: list[tuple[str, object, str]] = [
    ("phases.1.start", datetime(2026, 10, 1, 9), "start is 2026-10-01 09:00:00 without quotes, "
     "which the platform reads as 2026-10-01 00:00"),
    ("phases.0.start", "2026-11-01T09:00+02:00", "drops the time zone"),
    ("phases.0.end", "2026-10-31", "end is 2026-10-31 00:00:00, not after its start"),
    ("phases.1.execution_time_limit", GONE, "execution_time_limit is not set, so that it is 6"),
    ("phases.0.execution_time_limit", 3600, "execution_time_limit is 3600, but the public"),
    ("docker_image", GONE, "docker_image is not set"),
    ("leaderboards.0.columns.0.precision", GONE, "precision is not set"),
    ("leaderboards.1", content()["leaderboards"][0], "leaderboards holds 2"),
    ("queue", "own", "queue is set"),
    ("tasks.6", {"index": 9, "key": "x"}, "key names a task on the server"),
    ("tasks.0.input_data", "12345678-1234-5678-1234-567812345678", "input_data names data on the"),
]  # fmt: skip


def test_what_is_read_otherwise_than_it_looks_is_a_warning(reworded: Path, tmp_path: Path) -> None:
    # Phases may come in any order, and days be without quotes.
    right = {"phases": content()["phases"][::-1], "phases.1.end": date(2026, 10, 20)}
    during = {"tasks.1.ingestion_only_during_scoring": True}
    change(reworded, {**right, **during, **{place: value for place, value, _ in WARNINGS}})
    bundle = read_bundle(reworded, tmp_path / "none")
    for _, _, expected in WARNINGS:
        assert sum(expected in warning for warning in bundle.warnings) == 1, expected
    assert len(bundle.warnings) == len(WARNINGS)
    times = [(phase.name, phase.start) for phase in bundle.phases]
    assert times == [("Public", datetime(2026, 10, 1)), ("Private", datetime(2026, 11, 1, 9))]
    # What only the server has is not played.
    assert [task.index for task in bundle.tasks.values() if task.played_by_server] == [0, 1, 9]


YAML = "competition.yaml"
COMMAND = "scoring_program/metadata.yaml"


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (YAML, b"version: 2\ntitle: [a\n", "line 3: is not YAML: expected ',' or ']'"),
        (YAML, b"title: \xff", "is not UTF-8 text"),
        (YAML, b"start: 2026-02-30", "is not YAML: day is out of range"),
        (YAML, b"a: " + b"[" * 5_000, "is not YAML: "),
        (YAML, b"a: !!python/object/apply:os.getcwd []", "is not YAML: "),
        (YAML, b"- version: 2", "holds [{'version': 2}], expected keys with values"),
        ("pages/overview.md", b"", "file: file 'pages/overview.md' is empty, expected a page"),
        ("pages/overview.md", b"\xff", "file 'pages/overview.md' is not UTF-8 text"),
        (COMMAND, b"command: [x]", "has no metadata.yaml with a command"),
        ("ingestion_program.zip", b"PK", "ingestion_program: 'ingestion_program.zip' is no zip"),
    ],
)
def test_a_fault_in_a_file_is_refused(
    whole: Path, tmp_path: Path, name: str, data: bytes, expected: str
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "bundle"))
    (folder / name).write_bytes(data)
    assert expected in fault_of(folder, tmp_path)


# ---- Zips ----------------------------------------------------------------------------------------


def test_a_bundle_is_a_zip_of_what_the_folder_holds(whole: Path, tmp_path: Path) -> None:
    path = zip_folder(whole, tmp_path / "bundle.zip")
    bundle = read_bundle(path, tmp_path / "here")
    assert (bundle.title, bundle.folder) == ("Toy challenge", tmp_path / "here")
    path.write_bytes(path.read_bytes().replace(b"# Overview", b"??Overview"))
    assert "is a damaged zip file" in fault_of(path, tmp_path / "a")
    shutil.copytree(whole, tmp_path / "more/bundle")
    fault = fault_of(zip_folder(tmp_path / "more", path), tmp_path / "b")
    assert "holds no competition.yaml at the top level, it lies in bundle/competition.yaml" in fault


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        *(
            ([name], "which leads out of its folder")
            for name in ("/a", "b/../../a", "..\\a", "C:/a")
        ),
        *((names, "cannot be unpacked") for names in (["a", "a/b"], ["x" * 300])),
    ],
)
def test_no_member_leads_out_of_the_folder_or_has_a_name_that_cannot_be_written(
    members: list[str], fault: str, tmp_path: Path
) -> None:
    path = write_zip(tmp_path / "a.zip", {"good": "x", **dict.fromkeys(members, "y")})
    with pytest.raises(InputError, match=fault):
        zips.unpack(path, tmp_path / "out", 100)
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "out").exists() == (fault == "cannot be unpacked")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1_000_001))
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


def test_the_command_of_a_program_is_that_of_the_first_file(tmp_path: Path) -> None:
    for members, command in (
        ({"metadata.yaml": "command: a b", "metadata": "command: c"}, "a b"),
        ({"metadata": "command: c", "deeper/metadata.yaml": "command: d"}, "c"),
        ({"metadata.yaml": "a: b", "metadata": "command: c"}, ""),
    ):
        assert program_command(write_zip(tmp_path / "a.zip", members)) == command
