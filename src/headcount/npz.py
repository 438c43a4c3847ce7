"""Arrays as .npz in memory: no Python objects in it, since they would need pickle."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from headcount.errors import RunError, UsageError

__all__ = ["npz_bytes", "read_npz"]


def npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of a file; numpy.savez would stumble over an array named "file".

    >>> npz_bytes({"file": np.zeros(2)})[:2]
    b'PK'
    """
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in arrays.items():
            if np.asarray(array).dtype.hasobject:
                raise UsageError(f"Array '{key}' holds Python objects; give numbers or text.")
            with archive.open(f"{key}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return sink.getvalue()


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that is there."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} cannot be read: it is cut off or damaged. Make it again, or restore it."
        ) from error
