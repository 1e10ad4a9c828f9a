"""The trained network as one ONNX file, and how basf2 computes its inputs.

    features (n, n_features) float32             ->  score (n, 1) float32       of one fold
    features and fold (n, n_features + 1)        ->  score (n, 1)               of the whole model

The last column of the second is the number of the fold (0, 1, ...): all networks are computed and
one of them is taken. Scaling is part of the graph, the batch size is free. Between the casts
everything is double, as in `models.scoring`: a steep network in float32 differs by 1e-5 from one
runtime to the next. Operators are the oldest that do the work (opset 13), so that old runtimes read
the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from models.trained import TrainedModel
from selection.keys import key_start
from selection.whole_files import write_bytes

INPUT, OUTPUT = "features", "score"


def export_onnx(model: TrainedModel, path: Path | str) -> list[Path]:
    """Writes the model as one ONNX file and, of several folds, each; needs the extra `onnx`."""
    whole = Path(path)
    write_bytes(whole, onnx_model(model).SerializeToString())
    written = [whole]
    for k in range(model.n_folds if model.n_folds > 1 else 0):
        written.append(fold_path(whole, k))
        write_bytes(written[-1], onnx_model(model.of_fold(k)).SerializeToString())
    return written


def fold_path(whole: Path, fold: int) -> Path:
    """`net.fold3.onnx` beside `net.onnx`."""
    return whole.with_name(f"{whole.stem}.fold{fold}{whole.suffix}")


def onnx_model(model: TrainedModel) -> Any:
    """The ONNX graph of the model, checked by onnx itself."""
    try:
        import onnx  # an extra: only the export needs it
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        msg = "exporting to ONNX needs the extra: pip install 'punzi[onnx]'"
        raise ImportError(msg) from error

    n_features, n_folds = len(model.features), model.n_folds
    arrays: dict[str, Any] = {}
    nodes = [helper.make_node("Cast", [INPUT], ["wide"], to=TensorProto.DOUBLE)]
    source = "wide"
    if n_folds > 1:
        at = {"zero": 0, "n": n_features, "end": n_features + 1, "columns": 1}
        arrays |= {name: np.array([value], np.int64) for name, value in at.items()}
        nodes += [
            helper.make_node("Slice", ["wide", "zero", "n", "columns"], ["inputs"]),
            helper.make_node("Slice", ["wide", "n", "end", "columns"], ["fold"]),
            helper.make_node("Cast", ["fold"], ["which"], to=TensorProto.INT64),
        ]
        source = "inputs"
    last = len(model.networks[0].weights) - 1
    for k, network in enumerate(model.networks):
        low = network.feature_min.astype(np.float64)
        arrays |= {f"low{k}": low, f"range{k}": network.feature_max.astype(np.float64) - low}
        nodes += [
            helper.make_node("Sub", [source, f"low{k}"], [f"moved{k}"]),
            helper.make_node("Div", [f"moved{k}", f"range{k}"], [f"h{k}_0"]),
        ]
        for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            arrays |= {f"w{k}_{i}": weight.astype(np.float64), f"b{k}_{i}": bias.astype(np.float64)}
            gemm = [f"h{k}_{i}", f"w{k}_{i}", f"b{k}_{i}"]
            squash = "Sigmoid" if i == last else "Tanh"
            nodes.append(helper.make_node("Gemm", gemm, [f"z{k}_{i}"], transB=1))
            nodes.append(helper.make_node(squash, [f"z{k}_{i}"], [f"h{k}_{i + 1}"]))
    result = f"h0_{last + 1}"
    if n_folds > 1:
        every = [f"h{k}_{last + 1}" for k in range(n_folds)]
        nodes.append(helper.make_node("Concat", every, ["all"], axis=1))
        nodes.append(helper.make_node("GatherElements", ["all", "which"], ["chosen"], axis=1))
        result = "chosen"
    nodes.append(helper.make_node("Cast", [result], [OUTPUT], to=TensorProto.FLOAT))

    def signature(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])

    graph = helper.make_graph(
        nodes,
        "punzi_net",
        [signature(INPUT, n_features + (n_folds > 1))],
        [signature(OUTPUT, 1)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="punzi"
    )
    facts = {
        "features": " ".join(model.features),
        "search": model.search.name,
        "folds": str(n_folds),
        "pass": f"score >= {model.cut!r}",
        "sqrt_s_gev": repr(model.conditions.sqrt_s_gev),
    }
    helper.set_model_props(made, facts)
    onnx.checker.check_model(made, full_check=True)
    return made


FOLD_MODULE = """
# The network of an event is that of its fold, by a hash of its identity (selection/keys.py); add
# path.add_module(Fold()) before the MVAExpert. A number that the training ntuples lacked (the
# production?) counted as 0 there and must be 0 here.
import basf2
from ROOT import Belle2


class Fold(basf2.Module):
    def initialize(self):
        self.event_info = Belle2.PyStoreObj("EventMetaData")
        self.extra = Belle2.PyStoreObj("EventExtraInfo")
        self.extra.registerInDataStore()

    def event(self):
        about, mask = self.event_info.obj(), (1 << 64) - 1
        key = {start}
        for number in (about.getExperiment(), about.getRun(), about.getEvent(),
                       about.getProduction(), 0):
            z = ((key ^ (number & mask)) + 0x9E3779B97F4A7C15) & mask
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            key = z ^ (z >> 31)
        if not self.extra.isValid():
            self.extra.create()
        self.extra.obj().setExtraInfo("fold", float(((key >> 32) * {n_folds}) >> 32))

"""


def basf2_recipe(model: TrainedModel, onnx_name: str) -> str:
    """Steering lines that compute the inputs in basf2 and put the file into its MVA package."""
    search, conditions = model.search, model.conditions
    lines = [
        f'variables.addAlias("{name}", {json.dumps(text)})' for name, text in search.basf2.items()
    ]
    unknown = [f for f in search.features if f.name not in search.basf2]
    lines += [f"# no alias is known for {f.name} = {_one_line(f.value)}" for f in unknown]
    aliases = "\n".join(lines)
    names = [*model.features, *(["eventExtraInfo(fold)"] if model.n_folds > 1 else [])]
    inputs = ", ".join(f'"{name}"' for name in names)
    fold = (
        FOLD_MODULE.format(n_folds=model.n_folds, start=hex(key_start("")))
        if model.n_folds > 1
        else ""
    )
    cuts = "\n".join(f"#   {name}: {_one_line(text)}" for name, text in search.cuts.items())
    return f"""\
# Inputs of {onnx_name} in basf2; pass: score >= {model.cut:g}.
# Trained at sqrt(s) = {conditions.sqrt_s_gev:.4f} GeV for {conditions.luminosity_inv_fb:g} /fb;
# apply the same preselection first:
{cuts}
import basf2_mva_util
from variables import variables

{aliases}
{fold}
weightfile = basf2_mva_util.create_onnx_mva_weightfile(
    "{onnx_name}",
    outputName="{OUTPUT}",
    variables=[{inputs}],
    target_variable="isSignal",
)
weightfile.save("{Path(onnx_name).stem}.root")
# then, in the steering file, after reconstructing the list, here vpho:mumu:
#   path.add_module("MVAExpert", listNames=["vpho:mumu"], extraInfoName="punzi",
#                   identifier="{Path(onnx_name).stem}.root")
#   and the variable extraInfo(punzi) is the score.
"""


def _one_line(text: str) -> str:
    """Words of a stranger's model, as they may stand in a comment."""
    return " ".join(text.split())
