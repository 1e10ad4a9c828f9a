"""The trained network as one ONNX file, and how basf2 computes its inputs.

    features (n, n_features) float32  ->  score (n, 1) float32

Scaling is part of the graph, the batch size is free. Between the casts everything is double, as
in `models.scoring`: a steep network in float32 differs by 1e-5 from one runtime to the next.
Operators are the oldest that do the work (opset 13), so that old runtimes read the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from models.trained import TrainedModel
from selection.whole_files import write_bytes

INPUT, OUTPUT = "features", "score"


def export_onnx(model: TrainedModel, path: Path | str) -> None:
    """Writes the model as one ONNX file; needs the extra `onnx`."""
    write_bytes(Path(path), onnx_model(model).SerializeToString())


def onnx_model(model: TrainedModel) -> Any:
    """The ONNX graph of the model, checked by onnx itself."""
    try:
        import onnx  # an extra: only the export needs it
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        msg = "exporting to ONNX needs the extra: pip install 'punzi[onnx]'"
        raise ImportError(msg) from error

    low = model.feature_min.astype(np.float64)
    arrays = {"low": low, "range": model.feature_max.astype(np.float64) - low}
    nodes = [
        helper.make_node("Cast", [INPUT], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node("Sub", ["wide", "low"], ["moved"]),
        helper.make_node("Div", ["moved", "range"], ["h0"]),
    ]
    last = len(model.weights) - 1
    for i, (weight, bias) in enumerate(zip(model.weights, model.biases, strict=True)):
        arrays[f"w{i}"], arrays[f"b{i}"] = weight.astype(np.float64), bias.astype(np.float64)
        gemm_inputs = [f"h{i}", f"w{i}", f"b{i}"]
        nodes.append(helper.make_node("Gemm", gemm_inputs, [f"z{i}"], transB=1))
        nodes.append(helper.make_node("Sigmoid" if i == last else "Tanh", [f"z{i}"], [f"h{i + 1}"]))
    nodes.append(helper.make_node("Cast", [f"h{last + 1}"], [OUTPUT], to=TensorProto.FLOAT))

    def signature(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])

    graph = helper.make_graph(
        nodes,
        "punzi_net",
        [signature(INPUT, len(model.features))],
        [signature(OUTPUT, 1)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="punzi"
    )
    facts = {
        "features": " ".join(model.features),
        "search": model.search.name,
        "pass": f"score >= {model.cut!r}",
        "sqrt_s_gev": repr(model.conditions.sqrt_s_gev),
    }
    helper.set_model_props(made, facts)
    onnx.checker.check_model(made, full_check=True)
    return made


def basf2_recipe(model: TrainedModel, onnx_name: str) -> str:
    """Steering lines that compute the inputs in basf2 and put the file into its MVA package."""
    search, conditions = model.search, model.conditions
    lines = [
        f'variables.addAlias("{name}", {json.dumps(text)})' for name, text in search.basf2.items()
    ]
    unknown = [f for f in search.features if f.name not in search.basf2]
    lines += [f"# no alias is known for {f.name} = {_one_line(f.value)}" for f in unknown]
    aliases = "\n".join(lines)
    inputs = ", ".join(f'"{name}"' for name in model.features)
    cuts = "\n".join(f"#   {name}: {_one_line(text)}" for name, text in search.cuts.items())
    return f"""\
# Inputs of {onnx_name} in basf2; pass: score >= {model.cut:g}.
# Trained at sqrt(s) = {conditions.sqrt_s_gev:.4f} GeV for {conditions.luminosity_inv_fb:g} /fb;
# apply the same preselection first:
{cuts}
import basf2_mva_util
from variables import variables

{aliases}

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
