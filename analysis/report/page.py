"""The report as a page: style, tables, figures. Everything a person wrote is escaped here.

One file, nothing loaded from anywhere: images are inside as data URIs, and of scripts only that of
`script.py` is let run, by its hash. It reads without it too, on a telephone (400 px), on a screen
and on paper.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from analysis.report.script import SCRIPT, SCRIPT_HASH

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 0 16px 48px; color: #1b1f24;
  background: #fff; font: 16px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 24px 0 4px; }
h2 { font-size: 1.25rem; margin: 40px 0 8px; border-bottom: 1px solid #d5dae0; }
h3 { font-size: 1rem; margin: 20px 0 4px; }
nav a { margin-right: 14px; white-space: nowrap; }
a { color: #0b57a4; }
.about { color: #57606a; margin: 0 0 12px; }
.verdict { border-left: 6px solid; padding: 10px 14px; margin: 16px 0; font-size: 1.05rem; }
.good { border-color: #2a7d3f; background: #eef7f0; }
.warn { border-color: #b87400; background: #fdf5e4; }
.bad { border-color: #b3261e; background: #fcefee; }
ul { padding-left: 22px; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; margin: 8px 0; }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid #e4e8ec;
  white-space: nowrap; }
th { background: #f4f6f8; border-bottom: 2px solid #c8d0d8; vertical-align: bottom;
  white-space: normal; min-width: 4.5em; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
.named td:first-child { min-width: 11em; }
figure h3 { margin-top: 0; }
.figures { display: grid; gap: 26px; margin-top: 20px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; }
figure img { display: block; width: 100%; height: auto; max-width: 560px; margin: 0 auto; }
figure.wide img { max-width: 960px; }
figcaption { font-size: .86rem; color: #3b434c; }
pre { background: #f6f8fa; padding: 10px; overflow-x: auto; font-size: .8rem; line-height: 1.35;
  overflow-wrap: normal; }
summary { cursor: pointer; padding: 4px 0; }
.pointed { position: relative; max-width: 560px; margin: 0 auto; touch-action: pan-y;
  cursor: crosshair; }
.pointed i { position: absolute; width: 0; border-left: 1px solid #bd1f01; pointer-events: none; }
.readout { display: block; max-width: 560px; min-height: 3.1em; margin: 4px auto 8px; padding: 4px 8px;
  background: #f4f6f8; font-size: .82rem; font-variant-numeric: tabular-nums; }
.readout b, .readout span { display: inline-block; margin-right: 1.1em; }
th[aria-sort] { cursor: pointer; }
th[aria-sort=ascending]::after { content: " ▲"; }
th[aria-sort=descending]::after { content: " ▼"; }
@media print {
  body { max-width: none; font-size: 10pt; padding: 0; }
  nav { display: none; }
  h2 { break-after: avoid; }
  .figures { display: block; font-size: 0; }
  figure { display: inline-block; vertical-align: top; width: 47%; margin: 0 3% 12pt 0; font-size: 9pt; }
  figure.wide { display: block; width: 100%; }
  figcaption { font-size: 7.5pt; }
  figure h3 { font-size: 9pt; }
  figure.wide img { max-width: 16cm; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  th, td { white-space: normal; padding: 1px 4px; }
  pre { white-space: pre-wrap; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
  .readout, .pointed i { display: none; }
}
"""  # noqa: E501


def page(title: str, sections: Mapping[str, tuple[str, str]], *, head: str) -> str:
    """sections: anchor -> (heading, HTML); head: HTML above them."""
    links = " ".join(f'<a href="#{key}">{escape(name)}</a>' for key, (name, _) in sections.items())
    body = "\n".join(
        f'<section id="{key}">\n<h2>{escape(name)}</h2>\n{content}\n</section>'
        for key, (name, content) in sections.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{head}
<nav>{links}</nav>
{body}
<script>{SCRIPT}</script>
</body>
</html>
"""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Plain text in, a table that scrolls by itself on a narrow screen out."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    kind = "" if heads[0] else ' class="named"'  # rows have names of several words
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def details(name: str, content: str) -> str:
    return f"<details><summary>{escape(name)}</summary>\n{content}\n</details>"


def bullets(texts: Iterable[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape(text)}</li>" for text in texts) + "\n</ul>"


def paragraph(text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"


def preformatted(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def link(path: str, text: str) -> str:
    """A link inside the run folder; path is relative to it."""
    return f'<a href="{quote(path)}">{escape(text)}</a>'


def figure(folder: Path, about: Mapping[str, Any], *, wide: bool) -> str:
    """One figure of plots/figures.json with its caption and links to its files."""
    name = f"plots/{about['stem']}.png"
    image = base64.b64encode((folder / name).read_bytes()).decode()
    files = ", ".join(link(file, Path(file).suffix[1:].upper()) for file in about["files"])
    readout = escape(json.dumps(about["readout"], ensure_ascii=False)) if "readout" in about else ""
    pointer = f' data-readout="{readout}"' if readout else ""
    return (
        f'<figure id="{escape(about["stem"])}"{" class=wide" if wide else ""}{pointer}>\n'
        f'<img src="data:image/png;base64,{image}" alt="{escape(about["title"])}">\n'
        f"<figcaption><h3>{escape(about['title'])}</h3>\n"
        f"{escape(about['caption'])} Files: {files}.</figcaption>\n</figure>"
    )
