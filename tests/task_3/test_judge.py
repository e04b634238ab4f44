"""Be the expert: the page to judge pairs, panels of several experts, and what they tell."""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from common import provenance
from common.evaluation import expert_agreement
from common.origin import Origin

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from browser import Tab, needs_browser, open_browser
from conftest import Write, fails, succeeds
from page_reading import Page, read_page
from sklearn.metrics import cohen_kappa_score

JUDGE = "task_3/judge.py"
EVALUATION = "task_3/local_evaluation.py"
# The fixture `ask` is a function that returns pairs of questions which an expert is asked to
# compare.
Ask = Callable[..., np.ndarray]
# The number of pairs that the expert judges in the browser.
N_PAIRS = 20
# Chromium's number for the Alt key, if it is held down during another key press.
ALT = 1


@pytest.fixture(scope="module")
def rankings(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make two rankings of the simulated questions; return their folders, by the model's name."""
    folders = {}
    for model in ("entropy", "random"):
        folders[model] = tmp_path_factory.mktemp(model)
        command = [f"task_3/sample_model_{model}.py", "--output_dir", folders[model]]
        succeeds(command, kit=simulated_kit)
    return folders


def read_rank(folder: Path) -> pd.Series:
    """Return the ranks in the submission in a folder, with QuestionId as the index."""
    return pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId").ranking


def preferred_sides(rank: pd.Series, left: Any, right: Any) -> np.ndarray:
    """Return the side that a ranking prefers, for each pair of questions: 1 for left, 2 for right.

    Rank 1 is the best.
    """
    is_left_better = rank[left].to_numpy() < rank[right].to_numpy()
    return np.where(is_left_better, 1, 2)


def pairs_of(page: Path) -> np.ndarray:
    """Return the pairs of questions that a page asks an expert to compare, shape (pairs, 2)."""
    (found,) = re.findall(r'"pairs": (\[.*?\]\])', page.read_text(encoding="utf-8"))
    numbers = np.array(re.findall(r"\d+", found), int)
    return numbers.reshape(-1, 2)


# ---- Which pairs ---------------------------------------------------------------------------------


@pytest.fixture
def ask(simulated_kit: Path, tmp_path: Path) -> Ask:
    """Return a function that writes the page for an expert and returns the pairs on it."""

    def pairs(*flags: object) -> np.ndarray:
        succeeds([JUDGE, "--output_dir", tmp_path, *flags], kit=simulated_kit)
        return pairs_of(tmp_path / "judge.html")

    return pairs


def test_random_pairs_are_distinct_and_of_answered_questions(simulated_kit: Path, ask: Ask) -> None:
    pairs = ask("--n_pairs", 500)
    assert len(pairs) == 500
    without_sides = {frozenset(pair) for pair in pairs.tolist()}
    assert len(without_sides) == 500
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    assert np.isin(pairs, answers.QuestionId).all()


def test_chance_decides_which_question_of_a_pair_is_on_the_left(ask: Ask) -> None:
    pairs = ask("--n_pairs", 500)
    n_smaller_id_on_left = (pairs[:, 0] < pairs[:, 1]).sum()
    # Each question of a pair is on the left with probability 1/2. So the number is 250 on average,
    # with a standard deviation of 11.
    assert 190 < n_smaller_id_on_left < 310


def test_the_seed_alone_decides_on_random_pairs(ask: Ask) -> None:
    pairs = ask("--n_pairs", 500)
    assert np.array_equal(ask("--n_pairs", 500), pairs)
    assert not np.array_equal(ask("--n_pairs", 500, "--seed", 1), pairs)


@pytest.fixture
def five_answered(simulated_kit: Path, tmp_path: Path) -> list[int]:
    """Write the answers to five questions to few.csv; return the QuestionIds."""
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    answered: list[int] = answers.QuestionId.unique()[:5].tolist()
    answers[answers.QuestionId.isin(answered)].to_csv(tmp_path / "few.csv", index=False)
    return answered


def test_random_pairs_are_drawn_from_answered_questions_alone(
    five_answered: list[int], tmp_path: Path, ask: Ask
) -> None:
    pairs = ask("--input_dir", tmp_path, "--train_data", "few.csv")
    # Five questions form ten pairs.
    assert len(pairs) == 10
    assert sorted(np.unique(pairs)) == sorted(five_answered)


@pytest.mark.usefixtures("five_answered")
def test_a_panel_is_asked_whole_even_where_questions_have_no_answers(
    tmp_path: Path, ask: Ask
) -> None:
    files = ["--input_dir", tmp_path, "--train_data", "few.csv", "--images_dir", tmp_path]
    assert len(ask(*files, "--phase", "public")) == 25
    page = read_without_scripts(tmp_path / "judge.html", [])
    assert "Answers 0 Nobody answered this question." in page.text


def test_one_answered_question_makes_no_pair(simulated_kit: Path, tmp_path: Path) -> None:
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    answers[answers.QuestionId == answers.QuestionId[0]].to_csv(tmp_path / "one.csv", index=False)
    flags = ["--input_dir", tmp_path, "--train_data", "one.csv", "--output_dir", tmp_path / "out"]
    message = fails([JUDGE, *flags], kit=simulated_kit)
    assert message.startswith(f"{tmp_path / 'one.csv'}: holds answers to 1 of the questions of")
    assert message.endswith("submission_task_3.csv, expected answers to at least two")
    assert not (tmp_path / "out").exists()


def test_the_pairs_of_a_phase_are_those_of_its_panel_with_the_same_sides(
    simulated_kit: Path, ask: Ask
) -> None:
    panel = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    assert (ask("--phase", "public") == panel[["left", "right"]].to_numpy()).all()


def test_between_two_rankings_there_are_only_pairs_on_which_they_disagree(
    ask: Ask, rankings: dict[str, Path]
) -> None:
    """With two rankings, the page asks only for pairs on which the rankings disagree.

    Here, more pairs are requested than exist, so the page asks for all of them.
    """
    files = [folder / "submission_task_3.csv" for folder in rankings.values()]
    more_than_exist = 1_000_000
    pairs = ask("--between", *files, "--n_pairs", more_than_exist)
    rank_by_entropy = read_rank(rankings["entropy"])
    rank_by_chance = read_rank(rankings["random"])

    def rankings_disagree(first: int, second: int) -> bool:
        """Return whether the two rankings disagree on which of two questions is better."""
        first_is_better_by_entropy = rank_by_entropy[first] < rank_by_entropy[second]
        first_is_better_by_chance = rank_by_chance[first] < rank_by_chance[second]
        return bool(first_is_better_by_entropy != first_is_better_by_chance)

    assert all(rankings_disagree(left, right) for left, right in pairs)
    questions = np.unique(pairs)
    all_pairs = combinations(questions, 2)
    n_disagree = sum(rankings_disagree(first, second) for first, second in all_pairs)
    assert len(pairs) == n_disagree


def test_two_equal_rankings_have_no_pair_to_judge(
    simulated_kit: Path, tmp_path: Path, rankings: dict[str, Path]
) -> None:
    file = rankings["entropy"] / "submission_task_3.csv"
    command = [JUDGE, "--between", file, file, "--output_dir", tmp_path]
    message = fails(command, kit=simulated_kit)
    assert "so there is no pair to judge; expected two different rankings" in message
    assert not list(tmp_path.iterdir())


# ---- The page without a browser ------------------------------------------------------------------


def read_without_scripts(path: Path, links: list[str]) -> Page:
    """Read a page without its scripts; it may have no links but `links`."""
    html = path.read_text(encoding="utf-8")
    return read_page(re.sub("<script.*?</script>", "", html, flags=re.DOTALL), links)


def test_the_page_links_to_images_and_to_nothing_else(simulated_kit: Path, tmp_path: Path) -> None:
    succeeds([JUDGE, "--output_dir", tmp_path], kit=simulated_kit)
    path = tmp_path / "judge.html"
    images = (simulated_kit / "data/images").glob("*")
    links = [image.resolve().as_uri() for image in images]
    page = read_without_scripts(path, links)
    shown = [reference for reference in page.references if reference != "data:,"]
    assert len(shown) == len(np.unique(pairs_of(path)))
    html = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|data:image", html.replace("http://www.w3.org/2000/svg", ""))


def test_without_images_the_page_shows_what_the_answers_say(
    simulated_kit: Path, tmp_path: Path
) -> None:
    """A question without an image is shown by facts and a chart.

    The facts are the subjects, the number of answers, the share of right answers and the
    discrimination, in this order.
    """
    folder_without_images = tmp_path
    flags = ["--output_dir", tmp_path, "--images_dir", folder_without_images, "--n_pairs", "1"]
    succeeds([JUDGE, *flags], kit=simulated_kit)
    path = tmp_path / "judge.html"
    page = read_without_scripts(path, [])
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    (pair,) = pairs_of(path)
    for question in pair:
        rows = answers[answers.QuestionId == question]
        facts = f"Answers {len(rows)} Answered correctly {rows.IsCorrect.mean():.0%} Discrimination"
        assert re.search(rf"question {question} Subjects .+ {facts}", page.text)
    # A chart for each question of the pair.
    assert len(page.charts) == 2
    # Both charts have an axis up to 100 %, so that they can be compared.
    assert all("100%" in chart.texts for chart in page.charts)
    assert "2 of the 2 questions have no image in data/images" in page.text


# ---- The page in a browser -----------------------------------------------------------------------


@dataclass
class Session:
    """The actions of an expert on the page, and the text that the page shows.

    The expert judges pairs, undoes judgements, closes the browser, goes on later, and saves.
    """

    page: Path
    pairs: np.ndarray
    # The side of the question that the expert finds better, for each pair: 1 for left, 2 for right.
    better_sides: list[int]
    # The text of the page after each step: at the start, after the first judgement, after undo,
    # after a new start of the browser, and at the end.
    texts: dict[str, str]
    # The width of the first image in pixels, as the browser has read it; 0 if it could not read the
    # image.
    image_width: int
    saved: Path
    # Errors and warnings that the page's script has reported to the browser.
    complaints: list[str]


def choose(tab: Tab, side: int, *, by_key: bool) -> None:
    """Prefer the question on a side of the page, by pressing a key or by a click."""
    if by_key:
        tab.press("ArrowLeft" if side == 1 else "ArrowRight")
    else:
        tab.click(f"choose-{side}")


def other_side(side: int) -> int:
    """Return the other side of a pair: 2 (right) if `side` is 1 (left), and 1 if it is 2."""
    return 3 - side


# The expert judges this number of pairs before the browser is closed.
N_PAIRS_BEFORE_BREAK = 12


def judge_before_break(tab: Tab, better_sides: list[int]) -> dict[str, str]:
    """Judge the first pairs, before the browser is closed; return texts of the page.

    `better_sides` holds the side of the better question of each pair, 1 for left and 2 for right.
    For the first pair, the expert chooses the wrong side, and undoes this judgement with the
    Backspace key. Then the expert judges N_PAIRS_BEFORE_BREAK pairs. For the next pair, the expert
    chooses the wrong side again, and undoes this judgement with the button.

    The result holds the page's text at the start ("start"), after the first wrong judgement ("one
    wrong"), and after this judgement was undone ("undone").
    """
    texts = {"start": tab.text()}
    choose(tab, other_side(better_sides[0]), by_key=True)
    texts["one wrong"] = tab.text()
    tab.press("Backspace")
    texts["undone"] = tab.text()
    for number, side in enumerate(better_sides[:N_PAIRS_BEFORE_BREAK]):
        choose(tab, side, by_key=number % 2 == 0)
    choose(tab, other_side(better_sides[N_PAIRS_BEFORE_BREAK]), by_key=False)
    tab.click("undo")
    return texts


def judge_after_break(tab: Tab, better_sides: list[int]) -> dict[str, str]:
    """Judge the remaining pairs after the browser has started again.

    Return the page's text before these judgements ("resumed") and after them ("end").
    """
    texts = {"resumed": tab.text()}
    for side in better_sides[N_PAIRS_BEFORE_BREAK:]:
        choose(tab, side, by_key=True)
    # There is no pair left, so this key does nothing.
    choose(tab, 1, by_key=True)
    texts["end"] = tab.text()
    return texts


@pytest.fixture(scope="module")
def session(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Judge twenty pairs in a browser that is closed and started again after some of them.

    The side of the better question is random.
    """
    folder = tmp_path_factory.mktemp("session")
    profile = folder / "profile"
    succeeds([JUDGE, "--n_pairs", N_PAIRS, "--output_dir", folder], kit=simulated_kit)
    page = folder / "judge.html"
    better_sides = np.random.default_rng(0).integers(1, 3, N_PAIRS).tolist()
    with open_browser(profile, folder) as tab:
        tab.open(page)
        texts = judge_before_break(tab, better_sides)
        # Wait until the browser has read the first image of the page, then ask for its width.
        image = "document.querySelector('.card img')"
        image_width = tab.run(f"{image}.decode().then(() => {image}.naturalWidth)")
        complaints = [*tab.complaints]
    with open_browser(profile, folder) as tab:
        tab.open(page)
        texts |= judge_after_break(tab, better_sides)
        tab.click("name")
        tab.type('Ann "A", B.')
        tab.click("save")
        saved = tab.wait_for_file(folder, "simulated_judgements_*.csv")
        complaints += tab.complaints
    return Session(
        page=page,
        pairs=pairs_of(page),
        better_sides=better_sides,
        texts=texts,
        image_width=image_width,
        saved=saved,
        complaints=complaints,
    )


@needs_browser
@pytest.mark.parametrize(
    ("step", "n_judged"),
    [("start", 0), ("one wrong", 1), ("undone", 0), ("resumed", N_PAIRS_BEFORE_BREAK)],
)
def test_the_page_shows_a_pair_at_a_time_and_how_many_are_judged(
    session: Session, step: str, n_judged: int
) -> None:
    left, right = session.pairs[n_judged]
    text = session.texts[step]
    assert f"{n_judged} of {N_PAIRS} pairs judged" in text
    assert re.findall(r"question (\d+)", text) == [str(left), str(right)]


@needs_browser
def test_the_page_says_when_all_pairs_are_judged(session: Session) -> None:
    assert "You have judged all pairs" in session.texts["end"]
    assert "You have judged all pairs" not in session.texts["resumed"]


@needs_browser
def test_the_script_of_the_page_raises_no_errors(session: Session) -> None:
    assert not session.complaints


@needs_browser
def test_the_browser_shows_the_images_that_the_page_links_to(session: Session) -> None:
    assert session.image_width > 0


@needs_browser
def test_the_page_says_that_questions_are_simulated_and_shows_the_five_rules(
    session: Session,
) -> None:
    text = session.texts["start"]
    assert "Simulated questions. No teacher has written them" in text
    readme = Path(__file__).parents[2] / "task_3/README.md"
    rules = re.findall(r"^\d\. (.*?[;.])$", readme.read_text(encoding="utf-8"), re.M)
    assert len(rules) == 5
    assert all(rule in text for rule in rules)


@needs_browser
def test_the_saved_panel_holds_the_judgements_that_were_meant(session: Session) -> None:
    """The saved file has the expert's judgements, without those that the expert has undone.

    The name of the expert may hold commas and quotation marks.
    """
    with session.saved.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["left", "right", 'Ann "A", B.']
    expected = [
        [str(left), str(right), str(side)]
        for (left, right), side in zip(session.pairs, session.better_sides, strict=True)
    ]
    assert rows == expected


@needs_browser
def test_the_evaluation_scores_rankings_by_the_saved_panel(
    session: Session, simulated_kit: Path, tmp_path: Path, rankings: dict[str, Path]
) -> None:
    """A ranking can be scored by the file that the page has saved: a panel of one expert.

    `session` holds what the expert judged in the browser, with the name 'Ann "A", B.'. The score is
    the share of the pairs on which the ranking prefers the same question as the expert. The saved
    file does not say that the questions are simulated, but the record beside the ranking does.
    """
    folder = rankings["entropy"]
    flags = ["--ref_data", session.saved, "--submission_dir", folder, "--output_dir", tmp_path]
    output = succeeds([EVALUATION, *flags], kit=simulated_kit)

    rank = read_rank(folder)
    left, right = session.pairs.T
    preferred_by_ranking = preferred_sides(rank, left, right)
    share = (preferred_by_ranking == session.better_sides).mean()
    # After the name, spaces fill the column. After the share, its interval follows in brackets.
    assert f'Ann "A", B.          {share:.2f} (' in output
    assert (tmp_path / "scores_task_3_own.txt").read_text() == f"score:{share}\n"
    page = read_page((tmp_path / "scores_task_3_own.html").read_text(encoding="utf-8"))
    assert "From simulated answers." in page.text
    # With a single expert, there is no agreement among experts to show.
    assert "Agreement among the experts" not in page.headings


@needs_browser
def test_nothing_is_saved_without_a_judgement_and_the_name_of_an_expert(
    simulated_kit: Path, tmp_path: Path
) -> None:
    """Before the expert has judged a pair and written a valid name, the button saves nothing.

    The name becomes a column of the saved file, so it may not be the name of another column.
    """
    succeeds([JUDGE, "--output_dir", tmp_path], kit=simulated_kit)
    with open_browser(tmp_path / "profile", tmp_path / "saved") as tab:
        tab.open(tmp_path / "judge.html")
        # The button that saves is disabled before the first judgement.
        assert tab.run("document.getElementById('save').disabled")
        # After a judgement, the button that saves asks for the expert's name.
        tab.press("ArrowLeft")
        tab.click("save")
        assert "Write your name first." in tab.text()
        # The saved file has a column "left" for the left questions, and a file of judgements may
        # have a column "Unnamed: 0" of row numbers. So these are not valid names of experts.
        for name in ("left", "Unnamed: 0"):
            # Typing replaces the selected text.
            tab.run("document.getElementById('name').select()")
            tab.type(name)
            tab.click("save")
            assert "this one has a meaning" in tab.text()
        assert not list(tmp_path.glob("saved/*"))


@needs_browser
def test_a_key_not_meant_for_the_page_judges_no_pair(simulated_kit: Path, tmp_path: Path) -> None:
    succeeds([JUDGE, "--output_dir", tmp_path], kit=simulated_kit)
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(tmp_path / "judge.html")
        # While a key is held down, the browser reports it again and again. Only the first report
        # may judge a pair.
        tab.press("ArrowLeft", repeated=True)
        # With Alt, an arrow key moves through the browser's history. It must judge no pair.
        tab.press("ArrowRight", ALT)
        # In the field for the name, an arrow key moves the cursor. It must judge no pair.
        tab.click("name")
        tab.type("Ann")
        tab.press("ArrowLeft")
        assert "0 of 25 pairs judged" in tab.text()
        # The cursor is now between the two letters n, so Backspace deletes the first n.
        tab.press("Backspace")
        assert tab.run("document.getElementById('name').value") == "An"


@needs_browser
def test_pages_with_other_pairs_keep_their_judgements_apart(
    simulated_kit: Path, tmp_path: Path
) -> None:
    """The browser keeps the judgements of each page, so that an expert may go on later.

    The test opens two pages with different pairs in the same browser. On each page, it judges one
    pair by pressing an arrow key.
    """
    for seed in (0, 1):
        folder = tmp_path / f"seed_{seed}"
        succeeds([JUDGE, "--seed", seed, "--output_dir", folder], kit=simulated_kit)
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(tmp_path / "seed_0/judge.html")
        tab.press("ArrowRight")
        assert "1 of 25 pairs judged" in tab.text()
        tab.open(tmp_path / "seed_1/judge.html")
        assert "0 of 25 pairs judged" in tab.text()
        tab.press("ArrowRight")
        tab.open(tmp_path / "seed_0/judge.html")
        assert "1 of 25 pairs judged" in tab.text()


@needs_browser
def test_another_expert_can_judge_the_same_pairs_in_the_same_browser(
    simulated_kit: Path, tmp_path: Path
) -> None:
    """The button "restart" makes the browser forget the expert's name and judgements.

    The button asks first: if the expert cancels, the browser keeps name and judgements.
    """
    succeeds([JUDGE, "--n_pairs", "2", "--output_dir", tmp_path], kit=simulated_kit)
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(tmp_path / "judge.html")
        tab.click("name")
        tab.type("Ann")
        # Judge both pairs: the left question of the first pair (side 1) is better, and the right
        # question of the second pair (side 2).
        choose(tab, side=1, by_key=False)
        choose(tab, side=2, by_key=False)

        def restart_and_reopen(*, confirm: bool) -> str:
            """Press "restart", and confirm or cancel; return the name on the page after that."""
            # The browser would ask the expert to confirm. This function answers for the expert.
            tab.run(f"window.confirm = () => {str(confirm).lower()}")
            tab.click("restart")
            tab.open(tmp_path / "judge.html")
            return str(tab.run("document.getElementById('name').value"))

        assert restart_and_reopen(confirm=False) == "Ann"
        assert "2 of 2 pairs judged" in tab.text()
        assert restart_and_reopen(confirm=True) == ""
        assert "0 of 2 pairs judged" in tab.text()


@needs_browser
def test_a_browser_that_keeps_nothing_says_so(simulated_kit: Path, tmp_path: Path) -> None:
    succeeds([JUDGE, "--output_dir", tmp_path], kit=simulated_kit)
    warning = "This browser keeps no judgements."
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(tmp_path / "judge.html")
        tab.press("ArrowLeft")
        assert warning not in tab.text()
        tab.run("Storage.prototype.setItem = () => { throw new Error('full'); }")
        tab.press("ArrowLeft")
        assert warning in tab.text()
        assert "2 of 25 pairs judged" in tab.text()


# ---- Several experts -----------------------------------------------------------------------------

# The content of a file of judgements. It has a column for each expert: 1 if the left question is
# better, 2 if the right one is.
ANN = "left,right,Ann\n1,2,1\n3,4,2\n5,6,\n"
# Ben has judged two pairs: questions 2 and 1, which Ann has judged with the sides exchanged, and
# questions 7 and 8.
BEN = "left,right,Ben\n2,1,1\n7,8,2\n"
# Ann has judged two pairs in a second file. Question 1 is better than question 2, as before.
MORE_OF_ANN = "left,right,Ann\n2,1,2\n5,6,1\n"


def test_panels_of_several_experts_are_merged(write: Write, tmp_path: Path) -> None:
    files = [write("ann.csv", ANN), write("ben.csv", BEN), write("more.csv", MORE_OF_ANN)]
    panel = tmp_path / "panel.csv"
    output = succeeds([JUDGE, "--merge", *files, "--output", panel])
    assert panel.read_text() == "left,right,Ann,Ben\n1,2,1,2\n3,4,2,\n5,6,1,\n7,8,,2\n"
    assert output.splitlines()[:2] == ["Ann: 3 of 4 pairs", "Ben: 2 of 4 pairs"]
    record = provenance.read(panel)
    assert record is not None
    assert sorted(record.made_from) == ["ann.csv", "ben.csv", "more.csv"]
    assert record.origin is Origin.UNKNOWN


def test_a_panel_of_simulated_experts_stays_simulated_when_it_is_merged(
    simulated_kit: Path, tmp_path: Path
) -> None:
    file = simulated_kit / "data/test_data/quality_response_remapped_public.csv"
    panel = tmp_path / "panel.csv"
    succeeds([JUDGE, "--merge", file, "--output", panel], kit=simulated_kit)
    assert provenance.origin_of(panel) is Origin.SIMULATED


def test_an_expert_who_judges_a_pair_in_two_ways_is_refused(write: Write, tmp_path: Path) -> None:
    ann = write("ann.csv", ANN)
    other = write("other.csv", "left,right,Ann\n2,1,1\n")
    panel = tmp_path / "panel.csv"
    assert fails([JUDGE, "--merge", ann, other, "--output", panel]) == (
        f"{other}: column 'Ann': of the questions 2 and 1, 2 is better, but 1 is better in {ann}; "
        "if these are two people, give them two names, otherwise empty one of the cells"
    )
    assert not panel.exists()


def test_a_merged_panel_overwrites_no_file_that_it_is_made_of(write: Write) -> None:
    ann = write("ann.csv", ANN)
    message = fails([JUDGE, "--merge", ann, "--output", ann])
    assert "is an input or another output too and would be overwritten" in message
    assert ann.read_text() == ANN
    table = ann.with_suffix(".txt")
    message = fails([JUDGE, "--merge", ann, "--output", table])
    assert message == f"{table}: expected the name of a CSV file, such as panel.csv"


# ---- How experts agree with one another ----------------------------------------------------------


def test_kappa_is_that_of_scikit_learn_over_the_pairs_that_both_judged() -> None:
    """Two experts are compared on the pairs that both judged; kappa is the kappa of scikit-learn.

    A judgement is 1 or 2. NaN and other numbers are no judgements.
    """
    rng = np.random.default_rng(0)
    by_first = pd.Series(rng.integers(1, 3, 60), dtype=float)
    # The second expert copies 0.6 of the first expert's judgements. The others are random.
    is_copied = rng.random(60) < 0.6
    by_second = by_first.where(is_copied, rng.integers(1, 3, 60))
    by_first[::7] = np.nan
    by_second[::5] = 3
    is_judged_by_both = by_first.notna() & (by_second != 3)

    two = expert_agreement.compare_two("A", "B", by_first, by_second)

    first = by_first[is_judged_by_both]
    second = by_second[is_judged_by_both]
    assert two.n_pairs == len(first)
    assert two.agreement == (first == second).mean()
    assert two.kappa == pytest.approx(cohen_kappa_score(first, second))


@pytest.mark.parametrize("share_left", [0.5, 0.7])
def test_the_interval_of_kappa_holds_its_true_value(share_left: float) -> None:
    """The interval of kappa contains the true kappa, 0.5, in at least 93 % of simulated panels.

    In a panel, two experts judge the same pairs. The second expert copies a judgement of the first
    with probability 0.5, and otherwise judges alone. The true kappa is then 0.5. If each of 1,000
    intervals contains it with a probability of 95 %, about 950 intervals contain it, with a
    standard deviation of √(1,000 · 0.95 · 0.05) = 7. The limit of 930 is almost three standard
    deviations below 950.
    """
    rng = np.random.default_rng(0)
    n_pairs = 25

    def judge_alone() -> pd.Series:
        """Return judgements of all pairs: 1 (left) with probability `share_left`, otherwise 2."""
        return pd.Series(np.where(rng.random(n_pairs) < share_left, 1, 2))

    n_containing = 0
    for _ in range(1_000):
        by_first = judge_alone()
        is_copied = rng.random(n_pairs) < 0.5
        by_second = by_first.where(is_copied, judge_alone())
        two = expert_agreement.compare_two("A", "B", by_first, by_second)
        n_containing += two.kappa_low <= 0.5 <= two.kappa_high
    assert n_containing >= 930


BOTH_SIDES = pd.Series([1.0, 2, 1, 2, 1, 2])


def test_kappa_of_experts_who_always_agree_is_1_with_an_interval() -> None:
    two = expert_agreement.compare_two("A", "B", BOTH_SIDES, BOTH_SIDES)
    assert two.kappa == 1
    assert two.kappa_high == 1
    assert two.kappa_low < 0.5


def test_kappa_of_experts_who_always_choose_the_left_is_unknown() -> None:
    """If two experts always choose the left question, their kappa is unknown.

    They would agree on all pairs by chance alone.
    """
    always_left = pd.Series([1.0] * 6)
    two = expert_agreement.compare_two("A", "B", always_left, always_left)
    assert two.agreement == 1
    assert np.isnan([two.kappa, two.kappa_low, two.kappa_high]).all()


def test_an_expert_without_judgements_has_no_pair_with_another() -> None:
    nothing = pd.Series([np.nan] * 6)
    assert expert_agreement.compare_two("A", "B", BOTH_SIDES, nothing).n_pairs == 0


def test_the_page_of_a_score_compares_every_two_experts(
    simulated_kit: Path, tmp_path: Path, rankings: dict[str, Path]
) -> None:
    """The page has a table with a row for every two experts.

    A row has the names of the two experts, the number of pairs that both have judged, their
    agreement on these pairs, and Cohen's kappa.
    """
    flags = ["--phase", "public", "--submission_dir", rankings["entropy"]]
    succeeds([EVALUATION, *flags, "--output_dir", tmp_path], kit=simulated_kit)
    page = read_page((tmp_path / "scores_task_3_public.html").read_text(encoding="utf-8"))
    votes = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    experts = [name for name in votes if name.startswith("T")]
    rows = page.table("Every two experts").rows
    # Five experts make 5 · 4 / 2 pairs of experts.
    assert len(rows) == 10
    for (first, second), row in zip(combinations(experts, 2), rows, strict=True):
        both = votes[[first, second]].dropna()
        share = (both[first] == both[second]).mean()
        kappa = cohen_kappa_score(both[first], both[second])
        # The page writes a negative number with the minus sign "−" instead of the hyphen "-".
        kappa_text = f"{kappa:.2f}".replace("-", "−")
        names, n_pairs, shown_agreement, shown_kappa = row[:4]
        assert names == f"{first} and {second}"
        assert n_pairs == str(len(both))
        # After each figure, its interval follows in brackets.
        assert shown_agreement.startswith(f"{share:.2f} (")
        assert shown_kappa.startswith(f"{kappa_text} (")


# ---- Whether the judgements tell two rankings apart ----------------------------------------------


NO_JUDGEMENT = np.nan
# Whether experts A and B agree with each of two rankings on seven pairs. Columns 0 and 1 hold the
# agreement of A and of B with the first ranking. Columns 2 and 3 hold the agreement of A and of B
# with the second ranking.
AGREEMENT_BY_PAIR = pd.DataFrame(
    [
        # Both experts agree with the first ranking.
        [1, 1, 0, 0],
        # A agrees with the first ranking, and B with the second ranking.
        [1, 0, 0, 1],
        # A agrees with the second ranking, and B has not judged the pair.
        [0, NO_JUDGEMENT, 1, NO_JUDGEMENT],
        # Both experts agree with both rankings.
        [1, 1, 1, 1],
        # Nobody has judged the pair.
        [NO_JUDGEMENT] * 4,
        # A agrees with the first ranking, and B with the second ranking.
        [1, 0, 0, 1],
        # Nobody has judged the pair, and this counts as disagreement with both rankings.
        [0, 0, 0, 0],
    ]
)


def with_first_and_second(pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how experts A and B agree with the first ranking and with the second.

    `pairs` has the columns of AGREEMENT_BY_PAIR. Each result has a column for each expert.
    """
    first = pairs[[0, 1]].set_axis(["A", "B"], axis=1)
    second = pairs[[2, 3]].set_axis(["A", "B"], axis=1)
    return first, second


def test_only_pairs_on_which_two_rankings_disagree_count_each_once() -> None:
    contest = expert_agreement.contest(*with_first_and_second(AGREEMENT_BY_PAIR))
    # The rankings disagree on the pairs 0, 1, 2 and 5. More experts agree with the first ranking on
    # pair 0, and with the second ranking on pair 2. On the pairs 1 and 5, as many agree with each.
    assert contest.n_pairs == 4
    assert contest.n_first == 1
    assert contest.n_second == 1
    assert contest.share == 0.5


def test_no_number_of_further_pairs_tells_rankings_apart_that_win_equally_often() -> None:
    contest = expert_agreement.contest(*with_first_and_second(AGREEMENT_BY_PAIR))
    assert contest.n_further is None


def test_a_pair_on_which_both_experts_agree_with_the_second_ranking_counts_for_it() -> None:
    first, second = with_first_and_second(AGREEMENT_BY_PAIR.iloc[:1])
    contest = expert_agreement.contest(second, first)
    assert contest.n_first == 0
    assert contest.n_second == 1
    assert contest.share == 0


@pytest.mark.parametrize("n", [1, 5, 6, 20, 101])
def test_the_sign_test_is_that_of_scipy(n: int) -> None:
    for n_first in range(n + 1):
        expected = scipy.stats.binomtest(n_first, n).pvalue
        assert expert_agreement.sign_test(n_first, n) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 5, 6, 20, 101])
