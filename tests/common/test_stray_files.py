"""Files that systems and editors leave are left out, in folders as in zips."""

from pathlib import Path

from common import fingerprints, provenance, simulated, writing
from common.adaptive import entry_files, weights
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError
from common.reading import read_table
from common.schema import QUESTION_ID
from common.stray_files import is_stray, is_stray_path, list_paths
from common.zips import open_zip, unpack, zip_source
from related_challenges.student_response import responses

import pytest
from conftest import Write
from platforms import on_unix
from question_files import question_file
from toy_bundle import write_zip

STRAY = [
    "._train.csv",
    ".DS_Store",
    ".~lock.train.csv#",
    ".train.csv.swp",
    ".ipynb_checkpoints",
    "__MACOSX",
    "Icon\r",
    "Thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
    "Desktop.ini",
    "$RECYCLE.BIN",
    "train.csv:Zone.Identifier",
    "train.csvZone.Identifier",
    "@eaDir",
    "__pycache__",
    "train.csv~",
    "~$train.csv",
    "#train.csv#",
    "train.csv.bak",
    "train.csv.orig",
    "train.csv.partial",
]
# Names of files that people make. The last two names mean the folder itself and its parent.
NOT_STRAY = [
    "train.csv",
    "model_task_4_a.npy",
    "__init__.py",
    "thumbs.py",
    "bak",
    "a.b.csv",
    ".",
    "..",
]


def test_names_of_stray_files_are_known() -> None:
    assert [name for name in STRAY if not is_stray(name)] == []
    assert [name for name in NOT_STRAY if is_stray(name)] == []


def test_a_path_is_stray_if_one_of_its_folders_is() -> None:
    assert is_stray_path("__MACOSX/train.csv")
    assert is_stray_path("a/.git/b")
    assert not is_stray_path("a/b/train.csv")


# Windows refuses file names that hold a colon or a line end, as some names in STRAY do.
UNIX_NAMES = on_unix("file names with colons and line ends")


@pytest.fixture
def littered(tmp_path: Path) -> Path:
    """Return a folder that holds the file wanted.csv, stray files, and the folder "inside".

    The stray files, such as Thumbs.db, lie beside wanted.csv. The folder "inside" holds a folder
    with the name of each stray file, and each of these folders holds a file.
    """
    folder = tmp_path / "littered"
    (folder / "inside").mkdir(parents=True)
    (folder / "wanted.csv").write_text("QuestionId\n7\n")
    for name in STRAY:
        (folder / name).write_text("stray")
        (folder / "inside" / name).mkdir()
        (folder / "inside" / name / "file.csv").write_text("stray")
    return folder


@UNIX_NAMES
def test_a_folder_and_its_zip_list_the_same_files(littered: Path, tmp_path: Path) -> None:
    """The folder holds wanted.csv, stray files, and a folder "inside" with nothing but stray files.

    `list_paths` lists files and folders, so it lists wanted.csv and "inside". The zip lists only
    files, so it lists wanted.csv alone.
    """
    paths = [path for path in littered.rglob("*") if path.is_file()]
    members = {path.relative_to(littered).as_posix(): path.read_bytes() for path in paths}
    archive = write_zip(tmp_path / "a.zip", members)

    assert list(list_paths(littered)) == [littered / "inside", littered / "wanted.csv"]
    assert list(list_paths(littered, "*.csv")) == [littered / "wanted.csv"]

    # The zip is listed, unpacked, and read without unpacking it.
    with open_zip(archive) as opened:
        assert opened.namelist() == ["wanted.csv"]
    unpack(archive, tmp_path / "unpacked", max_size=1000)
    assert [path.name for path in (tmp_path / "unpacked").rglob("*")] == ["wanted.csv"]
    source = zip_source(archive, "wanted.csv", max_size=1000)
    assert read_table(source, [QUESTION_ID])["QuestionId"].tolist() == [7]


@UNIX_NAMES
def test_a_folder_is_the_same_with_and_without_stray_files(littered: Path, tmp_path: Path) -> None:
    """Opening a folder of answers in the Finder must not make its scores look outdated."""
    clean = tmp_path / "clean"
    clean.mkdir()
    (clean / "wanted.csv").write_bytes((littered / "wanted.csv").read_bytes())
    assert fingerprints.digest(littered) == fingerprints.digest(clean)
    record = provenance.record_path(clean / "wanted.csv")
    writing.write_files({clean / "wanted.csv": "QuestionId\n8\n"}, record=record)
    assert fingerprints.digest(littered) != fingerprints.digest(clean)


