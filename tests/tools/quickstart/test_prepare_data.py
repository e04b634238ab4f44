"""The quickstart builds the submission templates that are missing or outdated."""

import shutil
from pathlib import Path

from common import layout
from tools.quickstart.prepare_data import needs_templates

import pytest

TEMPLATES = [layout.TEMPLATE_TASK_1_2, layout.TEMPLATE_TASK_3]


@pytest.fixture
def templates(simulated_kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the kit have simulated data, and return a folder with their current templates."""
    folder = Path(shutil.copytree(simulated_kit / "submission_templates", tmp_path / "templates"))
    monkeypatch.setattr(layout, "DATA_DIR", simulated_kit / "data")
    monkeypatch.setattr(layout, "TEMPLATE_DIR", folder)
    return folder


def test_current_templates_are_not_built_again(templates: Path) -> None:
    assert not needs_templates()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_missing_or_outdated_template_is_built_again(templates: Path, name: str) -> None:
    template = templates / name
    # The record beside the template says that other rows belong to the present data.
    template.write_text(template.read_text() + "\n")
    assert needs_templates()

    template.unlink()
    assert needs_templates()


def test_a_template_that_cannot_be_built_is_not_missed(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the files that the templates are made from, nothing can be built."""
    monkeypatch.setattr(layout, "DATA_DIR", tmp_path / "empty")
    for name in TEMPLATES:
        (templates / name).unlink()
    assert not needs_templates()
