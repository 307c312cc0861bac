# SPDX-License-Identifier: Apache-2.0
"""Read and write safetensors files with NumPy alone.

A file is the header's length (8 bytes, little-endian), the header (JSON: a tensor's name to dtype, shape
and data_offsets, and "__metadata__" to strings), and the tensors' bytes. NumPy has no bfloat16: such
tensors are read as float32, which holds every bfloat16 exactly, and written from float32 by rounding to
nearest, ties to even.
"""
import json
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.argv[0]}: needs NumPy for {sys.executable} (Debian: python3-numpy, and /usr/bin/python3)")

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "i1", "U8": "u1", "BOOL": "?"}


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    nan = ((bits >> 16) | 0x40).astype(np.uint16)  # rounding must not make a NaN a number
    return np.where(np.isnan(values), nan, rounded)


def read(path):
    """The tensors of a file by name, and its metadata."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            flat = from_bf16(np.frombuffer(data[begin:end], "<u2"))
        else:
            flat = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata):
    """Write tensors, each an array or ("BF16", array), and metadata, texts to texts."""
    header, blocks, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        if isinstance(tensor, tuple):
            dtype, shape, block = "BF16", tensor[1].shape, to_bf16(tensor[1]).astype("<u2").tobytes()
        else:
            dtype = next(d for d, n in DTYPES.items() if np.dtype(n) == tensor.dtype)
            shape, block = tensor.shape, np.ascontiguousarray(tensor).tobytes()
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + len(block)]}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))
