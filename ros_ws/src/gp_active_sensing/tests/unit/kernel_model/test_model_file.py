"""The model file: the same again after a round trip, and nothing but clear errors otherwise."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief.prior import TRANSFORMS
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model import model_file
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernel_model.model_file import (
    VERSION,
    _digest,
    model_from,
    read_model,
    write_model,
)
from gp_active_sensing.kernel_model.schema import HEADER, pack, unpack
from tests.cases import for_each
from tests.kernel_models import make_model, rows

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def model() -> KernelModel:
    X, y = rows(n=20)
    return make_model(("SE", "LIN×(PER+RQ)"), X, y, settings={"vbks": {"centre": True}})


@pytest.fixture
def path(model: KernelModel, tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.npz", model)


@pytest.fixture
def data(path: Path) -> bytes:
    return path.read_bytes()


def changed(
    data: bytes, change: Callable[[dict[str, Any], Arrays], None], *, digest: bool = True
) -> bytes:
    """Return the file as somebody would have written it who knows the format."""
    arrays = unpack(data)
    header = json.loads(arrays.pop(HEADER).tobytes())
    change(header, arrays)
    if digest:
        header["digest"] = _digest(header, arrays)
    return pack({HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8)} | arrays)


def test_round_trip_is_exact(model: KernelModel, path: Path) -> None:
    again = read_model(path)
    assert again.names == model.names
    for one, other in zip(model.fits, again.fits, strict=True):
        assert one.composite == other.composite
        for field in dataclasses.fields(one):
            a, b = getattr(one, field.name), getattr(other, field.name)
            assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b, field.name
    for part in ("belief", "scaling", "history"):
        one, other = getattr(model, part), getattr(again, part)
        for field in dataclasses.fields(one):
            a, b = getattr(one, field.name), getattr(other, field.name)
            same = np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b
            assert same, (part, field.name)
    for key in ("dropped", "input_names", "output_name", "rows", "source", "settings"):
        assert getattr(model, key) == getattr(again, key)


def test_a_model_that_could_not_be_read_again_is_not_written(
    model: KernelModel, tmp_path: Path
) -> None:
    bad = dataclasses.replace(model.fits[0], theta_mean=np.full(4, np.nan))
    out = tmp_path / "m.npz"
    for wrong, words in (
        (dataclasses.replace(model, fits=(bad, *model.fits[1:])), "theta_mean"),
        (dataclasses.replace(model, settings={"a": object()}), "plain data"),
        (dataclasses.replace(model, settings={"a": float("nan")}), "could not be read again"),
        (dataclasses.replace(model, fits=()), "kernels"),
    ):
        with pytest.raises(ValueError, match=words):
            write_model(out, wrong)
        assert not out.exists()


@for_each(
    ("settings", "words"),
    [
        ({"transform": "nonsense"}, "settings.transform: expected identity or log, got 'nonsense'"),
        ({"more": [float("inf")]}, r"header.settings.more\[0\]: expected a finite number"),
        ({"more": json.loads("[" * 40 + "]" * 40)}, "expected at most 30 levels"),
    ],
)
def test_settings_are_checked_when_a_model_is_read(
    data: bytes, settings: dict[str, Any], words: str
) -> None:
    def change(header: dict[str, Any], arrays: Arrays) -> None:
        header["settings"] |= settings

    with pytest.raises(ConfigError, match=words) as caught:
        model_from(changed(data, change), "m.npz")
    assert str(caught.value).startswith("m.npz: ")


def test_the_transforms_are_those_of_the_belief() -> None:
    assert tuple(TRANSFORMS) == model_file.TRANSFORMS


def test_not_a_model(tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, weights=np.zeros(3))
    text = tmp_path / "town.yaml"
    text.write_text("map: {kind: line}\n")
    with pytest.raises(ConfigError, match=r"no belief over kernels\); expected one that"):
        read_model(other)
    for path in (text, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ConfigError, match=path.name):
            read_model(path)


def test_truncated_anywhere(path: Path) -> None:
    data = path.read_bytes()
    for length in [0, 1, 3, 40, *range(100, len(data), 997), len(data) - 1]:
        with pytest.raises(ConfigError, match=r"damaged or cut short .*; copy it again, or learn"):
            model_from(data[:length])


def test_pickled_objects_are_never_run(path: Path, tmp_path: Path) -> None:
    entry = io.BytesIO()
    np.lib.format.write_array(entry, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", entry.getvalue())
    with pytest.raises(ConfigError, match="extra: expected an array of float64"):
        read_model(path)


def test_what_is_packed_or_claims_to_be_large_is_refused(path: Path, tmp_path: Path) -> None:
    squeezed = tmp_path / "squeezed.npz"
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"\0" * ((1 << 26) + 1))
    with pytest.raises(ConfigError, match="a header of more than 67108864 bytes"):
        read_model(squeezed)
    squeezed.write_bytes(path.read_bytes())
    with zipfile.ZipFile(squeezed, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("extra.npy", b"\0" * 10_000_000)
    with pytest.raises(ConfigError, match="entries are larger than the file"):
        read_model(squeezed)
    entry = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 1 << 20)}
    np.lib.format.write_array_header_1_0(entry, head)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", entry.getvalue())
    with pytest.raises(ConfigError, match="0 bytes for an array of shape"):
        read_model(path)


def drop(key: str) -> Callable[[dict[str, Any], Arrays], None]:
    def change(header: dict[str, Any], arrays: Arrays) -> None:
        (arrays if key in arrays else header).pop(key)

    return change


def put(key: str, value: Any) -> Callable[[dict[str, Any], Arrays], None]:
    def change(header: dict[str, Any], arrays: Arrays) -> None:
        if key in arrays:
            arrays[key] = value(arrays[key]) if callable(value) else np.asarray(value, dtype="<f8")
        else:
            header[key] = value

    return change


def of_kernel(key: str, value: Any) -> Callable[[dict[str, Any], Arrays], None]:
    return lambda header, arrays: header["kernels"][0].__setitem__(key, value)


@for_each(
    ("change", "words"),
    [
        (drop("fit1.root"), "fit1.root: is missing"),
        (put("elbo", True), "header.elbo: expected a number"),
        (put("kernels", []), "header.kernels: expected a list"),
        (put("input_names", ["x", "x"]), "different words"),
        (put("output_scale", 0.0), "header.output_scale"),
        (put("belief.probabilities", [0.5, 0.6]), "sum to 1"),
        (put("belief.root", [[1.0, 0.0], [0.0, 0.0]]), "Cholesky"),
        (put("fit0.theta_mean", lambda a: a + np.inf), "fit0.theta_mean: expected finite"),
        (put("fit0.mean", lambda a: a[:-1]), "fit0.inducing: expected shape"),
        (put("history.softmax", lambda a: a[:, :1]), "history.softmax: expected shape"),
        (put("fit0.theta_root", lambda a: 9.0 * np.tril(np.ones_like(a))), "deviations of 10"),
        (put("fit0.root", lambda a: a + 0.1), "fit0.root: expected a lower triangle"),
        (of_kernel("name", "SE+"), "is no kernel"),
        (of_kernel("name", "SE+MAT32"), "Did you mean 'matern32'"),
        (of_kernel("name", "(" * 5000), "text of at most 400"),
        (of_kernel("whitened", 1), "whitened: expected true or false"),
        (lambda header, arrays: arrays.__setitem__("more", np.zeros(1)), "more: is no entry"),
    ],
)
def test_contents_that_make_no_sense(
    path: Path, change: Callable[[dict[str, Any], Arrays], None], words: str
) -> None:
    data = changed(path.read_bytes(), change)
    with pytest.raises(ConfigError, match=words):
        model_from(data)


def what_is_said_of(data: bytes) -> str:
    """Return the message of the refusal; "" for a file that says what it said before."""
    try:
        found = model_from(data, "f.npz")
    except ConfigError as error:
        return str(error)
    assert found.names == ("SE", "(PER+RQ)×LIN")
    return ""


def test_hundreds_of_damaged_files_are_refused_with_a_sentence(path: Path) -> None:
    """Bytes are changed, cut out, doubled; a file is as it was or it is refused."""
    whole = path.read_bytes()
    rng = random.Random(0)
    refused = 0
    for _ in range(600):
        data = bytearray(whole)
        how = rng.randrange(5)
        at = rng.randrange(len(data))
        if how == 0:
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at : at + rng.randrange(1, 4000)]
        elif how == 2:
            data[at:at] = data[at : at + rng.randrange(1, 400)]
        elif how == 3:
            data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"PK\x03\x04"))
        else:
            end = bytes(data[-3000:])
            data[-3000:] = rng.sample(end, len(end))  # the list of the entries is there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a name that comes twice
            said = what_is_said_of(bytes(data))
        refused += bool(said)
        assert said == "" or said.startswith("f.npz: ")
    assert refused > 550


def test_a_changed_number_is_noticed(path: Path) -> None:
    data = changed(path.read_bytes(), put("fit0.mean", lambda a: a + 1e-9), digest=False)
    with pytest.raises(ConfigError, match="digest"):
        model_from(data)


def test_a_newer_layout_is_newer_and_not_damaged(data: bytes, tmp_path: Path) -> None:
    arrays = unpack(data)
    header = json.loads(arrays.pop(HEADER).tobytes())
    header |= {"version": VERSION + 1, "written_by": "9.9.9", "digest": "of another kind"}
    text = json.dumps(header).encode()
    entry = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of versions that old programs cannot read
        np.lib.format.write_array(entry, np.frombuffer(text, np.uint8), (2, 0))
    with zipfile.ZipFile(tmp_path / "newer.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", entry.getvalue())
    with pytest.raises(ConfigError, match=r"newer gp_active_sensing \(9.9.9, format 2; this is"):
        read_model(tmp_path / "newer.npz")
