#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both operations in plain NumPy, float32, on the tensors of an exported case.

Every query row of a head sees some rows of the cache (which ones is all that the operations differ in):

    out = sum over its keys of p * value / sum of p,  p = exp(scale * (query . key - max))
    lse = scale * max + ln(sum of p)                   (no keys: out = 0, lse = -inf)

A key is a whole cache row, latent and RoPE side by side; its value is the row's first columns (512, or
head_dim_v). Inputs are BF16 in the file and float32 here, which holds them exactly; the list is int32. All
sums are float32; `out` is written as --dtype says, `lse` as float32.

    mlacheck export ID --out case.safetensors
    scripts/examples/attention.py case.safetensors out.safetensors
    mlacheck judge case.safetensors --result out.safetensors --model scripts/examples/numpy_float32.model

--dtype says in which format `out` is written (f32, bf16, f16); --drop-key leaves the last key of every
row out, to see that it is noticed.

The same with a framework is this loop: take the tensors out of the file, call the kernel, write what it
gives. In PyTorch (jax.numpy and safetensors.flax are alike):

    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
    t = {name: x.cuda() for name, x in load_file("case.safetensors").items()}
    with safe_open("case.safetensors", framework="pt") as f:
        meta = f.metadata()                      # texts: meta["topk"], meta["softmax_scale"], ..
    scale = float.fromhex(meta["softmax_scale"])
    query = torch.cat([t["q_lift"][0], t["q_pe"][0]], dim=-1)   # [queries, heads, 576], bf16
    cache = torch.cat([t["c_kv"][0], t["k_pe"][0]], dim=-1)     # [keys, 576], bf16
    out, lse = my_kernel(query, cache, t["topk_indices"][0], scale)
    save_file({"out": out.contiguous().cpu(), "lse": lse.float().contiguous().cpu()}, "out.safetensors",
              metadata={"kernel": "my-kernel", "case_id": meta["case_id"]})

(That is for flat lists and out_order 1, meta["topk_tiled"] and meta["out_order"] say so; list_of and sparse
below do the others.) A log-sum-exp in base 2 is multiplied by ln 2 in float64 before it is written, and is
one rounding more in lse_roundings; one that is +inf in rows without keys stays so, the model says
lse_empty = plus-inf.

