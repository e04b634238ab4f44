"""The quickstart builds the submission templates that are missing or outdated."""

from pathlib import Path

from common import layout
from tools.quickstart.prepare_data import needs_templates

import pytest

# Each template, with one of the files that it is made from, in the folder data/.
SOURCE_OF_TEMPLATE = {
    layout.TEMPLATE_TASK_1_2: "test_data/test_public_answers_task_1.csv",
    layout.TEMPLATE_TASK_3: "metadata/question_metadata_task_3_4.csv",
}


@pytest.fixture
def kit(tiny_kit: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the kit with current templates, to which the kit's paths lead."""
    monkeypatch.setattr(layout, "DATA_DIR", tiny_kit / "data")
    monkeypatch.setattr(layout, "TEMPLATE_DIR", tiny_kit / "submission_templates")
    return tiny_kit


@pytest.mark.usefixtures("kit")
def test_current_templates_are_not_built_again() -> None:
    assert not needs_templates()


@pytest.mark.parametrize("template", SOURCE_OF_TEMPLATE)
def test_a_missing_template_is_built(kit: Path, template: str) -> None:
    (kit / "submission_templates" / template).unlink()
    assert needs_templates()


@pytest.mark.parametrize("source", SOURCE_OF_TEMPLATE.values())
def test_a_template_is_built_again_if_its_source_has_changed(kit: Path, source: str) -> None:
    path = kit / "data" / source
    path.write_text(path.read_text() + "\n")
    assert needs_templates()


def test_a_template_that_cannot_be_built_is_not_missed(kit: Path) -> None:
    for template, source in SOURCE_OF_TEMPLATE.items():
        (kit / "submission_templates" / template).unlink()
        (kit / "data" / source).unlink()
    assert not needs_templates()
