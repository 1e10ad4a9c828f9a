"""Clusters from a small YAML file, and files from a server."""

import http.server
import threading
from functools import partial
from pathlib import Path

import pytest

from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.run.executors import (
    Execution,
    ExecutorError,
    batch_cluster_class,
    dask_client,
    read_batch_system,
)
from analysis.run.folder import open_run
from analysis.select.skim import read_table
from analysis.select.stage import select_events

GOOD = (
    "kind: slurm\njobs: 20\ncores: 2\nmemory: 4GB\noptions: {queue: long, walltime: '02:00:00'}\n"
)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (
            "slurm",
            "{queue: long, walltime: '02:00:00'}",
            ["#SBATCH -p long", "#SBATCH -t 02:00:00"],
        ),
        ("lsf", "{queue: long, walltime: '02:00'}", ["#BSUB -q long", "#BSUB -W 02:00"]),
        ("htcondor", "{disk: 1GB}", ["RequestCpus = MY.DaskWorkerCores", "RequestDisk"]),
    ],
)
# dask-jobqueue leaves its never-started scheduler to the garbage collector
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_a_batch_system_is_described_in_five_lines(tmp_path, kind, options, words):
    path = tmp_path / "cluster.yaml"
    path.write_text(f"kind: {kind}\njobs: 2\ncores: 2\nmemory: 4GB\noptions: {options}\n")
    system = read_batch_system(path)
    job = batch_cluster_class(kind).job_cls(
        scheduler="tcp://head:8786",
        name="punzi",
        cores=system.cores,
        memory=system.memory,
        **system.options,
    )
    script = job.job_script()
    assert all(word in script for word in words), script


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("slurm", "pbs"), "'slurm', 'htcondor' or 'lsf'"),
        (GOOD.replace("jobs: 20\n", ""), "jobs: Field required"),
        (GOOD.replace("cores", "core"), "Extra inputs are not permitted"),
        ("kind: [", "cannot read the cluster description"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, text, message):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ExecutorError, match=message):
        read_batch_system(path)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("analysis.run.executors.CONNECT_SECONDS", 1)
    with (
        pytest.raises(ExecutorError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"),
        dask_client(workers=1, cluster="tcp://127.0.0.1:9"),
    ):
        pass


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A file server as real ones are: it answers for parts of a file."""

    def do_GET(self):
        content = Path(self.translate_path(self.path)).read_bytes()
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or len(content)), len(content) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end}/{len(content)}")
        self.send_header("Content-Length", str(end - begin + 1))
        self.end_headers()
        self.wfile.write(content[begin : end + 1])

    def log_message(self, *_args):
        pass


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_files_from_a_server_give_the_same_events(small_inputs, tmp_path):
    handler = partial(Ranges, directory=str(small_inputs))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        text = (small_inputs / "datasets.yaml").read_text()
        text = text.replace(
            "background_*.root", f"[{address}/background_0.root, {address}/background_1.root]"
        )
        (tmp_path / "remote.yaml").write_text(
            text.replace("signal_{mass}", f"{address}/signal_{{mass}}")
        )
        tables = []
        for name, config_path in (
            ("far", tmp_path / "remote.yaml"),
            ("near", small_inputs / "datasets.yaml"),
        ):
            config = load(config_path)
            with open_run(tmp_path / name) as run:
                sets = datasets(config, folder=config_path.parent)
                tables.append(
                    read_table(select_events(run, config, sets, Execution("threads", 2)).parts)
                )
        server.shutdown()
    far, near = tables
    assert far.axis.tobytes() == near.axis.tobytes()
    assert far.key.tobytes() == near.key.tobytes()
