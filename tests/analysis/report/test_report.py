"""The report: complete, safe to open, readable; looked at in a real browser where there is one."""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest

from analysis.config.configuration import Configuration
from analysis.figures.draw import load_list
from analysis.report.page import page, table
from analysis.report.script import SCRIPT_HASH
from analysis.report.stage import ReportError, outcome, write_report
from analysis.report.summary import mass_ranges, summary_of
from analysis.run.folder import RunFolder
from selection.resolution import WidthFit

BROWSER = next(
    (b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None
)
PROBE = """<script>
function pointedAt(id) {
  const figure = document.getElementById(id), data = JSON.parse(figure.dataset.readout);
  const box = figure.querySelector(".pointed"), line = box.querySelector("i");
  const [left, right, top, bottom] = data.frame, [low, high] = data.x;
  const told = (how, mass) => {
    const at = box.getBoundingClientRect(), text = figure.querySelector("output").textContent;
    const share = left + (parseFloat(text) - low) / (high - low) * (right - left);
    return {figure: id, how, mass, text, line: line.getBoundingClientRect().left - at.left,
            wanted: share * at.width};
  };
  const found = [0.15, 0.5, 0.9].map(share => {
    box.scrollIntoView();
    const at = box.getBoundingClientRect();
    const x = at.left + at.width * (left + share * (right - left));
    const y = at.top + at.height * (top + bottom) / 2;
    const event = new PointerEvent("pointermove", {clientX: x, clientY: y, bubbles: true});
    document.elementFromPoint(x, y).dispatchEvent(event);
    return told("pointer", low + share * (high - low));
  });
  box.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}));
  return [...found, told("key", null)];
}
function sortedBy(name) {
  const table = document.querySelector("#reach table");
  const heads = [...table.querySelectorAll("th")];
  const column = heads.findIndex(cell => cell.textContent === name);
  const cells = () => [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
  const found = [cells()];
  for (let i = 0; i < 3; i++) { heads[column].click(); found.push(cells()); }
  return found;
}
addEventListener("load", () => {
  const images = [...document.images];
  parent.postMessage(JSON.stringify({
    images: images.length,
    shown: images.filter(i => i.complete && i.naturalWidth > 0 && i.clientWidth > 100).length,
    pointed: [...pointedAt("sigma_min"), ...pointedAt("limit_cross_section")],
    sorted: sortedBy("efficiency"),
    page: document.documentElement.scrollWidth,
    window: innerWidth,
  }), "*");
});
</script>"""
FRAME = """<!DOCTYPE html><script>
addEventListener("message", m => document.documentElement.setAttribute("data-probe", m.data));
</script><iframe src="probed.html" style="width: {width}px; height: 900px; border: 0"></iframe>"""


class Page(HTMLParser):
    """Sources, links, anchors and open elements of a page."""

    def __init__(self):
        super().__init__()
        self.sources, self.links, self.ids, self.open, self.tags = [], [], set(), [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids |= {found["id"]} if "id" in found else set()
        self.sources += [found["src"]] if "src" in found else []
        self.links += [found["href"]] if tag == "a" else []
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(evaluated, drawn):
    run, config, sets, _ = evaluated
    return write_report(run, config, sets)


@pytest.fixture(scope="module")
def parsed(report):
    found = Page()
    found.feed(report.read_text())
    assert found.open == []
    return found


def test_report_is_one_file_with_every_figure_inside(evaluated, report, parsed):
    assert len(parsed.sources) == len(load_list(evaluated[0]))
    assert all(source.startswith("data:image/png;base64,") for source in parsed.sources)
    assert parsed.tags.count("script") == 1  # ours, and the page lets no other run
    assert f"script-src '{SCRIPT_HASH}'" in report.read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", report.read_text())


def test_links_lead_to_files_of_the_run_or_places_on_the_page(report, parsed):
    assert len(parsed.links) > 20
    for href in parsed.links:
        if href.startswith("#"):
            assert href[1:] in parsed.ids
        else:
            assert (report.parent / unquote(href)).is_file(), href


def test_same_run_gives_the_same_report(evaluated, report):
    before = report.read_bytes()
    run, config, sets, _ = evaluated
    assert write_report(run, config, sets).read_bytes() == before


def test_provenance_names_every_input_file_by_its_content(evaluated, report):
    run, _, sets, _ = evaluated
    inputs = json.loads((run.path / "provenance.json").read_text())["inputs"]
    assert {ds.name: set(ds.files) for ds in sets} == {n: set(files) for n, files in inputs.items()}
    assert inputs["recorded"].popitem()[1] == min(inputs["background"].items())[1]  # a copy of it


def test_text_of_the_configuration_cannot_become_markup(evaluated, drawn, tmp_path):
    run, config, sets, _ = evaluated
    copy = RunFolder(tmp_path / "<b>run&")
    shutil.copytree(run.path, copy.path)
    raw = config.model_dump(mode="json")
    raw["settings"]["plots"]["text"] = "<script>alert(1)</script>"
    raw["samples"]["background"]["label"] = "</pre><img src=x>"
    text = write_report(copy, Configuration.model_validate(raw), sets).read_text()
    assert text.count("<script") == 1
    assert "<img src=x" not in text
    assert "<b>run" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_run_without_figures_has_no_report(evaluated, tmp_path):
    _, config, sets, _ = evaluated
    with pytest.raises(ReportError, match="punzi plot"):
        write_report(RunFolder(tmp_path), config, sets)


def test_summary_tells_the_smallest_cross_section_and_where(evaluated, drawn):
    run, config, _, _ = evaluated
    e = outcome(run, config)
    curve = next(
        c for c in e.means
        if (c.classifier, c.selection, c.quoted_on) == ("punzi", "single_cut", "validation")
    )  # fmt: skip
    best = int(np.argmin(curve.sigma_min_fb))
    text = summary_of(e).sentences[0]
    assert f"σ_min = {curve.sigma_min_fb[best]:.3g} " in text
    assert f"at {curve.mass_gev[best]:g} GeV" in text


def test_better_and_worse_follow_the_ratio_of_sigma_min(evaluated, drawn):
    run, config, _, _ = evaluated
    e = outcome(run, config)

    def scaled(factor):
        return [
            replace(f, sigma_min_fb=np.full(5, 10.0 * (factor if f.classifier == "punzi" else 1)))
            for f in e.figures
        ]

    def told(factor):
        return summary_of(replace(e, figures=scaled(factor), failed={})).sentences[1]

    assert "better at 1–4 GeV (σ_min 40 % smaller)" in told(0.6)
    assert "worse" not in told(0.6)
    assert "worse at 1–4 GeV (σ_min 30 % larger)" in told(1.3)
    assert "equal at 1–4 GeV" in told(1.01)


def test_warnings_name_failures_losses_and_unused_fits(evaluated, drawn):
    run, config, _, _ = evaluated
    e = replace(
        outcome(run, config),
        failed={1: ["accepts all"]},
        lost={"background": 0.25},
        fits=(WidthFit(8.9, 86, reason="86 events, 100 needed"),),
    )
    found = summary_of(e)
    text = " ".join(found.warnings)
    assert found.state == "warn"
    assert "Network 1 failed: accepts all." in text
    assert "background: 25 % of the rows were lost" in text
    assert "8.9 GeV (86 events, 100 needed)" in text
    nothing_good = summary_of(replace(e, failed={0: ["x"], 1: ["y"]}))
    assert nothing_good.state == "bad"
    assert "did not work" in nothing_good.verdict


def test_ranges_join_neighbours():
    masses = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert mass_ranges(masses, masses[[0, 1, 2, 4]]) == "0.1–0.3, 0.5 GeV"
    assert mass_ranges(masses, masses[:0]) == "no mass"


def test_tables_escape_every_cell():
    html = page("<t>", {"a": ("<h>", table(["<x>"], [["<y>"]]))}, head="")
    assert all(f"&lt;{c}&gt;" in html for c in "thxy")


def browse(path, profile, *options):
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr"
    )
    command = [BROWSER, *flags.split(), f"--user-data-dir={profile}", *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.skipif(BROWSER is None, reason="no chromium here; the page is checked by its elements")
@pytest.mark.parametrize("width", [1280, 400])
def test_browser_shows_images_numbers_under_the_pointer_and_sorted_tables(
    evaluated, report, tmp_path, width
):
    text = re.sub(r"<meta http-equiv=[^>]*>", "", report.read_text())  # it forbids our probe
    probed = tmp_path / "probed.html"
    probed.write_text(text.replace("</body>", f"{PROBE}</body>"))
    frame = tmp_path / "frame.html"  # can be as narrow as we like, a window cannot
    frame.write_text(FRAME.replace("{width}", str(width)))
    done = browse(frame, tmp_path / "profile", "--window-size=1400,950", "--dump-dom")
    found = re.search(r'data-probe="([^"]*)"', done.stdout)
    assert found, done.stderr
    probe = json.loads(unescape(found.group(1)))
    assert probe["images"] == probe["shown"] > 15
    assert probe["page"] <= probe["window"] == width
    check_pointed(evaluated[0], probe["pointed"])
    assert len(probe["sorted"]) == 4
    first, rising, falling, again = ([float(cell) for cell in column] for column in probe["sorted"])
    assert (rising, falling) == (sorted(first), sorted(first)[::-1])
    assert first == again != falling


def check_pointed(run, pointed):
    """Numbers shown at a share of the figure's frame against those of the stages before."""
    limits = csv_rows(run.limits_csv)
    merits = [
        row
        for row in csv_rows(run.path / "plots/sigma_min.csv")
        if (row["classifier"], row["selection"]) == ("punzi", "single_cut")
    ]
    for figure, rows, name, head in (
        ("sigma_min", merits, "sigma_min_fb", "Punzi-net, single cut"),
        ("limit_cross_section", limits, "median_fb", "Expected"),
    ):
        masses = np.array([float(row["mass_gev"]) for row in rows])
        *by_pointer, by_key = [p for p in pointed if p["figure"] == figure]
        at = [int(np.abs(masses - p["mass"]).argmin()) for p in by_pointer]
        assert len(set(at)) == 3
        at.append(at[-1] - 1)  # the arrow to the left
        for i, p in zip(at, (*by_pointer, by_key), strict=True):
            assert float(p["text"].split(" GeV")[0]) == pytest.approx(masses[i], rel=1e-5)
            value = re.search(rf"{head}[^:]*: ([\d.e+-]+)", p["text"]).group(1)
            assert float(value) == pytest.approx(float(rows[i][name]), rel=1e-3)
            assert p["line"] == pytest.approx(p["wanted"], abs=1.0)  # pixels


def csv_rows(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.skipif(BROWSER is None, reason="no chromium here; the page is checked by its elements")
def test_figures_are_printed_beside_each_other(evaluated, report, tmp_path):
    """Two by two: a page for each would be a waste of paper."""
    paper = tmp_path / "report.pdf"
    browse(report, tmp_path / "profile", f"--print-to-pdf={paper}")
    pages = len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))
    figures = len(json.loads(evaluated[0].figure_list.read_text()))
    assert 0 < pages < figures / 2


@pytest.mark.skipif(BROWSER is None, reason="no chromium here; the page is checked by its elements")
def test_browser_has_nothing_to_complain_about(report, tmp_path):
    shot = tmp_path / "shot.png"
    done = browse(report, tmp_path / "profile", f"--screenshot={shot}", "--window-size=1280,900")
    assert "CONSOLE" not in done.stderr
    assert shot.stat().st_size > 10_000