Write `out` in the dtype the kernel gives, never converted: a bf16 result saved as float32 would be held
to what float32 can do. Rows that are not in valid_rows.* hold what must not be read, NaN mostly: a kernel
that multiplies them by a weight of 0 gives NaN.
"""
import argparse

import tensorfile  # first: it says so if there is no NumPy

import numpy as np


def attend(query, keys, values, scale):
    """query [heads, width], keys [n, width], values [n, width_v]: outputs and max + ln(sum) by head."""
    if len(keys) == 0:
        return (np.zeros((len(query), values.shape[1]), np.float32),
                np.full(len(query), -np.inf, np.float32))
    scores = query @ keys.T
    most = scores.max(axis=1, keepdims=True)
    weights = np.exp((scores - most) * scale)
    total = weights.sum(axis=1, keepdims=True)
    return (weights @ values) / total, (scale * most + np.log(total))[:, 0]


# ---- sparse -------------------------------------------------------------------------------------------


def list_of(topk, q, meta):
    """The cache rows that query row q lists; tiled lists hold 8 rows of 16 columns by 16 entries."""
    n = int(meta["topk"])
    if meta["topk_tiled"] == "0":
        return topk[0, q]
    j = np.arange(n)
    return topk[q // 128, q % 128 // 8, 16 * (q % 8) + j % 16, j // 16]


def keys_of(tensors, q, meta):
    offset = int(meta["q_pos_offset"]) if meta["has_q_pos_offset"] == "1" else None
    if meta["dense"] == "1":
        return np.arange(min(int(meta["keys"]), (offset or 0) + q + 1))
    rows = list_of(tensors["topk_indices"], q, meta)
    return rows if offset is None else rows[rows <= offset + q]


def sparse(tensors, meta, drop):
    scale = np.float32(float.fromhex(meta["softmax_scale"]))
    rows, heads = int(meta["queries"]), int(meta["heads"])
    query = np.concatenate([tensors["q_lift"][0], tensors["q_pe"][0]], axis=2)
    out = np.empty((rows, heads, 512), np.float32)
    lse = np.empty((rows, heads), np.float32)
    for q in range(rows):
        listed = keys_of(tensors, q, meta)
        listed = listed[:len(listed) - drop]
        values = tensors["c_kv"][0, listed]
        keys = np.concatenate([values, tensors["k_pe"][0, listed]], axis=1)
        out[q], lse[q] = attend(query[q], keys, values, scale)
    if meta["out_order"] == "0":  # column c holds latent 4*(c mod 128) + c div 128
        c = np.arange(512)
        out = out[:, :, 4 * (c % 128) + c // 128]
    return {"out": out.reshape(1, rows, heads * 512), "lse": lse}


# ---- ring ---------------------------------------------------------------------------------------------


def halves(rank, ranks, rows):
    """Positions of the rows of a rank that holds half-chunks rank and 2*ranks-1-rank."""
    r, h = np.arange(rows), rows // 2
    return np.where(r < h, rank * h + r, (2 * ranks - 1 - rank) * h + r - h)


def key_positions(rank, p):
    if p["is_balanced"]:
        return halves(rank, p["ring_size"], p["kv_rows"])
    t = np.arange(p["kv_rows"])
    slab = p["q_rows"]
    return t // slab * p["ring_size"] * slab + rank * slab + t % slab


def query_positions(rank, p):
    """-1: no query stands there."""
    ranks, rows = p["ring_size"], p["q_rows"]
    if p["is_balanced"]:
        return halves(rank, ranks, rows)
    if p["has_prior"]:
        position = np.full(rows, -1)
        asked = np.arange(p["kv_actual_isl"], p["logical_n"])
        own = asked[asked // rows % ranks == rank]
        position[:len(own)] = own
        return position
    first = 0 if rows == p["kv_rows"] else -(-p["logical_n"] // 32) * 32 - ranks * rows
    return first + rank * rows + np.arange(rows)


def ring(tensors, meta, drop):
    p = {k: int(v) for k, v in meta.items() if v.lstrip("-").isdigit()}
    scale = np.float32(float.fromhex(meta["scale"]))
    results = {}
    for d in range(p["ring_size"]):
        out = np.zeros((p["batch"], p["heads"], p["q_rows"], p["head_dim_v"]), np.float32)
        lse = np.full(out.shape[:3], -np.inf, np.float32)
        for b in range(p["batch"]):
            slot = p["kv_cache_batch_idx"] if p["has_slot"] else b
            for r, position in enumerate(query_positions(d, p)):
                if position < 0:
                    continue
                keys = []
                for s in range(p["ring_size"]):
                    at = key_positions(s, p)
                    seen = (at <= position) & (at < p["logical_n"])
                    keys.append(tensors[f"kv.{s}"][slot, 0, seen])
                keys = np.concatenate(keys)
                keys = keys[:len(keys) - drop]
                out[b, :, r], lse[b, :, r] = attend(tensors[f"q.{d}"][b, :, r], keys,
                                                    keys[:, :p["head_dim_v"]], scale)
        results[f"out.{d}"], results[f"lse.{d}"] = out, lse
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case")
    parser.add_argument("out")
    parser.add_argument("--dtype", choices=["f32", "bf16", "f16"], default="f32")
    parser.add_argument("--drop-key", action="store_true")
    options = parser.parse_args()
    tensors, meta = tensorfile.read(options.case)
    operation = ring if meta["op"] == "ring" else sparse
    results = operation(tensors, meta, 1 if options.drop_key else 0)
    for name in [n for n in results if n.startswith("out")]:
        if options.dtype == "bf16":
            results[name] = ("BF16", results[name])
        elif options.dtype == "f16":
            results[name] = results[name].astype(np.float16)
    tensorfile.write(options.out, results,
                     {"kernel": "numpy-float32", "case_id": meta["case_id"]})


if __name__ == "__main__":
    main()
