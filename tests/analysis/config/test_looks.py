"""Style, font and colours in a configuration: refused with line and nearest name, or drawn."""

import pytest

from analysis.config.configuration import ConfigError, load

PLOTS = "settings:\n  plots:\n"


def written(small_inputs, tmp_path, text):
    path = tmp_path / "datasets.yaml"
    path.write_text((small_inputs / "datasets.yaml").read_text() + text)
    return path


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "    colours: {backgrond: red}",
            r"line \d+: .*colours.backgrond: no such sample; did you",
        ),
        ("    colours: {background: rred}", r"line \d+: .*no colour 'rred'; did you mean 'r"),
        ("    colours: {signal: red}", r"line \d+: .*signal: colours are of backgrounds"),
        ("    style: CMSS", r"line \d+: settings.plots.style: .*nearest: CMS"),
        ("    style: no.mplstyle", r"line \d+: settings.plots.style: no style file no.mplstyle"),
        ("    font: DejaVu Seriff", r"line \d+: settings.plots.font: .*nearest: DejaVu Serif"),
        ("    width: three_column", r"line \d+: settings.plots.width"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_line(small_inputs, tmp_path, text, match):
    with pytest.raises(ConfigError, match=match):
        load(written(small_inputs, tmp_path, f"{PLOTS}{text}\n"))


def test_a_style_file_becomes_its_parameters(small_inputs, tmp_path):
    text = 'font.size : 9  # points\n# a comment\naxes.edgecolor: "#ff0000"\n'
    (tmp_path / "mine.mplstyle").write_text(text)
    path = written(small_inputs, tmp_path, f"{PLOTS}    style: mine.mplstyle\n")
    plots = load(path).settings.plots
    assert plots.style == {"font.size": "9", "axes.edgecolor": "#ff0000"}
    assert plots.width_in is None
    assert load(path, ["plots.width=two_column"]).settings.plots.width_in == 7.0
