"""`punzi export`: the network for other programs, with a text that says how to feed it.

net.onnx            features (and the number of the fold, of several) -> score, scaling inside
net.fold0.onnx ...  each fold alone
net.basf2.py        the variables of basf2 that make the features, and the MVA expert
"""

from __future__ import annotations

from pathlib import Path

from analysis.apply.model import ApplyError
from models.export import basf2_recipe, export_onnx, fold_path
from models.trained import load_model
from selection.whole_files import write_text


def export_model(model: Path, output: Path, *, overwrite: bool) -> tuple[Path, ...]:
    """Write all files and return their paths; nothing is replaced unless asked."""
    recipe = output.with_suffix(".basf2.py")
    trained = load_model(model)
    if trained.conditions.cut is None:
        msg = f"{model} has no cut yet; `punzi evaluate` chooses one and writes it to models/"
        raise ApplyError(msg)
    folds = range(trained.n_folds if trained.n_folds > 1 else 0)
    for path in (output, recipe, *(fold_path(output, k) for k in folds)):
        if path.is_dir():
            msg = f"{path} is a folder; name the file, for example {path / 'net.onnx'}"
            raise ApplyError(msg)
        if path.exists() and not overwrite:
            msg = f"{path} exists; choose another name with -o, or replace it with --overwrite"
            raise ApplyError(msg)
    try:
        written = export_onnx(trained, output)
    except ImportError as error:
        raise ApplyError(str(error)) from None
    write_text(recipe, basf2_recipe(trained, output.name))
    return (*written, recipe)
