"""Make the pictures of the kit's README from two charts of the page about small simulated data.

Run:     python data/generate_sample.py --size small --output_dir DIR
         python data/explore.py --data_dir DIR --output_dir DIR
         python tests/benchmarks/readme_pictures.py --input_dir DIR
Writes:  data/pictures/difficulty.svg and confidence.svg
"""

import re

from common import cli, layout, writing
from common.charts import GREY, LINE_HEIGHT, SOFT, WIDTH, wrap
from common.errors import InputError

# The name of each picture, the heading of its chart on the page, and the title of the picture.
PICTURES = (
    ("difficulty", "How difficult the questions are", "how difficult the questions are"),
    (
        "confidence",
        "Confidence and correctness",
        "share right (dot) for each confidence stated (diamond)",
    ),
)
MARGIN = 10.0
# An image cannot take the colours of the page that shows it. It brings its own colours and its own
# background, so that it can be read even if page and browser disagree on light or dark.
STYLE = """<style>
:root { --text: #1f2328; --soft: #59636e; --grey: #8c959f; --line: #d1d9e0; --ground: #ffffff;
        --accent: 37 99 235; }
@media (prefers-color-scheme: dark) {
  :root { --text: #f0f6fc; --soft: #9198a1; --grey: #656c76; --line: #3d444d; --ground: #0d1117;
          --accent: 96 165 250; }
}
svg { color: var(--text); font-family: system-ui, sans-serif; }
</style>
<rect width="100%" height="100%" rx="6" fill="var(--ground)"/>"""


def main() -> None:
    """Cut the charts from the page and write the pictures."""
    p = cli.parser(__doc__)
    cli.add_folder(p, "--input_dir", layout.TEST_OUTPUT_DIR, "where explore.html lies")
    cli.add_folder(p, "--output_dir", layout.DATA_DIR / "pictures")
    options = p.parse_args()
    path = options.input_dir / "explore.html"
    page = path.read_text(encoding="utf-8")
    # Only a page about simulated data has this sentence.
    if "Nothing on this page is about real students" not in page:
        raise InputError(f"{path}: is not about simulated data, of which alone pictures are made")
    for name, heading, title in PICTURES:
        chart = cut_chart(page, f"Tasks 1/2: {heading}")
        picture = frame(chart, f"Simulated data: {title}")
        writing.write_files({options.output_dir / f"{name}.svg": picture})


def cut_chart(page: str, label: str) -> str:
    """Return the SVG of the chart with this aria-label, cut out of a page.

    The aria-label of the result is empty, because the picture gets a title instead. The result
    lacks `<svg ` at its beginning, so that `frame` can add further attributes there.
    """
    before, _, after = page.partition(f'aria-label="{label}"')
    # The chart's <svg …> tag is the last one before the aria-label.
    attributes_before = before.rpartition('<svg class="chart" ')[2]
    rest = after.partition("</svg>")[0]
    return f'class="chart" {attributes_before}aria-label=""{rest}</svg>'


def frame(chart: str, title: str) -> str:
    """Return an SVG file with a title and a chart below it; `chart` is from `cut_chart`."""
    # The colours of the page become the picture's own colours, see STYLE.
    chart = chart.replace(SOFT, "var(--soft)").replace(GREY, "var(--grey)")
    title_lines = wrap(title, WIDTH - 2 * MARGIN, bold=True)
    # The chart begins below the title, with a margin above and below the title.
    chart_top = LINE_HEIGHT * len(title_lines) + 2 * MARGIN
    # The size of the chart, from its attribute viewBox="0 0 width height".
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', chart)[0])
    full_width = f"{width + 2 * MARGIN:g}"
    full_height = f"{chart_top + height + MARGIN:g}"
    texts = []
    for row, line in enumerate(title_lines):
        # The baseline of a line of text lies at 80 % of the line's height.
        baseline = MARGIN + LINE_HEIGHT * (row + 0.8)
        texts.append(
            f'<text x="{MARGIN:g}" y="{baseline:g}" font-size="11.5" '
            f'font-weight="600"\n fill="currentColor">{line}</text>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full_width} {full_height}"\n '
            f'width="{full_width}" height="{full_height}">',
            STYLE,
            *texts,
            # `chart` completes this <svg …> tag: it holds the other attributes and the `>`, then
            # the drawing and the end tag.
            f'<svg x="{MARGIN:g}" y="{chart_top:g}"\n '
            f'width="{width:g}" height="{height:g}" {chart}',
            "</svg>",
        ]
    )


if __name__ == "__main__":
    cli.run(main)
