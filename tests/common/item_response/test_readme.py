"""The README's example runs, and prints what its comments say."""

from common.item_response import ItemResponse

import numpy as np
import pytest
from conftest import ROOT, blocks

README = ROOT / "common" / "item_response" / "README.md"


def test_the_example_in_the_readme_prints_what_its_comments_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example prints the correlation of fitted and true difficulties, and two predictions.

    A prediction has the probabilities of a wrong and of a right answer.
    """
    (example,) = blocks(README, "python")
    names: dict[str, object] = {}

    exec(example, names)

    correlation, *probabilities = capsys.readouterr().out.splitlines()
    assert float(correlation) > 0.95
    assert len(probabilities) == 2
    model = names["model"]
    assert isinstance(model, ItemResponse)
    p = model.predict_proba([3, 3], [0, 1])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert "\n".join(probabilities) == str(p)


def test_the_attributes_that_the_table_names_are_there() -> None:
    table = README.read_text(encoding="utf-8").split("| fitted attribute |")[1].split("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    names = [name.strip(" `") for cell in first_cells for name in cell.split(",")]
    assert "difficulty_" in names
    model = ItemResponse(n_steps=1).fit([1, 1, 2], [5, 6, 5], [1, 0, 1])
    assert [name for name in names if not hasattr(model, name)] == []
