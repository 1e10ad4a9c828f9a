"""Bytes of the trained-model file: a safetensors file whose header says what it is.

    8 bytes   length of the header, little endian
    header    JSON: name, type, shape and place of every tensor, and our own text under "punzi"
    rest      the numbers

Our text holds the format's version, everything about the model that is not an array, and a
SHA-256 of all of it. A model file comes from strangers: nothing in it is ever executed (no
pickle), sizes are checked before anything is read, and one flipped bit is an error, never a
slightly different network.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from selection.errors import UserError
from selection.whole_files import write_bytes

VERSION = 2  # 1 held no definition of the search
MAX_FILE_BYTES = 64 * 2**20  # a 4-8-4-1 network takes 5 kB
MAX_HEADER_BYTES = 4 * 2**20

Arrays = dict[str, npt.NDArray[Any]]
Content = dict[str, Any]

_FOREIGN = {
    b"PK\x03\x04": "a zip archive, such as torch.save writes; it may hold a pickle",
    b"\x80": "a pickle; pickles can run any code and are never read here",
    b"root": "a ROOT file; the ntuples come after the model on the command line",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
    b"PAR1": "a parquet file",
    b"{": "a JSON text",
    b"\x08": "perhaps an ONNX file; give the model it was exported from",
}


class ModelFileError(UserError):
    """A trained-model file that cannot be used; the message says why and what to do."""


def write_model_file(path: Path, content: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes all or nothing."""
    text = json.dumps(
        {"version": VERSION, "sha256": _digest(content, arrays), "content": content},
        allow_nan=False,
        sort_keys=True,
    )
    data = save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, {"punzi": text})
    write_bytes(path, data)


def read_model_file(path: Path) -> tuple[Content, Arrays]:
    """Content and arrays, checked against their SHA-256; ModelFileError if anything is wrong."""
    data = _bytes(path)
    text = _our_text(path, data)
    version = text.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(_broken(path, f"the format's version is {version!r}"))
    if version < VERSION:
        msg = (
            f"{path} has format version {version}, which does not say how its features and cuts "
            f"are computed. Apply it with the version of punzi that trained it, or train again."
        )
        raise ModelFileError(msg)
    if version > VERSION:
        msg = (
            f"{path} has format version {version}; this program reads up to {VERSION}. "
            f"Install a newer version of punzi, or train again with this one."
        )
        raise ModelFileError(msg)
    try:
        arrays: Arrays = load(data)
        content = text["content"]
        intact = isinstance(content, dict) and text["sha256"] == _digest(content, arrays)
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(_broken(path, str(error))) from error
    if not intact:
        raise ModelFileError(_broken(path, "the SHA-256 does not fit the content"))
    return content, arrays


def _bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if path.is_dir():
            msg = f"{path} is a folder; give one model file, such as {path}/net-00.safetensors"
            raise ModelFileError(msg)
        if size > MAX_FILE_BYTES:
            msg = f"{path} has {size} bytes; a model has at most {MAX_FILE_BYTES}: not a model file"
            raise ModelFileError(msg)
        return path.read_bytes()
    except OSError as error:
        msg = f"the model {path} cannot be read: {error.strerror}"
        raise ModelFileError(msg) from error


def _our_text(path: Path, data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 10 or not 2 <= length <= min(MAX_HEADER_BYTES, len(data) - 8):
        foreign = next((what for magic, what in _FOREIGN.items() if data.startswith(magic)), None)
        if foreign:
            msg = f"{path} is {foreign}. A model is a .safetensors file written by `punzi train`."
            raise ModelFileError(msg)
        found = f"{len(data)} bytes whose header claims {length}"
        raise ModelFileError(_broken(path, found))
    try:
        header = json.loads(data[8 : 8 + length])
        text = header["__metadata__"]["punzi"]
    except (KeyError, TypeError):
        msg = (
            f"{path} is not a model of punzi: its safetensors header has no entry 'punzi'. "
            f"Models are written by `punzi train`."
        )
        raise ModelFileError(msg) from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(_broken(path, f"the header is not JSON ({error})")) from error
    try:
        ours = json.loads(text, parse_constant=_no_constant)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(_broken(path, f"the entry 'punzi' is not JSON ({error})")) from error
    if not isinstance(ours, dict):
        raise ModelFileError(_broken(path, "the entry 'punzi' is not a JSON object"))
    return ours


def _no_constant(name: str) -> float:
    msg = f"{name} is not a number"
    raise ValueError(msg)


def _broken(path: Path, found: str) -> str:
    return f"{path} is damaged or not a model file: {found}. Copy it again, or train again."


def _digest(content: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of the content and of name, type, shape and bytes of every array."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