@UNIX_NAMES
def test_simulated_data_may_replace_data_beside_stray_files(littered: Path) -> None:
    (littered / "wanted.csv").rename(littered / "wanted.csv~")

    def write(folder: Path) -> dict[str, object]:
        (folder / "inside").mkdir(parents=True)
        (folder / "inside/new.csv").write_text("QuestionId\n8\n")
        return {}

    simulated.place_simulated(littered, ["inside"], write)
    assert list(list_paths(littered, "inside/*")) == [littered / "inside/new.csv"]


@UNIX_NAMES
def test_questions_are_read_beside_stray_files(write: Write, tmp_path: Path) -> None:
    write("in/q.xml", question_file("a", {"a.1": "correct"}))
    for name in ("._q.xml", ".q.xml", "~$q.xml", "q.xml:Zone.Identifier", "q.xml~", "Thumbs.db"):
        write(f"in/{name}", b"\0\5\x16\7\0\2\0\0Mac OS X")
    answers = responses.read_responses(tmp_path / "in", labels="required")
    assert answers["id"].tolist() == ["a.1"]


# ---- Entries -------------------------------------------------------------------------------------

ENTRY = {
    ENTRY_FILE: b"import inside.helper",
    "inside/helper.py": b"x = 1",
    "inside/model_task_4_a.npy": b"weights",
    "model_task_4_b/deep/0.pt": b"weights",
}


def write_all(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder; a backslash in a name stays in the name."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def describe(submission: Path, tmp_path: Path) -> dict[str, object]:
    """Return everything that the kit reads from an entry, so that two entries can be compared.

    `submission` is the folder or the zip of the entry.
    """
    unpacked = tmp_path / f"unpacked {submission.name}"
    entry_files.unpack(submission, unpacked)
    contents = {
        path.relative_to(unpacked).as_posix(): path.read_bytes()
        for path in unpacked.rglob("*")
        if path.is_file()
    }
    return {
        "contents": contents,
        "weights": entry_files.list_weights(submission),
        "misnamed": entry_files.list_misnamed(submission),
        "code": entry_files.fingerprint_code(submission),
        # The function reads only files of the given sizes in bytes. Each of the two files of
        # weights has 7 bytes.
        "data": entry_files.fingerprint_data(submission, [7]),
        "helper": entry_files.read_entry_file(submission, "inside/helper.py"),
    }


# The entry with stray files: some lie beside its own files, and some in folders whose names are
# those of stray files.
LITTERED_ENTRY = {
    **ENTRY,
    **dict.fromkeys(STRAY, b"stray"),
    **{f"model_task_4_b/{name}/deep": b"stray" for name in STRAY},
    "inside/model.pkl.bak": b"stray",
}
# The entry as Windows may write it into a zip: with backslashes between folders and file names.
ENTRY_OF_WINDOWS = {name.replace("/", "\\"): content for name, content in ENTRY.items()}
in_two_forms = pytest.mark.parametrize(
    "files", [LITTERED_ENTRY, ENTRY_OF_WINDOWS], ids=["stray files", "backslashes"]
)


@UNIX_NAMES
@in_two_forms
def test_an_entry_in_a_folder_is_the_same_on_all_systems(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    expected = describe(write_all(tmp_path / "plain", ENTRY), tmp_path)
    assert expected["contents"] == ENTRY
    folder = write_all(tmp_path / "folder", {"inside\\": b"", **files})
    assert describe(folder, tmp_path) == expected
    for name in entry_files.list_left_out(folder, entry_files.collect(folder)):
        assert "helper" not in name
        assert "model_task_4_a.npy" not in name


@UNIX_NAMES
@in_two_forms
def test_an_entry_in_a_zip_is_the_same_on_all_systems(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    expected = describe(write_all(tmp_path / "plain", ENTRY), tmp_path)
    archive = write_zip(tmp_path / "entry.zip", {"inside\\": b"", "./": b"", **files})
    assert describe(archive, tmp_path) == expected


@UNIX_NAMES
def test_a_copy_of_a_package_has_no_stray_files(tmp_path: Path) -> None:
    package = write_all(tmp_path / "package", ENTRY | dict.fromkeys(STRAY, b"stray"))
    weights.copy_package(package, tmp_path / "copy")
    copied = [path.name for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert sorted(copied) == ["helper.py", ENTRY_FILE]


def test_two_names_of_one_file_are_refused(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"a/b.csv": b"1", "a\\b.csv": b"2"})
    with pytest.raises(InputError, match=r"holds a/b\.csv and a\\b\.csv, which name the same"):
        unpack(archive, tmp_path / "unpacked", max_size=1000)


def test_a_submission_in_a_folder_is_named_with_slashes(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"x\\a.csv": b"QuestionId\n7\n"})
    with pytest.raises(InputError, match=r"holds a folder \(x/a\.csv\), expected only a\.csv"):
        zip_source(archive, "a.csv", max_size=1000)
