"""Pickles that name a callable, in the containers that headcount ever read or may be taken to read.

Nothing here is run by the tests themselves: a pickle is put where a file of headcount was.
"""

from __future__ import annotations

import importlib
import io
import pickle
import pkgutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch


class Call:
    """A pickle of this is a call: `name` (dotted) with these values."""

    def __init__(self, name: str, *values: Any) -> None:
        module, _, inner = name.rpartition(".")
        self.what = getattr(importlib.import_module(module), inner), values

    def __reduce__(self) -> Any:
        return self.what


def containers(call: Call) -> dict[str, bytes]:
    """The call as a bare pickle, inside what `torch.save` writes, and inside an .npz."""
    zipped, arrays = io.BytesIO(), io.BytesIO()
    torch.save({"parts": [call], "lost": []}, zipped)
    holder = np.empty(1, dtype=object)
    holder[0] = call
    np.savez(arrays, parts=holder)
    return {
        "pickle": pickle.dumps(call),
        "torch": zipped.getvalue(),
        "npz": arrays.getvalue(),
    }


def naming(name: str) -> dict[str, bytes]:
    """The same containers, with a pickle that asks for a callable by its name and calls it."""
    module, _, inner = name.rpartition(".")
    data = f"c{module}\n{inner}\n(tR.".encode()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + data)
        archive.writestr("archive/version", b"3\n")
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data
    arrays = io.BytesIO()
    with zipfile.ZipFile(arrays, "w") as archive:
        archive.writestr("parts.npy", array)
    return {"pickle": data, "torch": zipped.getvalue(), "npz": arrays.getvalue()}


def callables(package: str) -> Iterator[str]:
    """The dotted name of everything that can be called in a package and its modules."""
    top = importlib.import_module(package)
    names = [package]
    if hasattr(top, "__path__"):
        names += [
            one.name for one in pkgutil.walk_packages(top.__path__, f"{package}.", lambda _: None)
        ]
    for name in names:
        if any(part in name for part in (".tests", ".conftest", "__main__", ".f2py")):
            continue
        try:
            module = importlib.import_module(name)
        except (ImportError, AttributeError, RuntimeError):
            continue
        for inner in sorted(vars(module)):
            if callable(getattr(module, inner, None)):
                yield f"{name}.{inner}"


def known_calls(mark: Path) -> dict[str, Call]:
    """Calls that were run by a reader once: each would make or change `mark`."""
    inner = mark.with_name("inner.npy")
    holder = np.empty(1, dtype=object)
    holder[0] = Call("os.mkdir", str(mark))
    np.save(inner, holder, allow_pickle=True)
    code = f"import os; os.mkdir({str(mark)!r})"
    return {
        "numpy.testing._private.utils.runstring": Call(
            "numpy.testing._private.utils.runstring", code, {}
        ),
        "numpy.load": Call("numpy.load", str(inner), None, True),
        "numpy.memmap": Call("numpy.memmap", str(mark), "uint8", "w+", 0, (4,)),
    }