def test_no_further_pairs_are_needed_where_the_sign_test_is_significant(n: int) -> None:
    for n_first in range(n + 1):
        n_further = expert_agreement.count_further(n_first, n)
        if 2 * n_first == n:
            # If as many pairs speak for one ranking as for the other, no number of further pairs is
            # expected to tell them apart.
            assert n_further is None
        else:
            is_significant = scipy.stats.binomtest(n_first, n).pvalue <= 0.05
            assert n_further is not None
            assert (n_further == 0) == is_significant


def test_without_pairs_nobody_knows_how_many_are_needed() -> None:
    assert expert_agreement.count_further(0, 0) is None


def power_of_sign_test(n: int, share: float) -> float:
    """Return the power of the sign test: how likely n judged pairs tell two rankings apart.

    `share` is the probability that a pair speaks for the first ranking.
    """
    power = 0.0
    for n_first in range(n + 1):
        if expert_agreement.sign_test(n_first, n) <= 0.05:
            power += scipy.stats.binom.pmf(n_first, n, share)
    return power


@pytest.mark.parametrize(("n_first", "n"), [(3, 3), (5, 5), (4, 5), (7, 10), (12, 20), (55, 100)])
def test_the_further_pairs_tell_rankings_apart_four_times_out_of_five(n_first: int, n: int) -> None:
    """With the further pairs that `count_further` asks for, a sign test has a power of about 0.8.

    The power is the probability that the test tells two rankings apart. Of `n` judged pairs,
    `n_first` speak for the first ranking; the power assumes the same share for the further pairs.
    One pair more or less changes the power by up to 0.09, so it is only near 0.8. At least 0.71 is
    required.
    """
    n_further = expert_agreement.count_further(n_first, n)
    assert n_further is not None
    n_all = n + n_further
    assert power_of_sign_test(n_all, n_first / n) > 0.71
    # With half as many pairs, the power is clearly lower.
    if n_all > 12:
        assert power_of_sign_test(n_all // 2, n_first / n) < 0.6


@dataclass(frozen=True)
class TwoRankings:
    """An evaluation that compares the ranking by entropy, which is scored, with a random one."""

    output: str
    page: Page
    # The experts' judgements of the public pairs: 1 for left, 2 for right, NaN for none.
    votes: pd.DataFrame
    # For each pair, the side that the scored ranking prefers, and the side that the other ranking
    # prefers: 1 for left, 2 for right.
    preferred_by_scored: np.ndarray
    preferred_by_other: np.ndarray

    @property
    def disagree(self) -> np.ndarray:
        """Whether the two rankings disagree, for each pair."""
        return self.preferred_by_scored != self.preferred_by_other

    @property
    def lead(self) -> pd.Series:
        """For each pair, how many more experts agree with the scored ranking than with the other.

        The number is negative if more experts agree with the other ranking.
        """
        for_scored = self.votes.eq(self.preferred_by_scored, axis=0).sum(axis=1)
        for_other = self.votes.eq(self.preferred_by_other, axis=0).sum(axis=1)
        return for_scored - for_other

    @property
    def n_for_scored(self) -> int:
        """The number of judged pairs that speak for the scored ranking.

        On such a pair, the rankings disagree, and more experts agree with the scored ranking.
        """
        return int(((self.lead > 0) & self.disagree).sum())

    @property
    def n_for_other(self) -> int:
        """The number of judged pairs that speak for the other ranking.

        On such a pair, the rankings disagree, and more experts agree with the other ranking.
        """
        return int(((self.lead < 0) & self.disagree).sum())


@pytest.fixture(scope="module")
def two_rankings(
    simulated_kit: Path, rankings: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> TwoRankings:
    """Score the ranking by entropy on the public phase, and compare it with a random ranking.

    In the names of the result, "scored" is the ranking by entropy of the chosen options, and
    "other" is the random ranking.
    """
    folder = tmp_path_factory.mktemp("two_rankings")
    other = rankings["random"] / "submission_task_3.csv"
    flags = ["--phase", "public", "--submission_dir", rankings["entropy"], "--rankings", other]
    output = succeeds([EVALUATION, *flags, "--output_dir", folder], kit=simulated_kit)
    page = read_page((folder / "scores_task_3_public.html").read_text(encoding="utf-8"))
    panel = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    rank_of_scored = read_rank(rankings["entropy"])
    rank_of_other = read_rank(rankings["random"])
    return TwoRankings(
        output=output,
        page=page,
        # The names of the experts' columns begin with T1 to T5. No other column has a T in its
        # name.
        votes=panel.filter(like="T"),
        preferred_by_scored=preferred_sides(rank_of_scored, panel.left, panel.right),
        preferred_by_other=preferred_sides(rank_of_other, panel.left, panel.right),
    )


def test_the_evaluation_says_whether_the_experts_tell_rankings_apart(
    two_rankings: TwoRankings,
) -> None:
    """Output and page count the judged pairs on which the two rankings disagree.

    A pair speaks for a ranking if more experts prefer the question that this ranking prefers.
    """
    n_pairs = two_rankings.disagree.sum()
    n_for_scored = two_rankings.n_for_scored
    n_for_other = two_rankings.n_for_other
    sentence = (
        f"of {n_pairs} judged pairs on which it disagrees with the scored ranking, "
        f"{n_for_scored} speak for the scored one and {n_for_other} for the other; "
    )
    assert sentence in two_rankings.output
    row = two_rankings.page.table("Do the judgements tell the rankings apart?").rows[0]
    # The row begins with the name of the other ranking.
    _name, *counts = row[:4]
    assert counts == [f"{n_pairs}", f"{n_for_scored}", f"{n_for_other}"]


def test_the_page_shows_how_experts_agree_with_the_other_ranking(two_rankings: TwoRankings) -> None:
    expert = two_rankings.votes.columns[0]
    votes = two_rankings.votes[expert]
    is_judged = votes.notna()
    share = (votes == two_rankings.preferred_by_other)[is_judged].mean()
    shown = two_rankings.page.table("Other rankings").rows[1][1]
    assert shown.startswith(f"{expert} {share:.2f}, ")


def test_rankings_are_compared_by_experts_only(
    simulated_kit: Path, tmp_path: Path, rankings: dict[str, Path]
) -> None:
    file = rankings["entropy"] / "submission_task_3.csv"
    flags = ["--submission_dir", file.parent, "--rankings", file, "--output_dir", tmp_path]
    message = fails([EVALUATION, *flags], kit=simulated_kit)
    assert (
        message == "--rankings needs the judgements of experts, expected --phase or --ref_data too"
    )
