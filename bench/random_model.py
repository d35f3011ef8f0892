#!/usr/bin/env python3
"""Writes a GGUF file of DeepSeek V3's layout with random q8_0 weights: a model to measure, not to ask.

usage: bench/random_model.py OUT.gguf [--seed 1] [--layers 5] [--experts 32] [--width 2048] ...

The defaults make about 1 GB, of which a token touches a third. Equal arguments give equal bytes. The
file is written as it is made up, so memory stays small whatever the size.
"""
import argparse
import math
import random
import struct

U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
TYPE_F32, TYPE_Q8_0 = 0, 8
ALIGNMENT = 32
BLOCK = 32  # Weights that share a scale in q8_0.
STDDEV_OF_BYTE = 73.9  # Of a number drawn evenly from -128 to 127.


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(p):
    """Key, type and value of each entry, as a converter writes them."""
    prefix = "deepseek2."
    yield "general.architecture", STRING, "deepseek2"
    yield "general.name", STRING, "Random"
    numbers = {
        "vocab_size": p.vocabulary, "context_length": 8192, "embedding_length": p.width,
        "block_count": p.layers, "nextn_predict_layers": 0, "feed_forward_length": p.dense_ff,
        "attention.head_count": p.heads, "attention.head_count_kv": 1,
        "attention.q_lora_rank": p.q_rank, "attention.kv_lora_rank": p.kv_rank,
        "attention.key_length": p.kv_rank + p.rope, "attention.value_length": p.kv_rank,
        "attention.key_length_mla": p.nope + p.rope, "attention.value_length_mla": p.value,
        "rope.dimension_count": p.rope, "leading_dense_block_count": p.dense_layers,
        "expert_count": p.experts, "expert_used_count": p.experts_used, "expert_shared_count": 1,
        "expert_feed_forward_length": p.expert_ff, "expert_gating_func": 2,
    }
    for key, value in numbers.items():
        yield prefix + key, U32, value
    yield prefix + "rope.freq_base", F32, 10000.0
    yield prefix + "attention.layer_norm_rms_epsilon", F32, 1e-6
    yield prefix + "expert_weights_scale", F32, 1.0
    yield prefix + "expert_weights_norm", BOOL, True
    yield "tokenizer.ggml.model", STRING, "gpt2"
    yield "tokenizer.ggml.pre", STRING, "deepseek-v3"
    yield "tokenizer.ggml.tokens", ARRAY, [f"t{i}" for i in range(p.vocabulary)]


def encode(kind, value):
    if kind == ARRAY:
        items = b"".join(map(string, value))
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + items
    head = struct.pack("<I", kind)
    if kind == STRING:
        return head + string(value)
    return head + struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)


def tensors(p):
    """Name, GGUF type and shape, fastest dimension first."""
    def matrix(name, *shape):
        return name + ".weight", TYPE_Q8_0, shape

    def vector(name, size):
        return name, TYPE_F32, (size,)

    yield matrix("token_embd", p.width, p.vocabulary)
    yield vector("output_norm.weight", p.width)
    yield matrix("output", p.width, p.vocabulary)
    for layer in range(p.layers):
        blk = f"blk.{layer}."
        yield vector(blk + "attn_norm.weight", p.width)
        yield vector(blk + "ffn_norm.weight", p.width)
        yield matrix(blk + "attn_q_a", p.width, p.q_rank)
        yield vector(blk + "attn_q_a_norm.weight", p.q_rank)
        yield matrix(blk + "attn_q_b", p.q_rank, p.heads * (p.nope + p.rope))
        yield matrix(blk + "attn_kv_a_mqa", p.width, p.kv_rank + p.rope)
        yield vector(blk + "attn_kv_a_norm.weight", p.kv_rank)
        yield matrix(blk + "attn_k_b", p.nope, p.kv_rank, p.heads)
        yield matrix(blk + "attn_v_b", p.kv_rank, p.value, p.heads)
        yield matrix(blk + "attn_output", p.heads * p.value, p.width)
        if layer < p.dense_layers:
            yield matrix(blk + "ffn_gate", p.width, p.dense_ff)
            yield matrix(blk + "ffn_up", p.width, p.dense_ff)
            yield matrix(blk + "ffn_down", p.dense_ff, p.width)
            continue
        yield blk + "ffn_gate_inp.weight", TYPE_F32, (p.width, p.experts)
        yield vector(blk + "exp_probs_b.bias", p.experts)
        yield matrix(blk + "ffn_gate_exps", p.width, p.expert_ff, p.experts)
        yield matrix(blk + "ffn_up_exps", p.width, p.expert_ff, p.experts)
        yield matrix(blk + "ffn_down_exps", p.expert_ff, p.width, p.experts)
        yield matrix(blk + "ffn_gate_shexp", p.width, p.expert_ff)
        yield matrix(blk + "ffn_up_shexp", p.width, p.expert_ff)
        yield matrix(blk + "ffn_down_shexp", p.expert_ff, p.width)


def bytes_of(kind, shape):
    elements = math.prod(shape)
    return elements * 4 if kind == TYPE_F32 else elements // BLOCK * (2 + BLOCK)


def padding(size):
    return -size % ALIGNMENT


def write_tensor(out, source, name, kind, shape):
    if kind == TYPE_F32:
        norm = name.endswith("norm.weight")
        spread = 0.0 if norm else 0.05 if name.endswith("bias") else shape[0] ** -0.5
        for _ in range(math.prod(shape[1:])):
            row = [norm + source.uniform(-spread, spread) for _ in range(shape[0])]
            out.write(struct.pack(f"<{shape[0]}f", *row))
        return
    # Scaled so that the variance of an output equals that of an input.
    scale = struct.pack("<e", 1.0 / (STDDEV_OF_BYTE * math.sqrt(shape[0])))
    left = math.prod(shape) // BLOCK
    while left > 0:
        count = min(left, 1 << 17)
        blocks = bytearray(source.randbytes(count * (2 + BLOCK)))
        blocks[0::2 + BLOCK] = scale[:1] * count
        blocks[1::2 + BLOCK] = scale[1:] * count
        out.write(blocks)
        left -= count


def write_model(path, p):
    entries = [string(key) + encode(kind, value) for key, kind, value in metadata(p)]
    listed = list(tensors(p))
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries)))
        out.write(b"".join(entries))
        offset = 0
        for name, kind, shape in listed:
            dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            out.write(string(name) + dimensions + struct.pack("<IQ", kind, offset))
            size = bytes_of(kind, shape)
            offset += size + padding(size)
        out.write(bytes(padding(out.tell())))
        source = random.Random(p.seed)
        for name, kind, shape in listed:
            write_tensor(out, source, name, kind, shape)
            out.write(bytes(padding(out.tell())))


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    defaults = {"seed": 1, "vocabulary": 16384, "width": 2048, "layers": 5, "dense_layers": 1,
                "dense_ff": 5632, "heads": 16, "q_rank": 768, "kv_rank": 512, "nope": 128,
                "rope": 64, "value": 128, "experts": 32, "experts_used": 6, "expert_ff": 1024}
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    return parser.parse_args(arguments)


def main():
    options = parse()
    write_model(options.out, options)


if __name__ == "__main__":
    main()
