"""Which bundles the platform takes: one that is all right, and one fault for every rule."""

import shutil
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import toy_bundle
import unpacking
from platform_rules import program_command, read_bundle

from common.errors import InputError

Change = toy_bundle.Change


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle that is all right: only read from it."""
    return toy_bundle.write_folder(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """Return a bundle that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def fault_of(path: Path, tmp_path: Path, *changes: Change) -> str:
    """Return why a bundle, with changes in what it says, is refused."""
    if changes:
        toy_bundle.change(path, *changes)
    with pytest.raises(InputError) as raised:
        read_bundle(path, tmp_path / "unpacked")
    text = str(raised.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text.removeprefix(str(path))


def test_a_bundle_says_what_it_says_as_zip_and_as_folder(whole: Path, tmp_path: Path) -> None:
    path = toy_bundle.zip_folder(whole, tmp_path / "bundle.zip")
    for bundle in (read_bundle(whole, tmp_path / "none"), read_bundle(path, tmp_path / "here")):
        assert bundle.warnings == []
        assert (bundle.title, bundle.image) == ("Toy challenge", "codalab/codalab-legacy:py312")
        assert bundle.shows_details
        assert [phase.name for phase in bundle.phases] == ["Public", "Private"]
        assert bundle.phases[0].start == datetime(2026, 10, 1, 9)
        assert bundle.phases[1].end is None
        assert bundle.phases[1].tasks == (1, 3, 5)
        assert bundle.phases[0].time_limit == 600
        assert bundle.tasks[5].name == "Task 4, private"
        assert bundle.tasks[5].ingestion_program == bundle.folder / "ingestion_program.zip"
        assert bundle.tasks[0].ingestion_program is None
        assert not any(task.played_by_server for task in bundle.tasks.values())
        assert [column.key for column in bundle.columns][:2] == ["score", "standard_error"]
        assert bundle.primary is bundle.columns[0]
        assert not bundle.columns[1].descending
    assert bundle.folder == tmp_path / "here"
    assert not (tmp_path / "none").exists()


def phase(number: int, **values: Any) -> Change:
    return lambda content: content["phases"][number].update(values)


def task(number: int, **values: Any) -> Change:
    return lambda content: content["tasks"][number].update(values)


def board(**values: Any) -> Change:
    return lambda content: content["leaderboards"][0].update(values)


def column(number: int, **values: Any) -> Change:
    return lambda content: content["leaderboards"][0]["columns"][number].update(values)


def top(**values: Any) -> Change:
    return lambda content: content.update(values)


def drop(*path: Any) -> Change:
    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return change


# Keys that a bundle cannot do without.
NEEDED: list[tuple[str | int, ...]] = [
    ("version",), ("title",), ("pages",), ("terms",), ("image",), ("tasks",), ("phases",),
    ("leaderboards",), ("tasks", 0, "index"), ("tasks", 0, "name"), ("tasks", 2, "scoring_program"),
    ("phases", 0, "name"), ("phases", 0, "start"), ("phases", 1, "tasks"),
    ("leaderboards", 0, "title"), ("leaderboards", 0, "key"),
]  # fmt: skip


@pytest.mark.parametrize("path", NEEDED, ids=lambda path: "_".join(map(str, path)))
def test_what_is_missing_is_named(path: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    fault = fault_of(folder, tmp_path, drop(*path))
    assert f"{path[-1]} is missing, " in fault
    if len(path) == 3:
        assert f"/competition.yaml: {path[0]}, entry {int(path[1]) + 1}" in fault


def page(file: Any) -> Change:
    return top(pages=[{"title": "Data", "file": file}])


def solution(**values: Any) -> Change:
    return top(solutions=[{"index": 0, "path": "public.zip", "tasks": [0], **values}])


FAULTS: list[tuple[Change, str]] = [
    (top(version="1.5"), "version is '1.5', expected 2"),
    (top(title="x" * 257), "title has 257 characters"),
    (top(pages=["a.md"]), "pages, entry 1: is 'a.md', expected keys with values"),
    (page("data.md"), "pages, entry 1 ('Data'): file: file 'data.md' is not in the bundle"),
    (page("../../etc/passwd"), "file is '../../etc/passwd', which leads out of the bundle"),
    (page(7), "file is 7, expected text"),
    (page("pages"), "file 'pages' is not in the bundle"),
    (top(terms="terms.md"), "terms: file 'terms.md' is not in the bundle"),
    (top(image="a.png"), "image: file 'a.png' is not in the bundle"),
    (top(image="pages/terms.md"), "is no PNG, JPEG or GIF"),
    (top(tasks=[]), "tasks is [], expected a list of at least one"),
    (task(1, index=0), "tasks, entry 2 ('Task 1, private'): index is 0, as of another task"),
    (task(2, reference_data="a"), "reference_data: 'a' is not in the bundle"),
    (task(2, input_data=""), "input_data is '', expected text"),
    (task(2, input_data="/etc"), "which leads out of the bundle"),
    (task(2, input_data="logo.png"), "input_data: 'logo.png' is no zip"),
    (task(2, scoring_program="ref"), "'ref' has no metadata.yaml with a command"),
    (lambda content: content["tasks"].append({"index": 9, "key": None}), "key is missing"),
    (solution(tasks=[9]), "solutions, entry 1: tasks names 9"),
    (solution(path="a.zip"), "path: 'a.zip' is not in the bundle"),
    (solution(index=None), "index is missing"),
    (phase(1, tasks=[1, 17]), "tasks names 17, expected indexes of tasks: 0"),
    (phase(0, start="soon"), "start is 'soon', expected a time in quotes"),
    (phase(0, start=20261001), "start is 20261001, expected a time"),
    (drop("phases", 0, "end"), "before it, 'Public', has no end"),
    (
        phase(1, start="2026-10-31"),
        "2026-10-31 00:00:00, expected a time after 2026-11-01 09:00",
    ),
    (phase(1, start="2026-11-01 09:00"), "expected a time after 2026-11-01"),
    # What YAML takes for a date loses its hours.
    (phase(1, start=datetime(2026, 11, 1, 9, 1)), "start is 2026-11-01 00:00:00, expected a time"),
    (phase(0, auto_migrate_to_this_phase=True), "auto_migrate_to_this_phase is set"),
    (phase(0, max_submissions="5"), "max_submissions is '5', expected a whole"),
    (phase(0, execution_time_limit=10**30), "execution_time_limit is 1000"),
    (phase(0, execution_time_limit=-1), "execution_time_limit is -1"),
    (phase(0, public_data="data.zip"), "public_data: 'data.zip' is not in the"),
    (
        lambda content: content.update(leaderboard=content.pop("leaderboards")),
        "leaderboard is not a key that is read, expected leaderboards",
    ),
    (board(title="x" * 65), "title has 65 characters"),
    (board(submission_rule="Best"), "submission_rule is 'Best', expected one of Add"),
    (board(primary_index=9), "primary_index is 9, expected an index of a column: 0, 1"),
    (board(columns=[]), "columns is [], expected a list of at least one"),
    (column(1, index=0), "columns, entry 2 ('Standard error'): index is 0, as of"),
    (column(1, key="score"), "key is 'score', as of another column"),
    (column(1, key="x" * 37), "key has 37 characters"),
    (column(1, title="x" * 37), "title has 37 characters"),
    (column(1, sorting="down"), "sorting is 'down', expected one of desc, asc"),
    (column(1, precision=2.5), "precision is 2.5, expected a whole number"),
    (column(1, computation="avg"), "computation_indexes is missing"),
    (column(1, computation="mean", computation_indexes=["0"]), "expected one of avg, sum"),
    (column(1, computation_indexes=["0"]), "computation is missing"),
    (column(1, computation="avg", computation_indexes=["0", "1"]), "names '1'"),
    (column(1, computation="avg", computation_indexes=["9"]), "names '9'"),
    (column(1, computation="avg", computation_indexes=[0]), "is [0], expected"),
]


@pytest.mark.parametrize(("change", "expected"), FAULTS, ids=[text for _, text in FAULTS])
def test_a_fault_in_what_the_file_says_is_refused(
    change: Change, expected: str, folder: Path, tmp_path: Path
) -> None:
    assert expected in fault_of(folder, tmp_path, change)


def on_server(content: dict[str, Any]) -> None:
    content["tasks"].append({"index": 9, "key": "x"})


DATA_ON_SERVER = task(0, input_data="12345678-1234-5678-1234-567812345678")
WARNINGS: list[tuple[Change, str]] = [
    (
        phase(0, start=datetime(2026, 10, 1, 9)),
        "start is 2026-10-01 09:00:00 without quotes, which the platform reads as 2026-10-01 00:00",
    ),
    (phase(0, start="2026-10-01T09:00+02:00"), "drops the time zone"),
    (phase(1, end="2026-10-01"), "end is 2026-10-01 00:00:00, not after its start"),
    (drop("docker_image"), "docker_image is not set"),
    (drop("phases", 1, "execution_time_limit"), "execution_time_limit is not set, so that it is 6"),
    (drop("phases", 1, "max_submissions_per_day"), "max_submissions_per_day is not set, so that"),
    (phase(1, execution_time_limit=3600), "execution_time_limit is 3600, but the public"),
    (drop("leaderboards", 0, "columns", 0, "precision"), "precision is not set"),
    (top(queue="own"), "queue is set"),
    (
        lambda content: content["leaderboards"].extend(content["leaderboards"]),
        "leaderboards holds 2",
    ),
    (on_server, "key names a task on the server"),
    (DATA_ON_SERVER, "input_data names data on the server"),
]


@pytest.mark.parametrize(("change", "expected"), WARNINGS, ids=[text for _, text in WARNINGS])
def test_what_is_read_otherwise_than_it_looks_is_a_warning(
    change: Change, expected: str, folder: Path, tmp_path: Path
) -> None:
    toy_bundle.change(folder, change)
    (warning,) = read_bundle(folder, tmp_path / "none").warnings
    assert expected in warning


def test_what_only_the_server_has_is_not_played(folder: Path, tmp_path: Path) -> None:
    during = task(1, ingestion_only_during_scoring=True)
    toy_bundle.change(folder, on_server, DATA_ON_SERVER, during)
    tasks = read_bundle(folder, tmp_path / "none").tasks
    assert [index for index, task in tasks.items() if task.played_by_server] == [0, 1, 9]


def test_dates_without_quotes_and_phases_in_any_order(folder: Path, tmp_path: Path) -> None:
    first = phase(0, start=datetime(2026, 10, 1).date())
    toy_bundle.change(folder, first, lambda content: content["phases"].reverse())
    bundle = read_bundle(folder, tmp_path / "none")
    assert [phase.name for phase in bundle.phases] == ["Public", "Private"]
    assert bundle.phases[0].start == datetime(2026, 10, 1)
    assert bundle.warnings == []


YAML = "competition.yaml"
COMMAND = "scoring_program/metadata.yaml"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (YAML, b"version: 2\ntitle: [a\n", "line 3: is not YAML: expected ',' or ']'"),
        (YAML, b"title: \xff", "is not UTF-8 text"),
        (YAML, b"title: \x07", "is not YAML: "),
        (YAML, b"start: 2026-02-30", "is not YAML: day is out of range"),
        (YAML, b"a: " + b"[" * 10_000, "is not YAML: "),
        (YAML, b"a: !!python/object/apply:os.getcwd []", "is not YAML: "),
        (YAML, b"- version: 2", "holds [{'version': 2}], expected keys with values"),
        ("pages/overview.md", b"", "file: file 'pages/overview.md' is empty, expected a page"),
        ("pages/overview.md", b"\xff", "file 'pages/overview.md' is not UTF-8 text"),
        (COMMAND, b"run: x", "has no metadata.yaml with a command"),
        (COMMAND, b"command: [x]", "has no metadata.yaml with a command"),
        (COMMAND, b"{", "metadata.yaml: line 1: is not YAML"),
        ("ingestion_program.zip", b"PK", "ingestion_program: 'ingestion_program.zip' is no zip"),
    ],
)
def test_a_fault_in_a_file_is_refused(
    folder: Path, tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (folder / name).write_bytes(content)
    assert expected in fault_of(folder, tmp_path)


def test_a_zip_that_is_none_or_of_the_folder_itself_is_refused(
    whole: Path, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.zip"
    assert "file not found" in fault_of(path, tmp_path)
    path.write_bytes(b"PK\x03\x04 and no more")
    assert "is not a zip file, or is cut off" in fault_of(path, tmp_path)
    # Cut short in the middle.
    data = toy_bundle.zip_folder(whole, path).read_bytes()
    path.write_bytes(data.replace(b"# Overview", b"??Overview"))
    assert "is a damaged zip file" in fault_of(path, tmp_path)
    (tmp_path / "more").mkdir()
    folder.rename(tmp_path / "more/bundle")
    fault = fault_of(toy_bundle.zip_folder(tmp_path / "more", path), tmp_path / "elsewhere")
    assert "holds no competition.yaml at the top level, it lies in bundle/competition.yaml" in fault


@pytest.mark.parametrize("name", ["/a", "b/../../a", "..\\a", "C:/a"])
def test_no_member_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    path = toy_bundle.write_zip(tmp_path / "a.zip", {"good": "x", name: "y"})
    with pytest.raises(InputError, match="which leads out of its folder"):
        unpacking.unpack(path, tmp_path / "out", 100)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "a").exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1_000_001))
    with pytest.raises(InputError, match=r"unpacks to 1,000,001 bytes, expected at most 1,000,000"):
        unpacking.unpack(path, tmp_path / "out", 1_000_000)
    assert not (tmp_path / "out").exists()
    # One that states less than it holds.
    data = bytearray(path.read_bytes())
    for start in (22, data.rindex(b"PK\x01\x02") + 24):
        data[start : start + 4] = (100).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="is a damaged zip file"):
        unpacking.unpack(path, tmp_path / "out", 1_000_000)
    assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) <= 100


def test_names_that_cannot_be_written_and_odd_packing_are_refused(tmp_path: Path) -> None:
    for members in ({"a": "x", "a/b": "y"}, {"x" * 300: "y"}):
        path = toy_bundle.write_zip(tmp_path / "a.zip", members)
        with pytest.raises(InputError, match="cannot be unpacked"):
            unpacking.unpack(path, tmp_path / "out", 100)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a", "x")
    with pytest.raises(InputError, match="is packed by another method than deflate"):
        unpacking.unpack(path, tmp_path / "out", 100)


def test_the_command_of_a_program_is_that_of_the_first_file(tmp_path: Path) -> None:
    both = {"metadata.yaml": "command: a b", "metadata": "command: c"}
    assert program_command(toy_bundle.write_zip(tmp_path / "a.zip", both)) == "a b"
    old = {"metadata": "command: c", "deeper/metadata.yaml": "command: d"}
    assert program_command(toy_bundle.write_zip(tmp_path / "a.zip", old)) == "c"
    assert program_command(toy_bundle.write_zip(tmp_path / "a.zip", {"a": "b"})) == ""
    without = {"metadata.yaml": "a: b", "metadata": "command: c"}
    assert program_command(toy_bundle.write_zip(tmp_path / "a.zip", without)) == ""
