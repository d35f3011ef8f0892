#!/usr/bin/env python3
"""Instructions of each kernel, compared with the committed ones: a slow-down shows without a stopwatch.

usage: tools/kernel_counts.py [--build build] [--update]

Two kinds of count, of the program bench/kernels.cc:
- calls: what one call executes on the AVX2 target, by callgrind (valgrind knows no AVX-512);
- loops: of the AVX-512 kernels, the instructions of the inner loop with the most multiply-adds, and
  how many of those it has, by objdump.
Fails when a count is more than 3 % above bench/kernel_counts.txt. --update writes that file. Exit code
77: valgrind or objdump is not installed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TABLE = Path(__file__).parent.parent / "bench" / "kernel_counts.txt"
TOLERANCE = 0.03
SKIPPED = 77
# Inner loops of the AVX-512 targets: name, part of the function's name, the multiply-add instruction.
LOOPS = [
    ("loop-q8_0-vnni", "matmul_q8_with.*VnniDot", "vpdpbusd"),
    ("loop-q8_0", "matmul_q8_with.*WideDot", "vpmaddwd"),
    ("loop-f32", "matmul_f(loat|32)", "vfmadd"),
    ("loop-f16", "matmul_f(loat.*float16|16)", "vfmadd"),
    ("loop-attention", "mla_attention", "vfmadd"),
]


def count_calls(program, folder):
    """Name to instructions of one call on AVX2."""
    environment = {"SLUICE_TARGET": "avx2", "PATH": os.environ.get("PATH", "")}
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no",
         "--toggle-collect=sluice_measured", "--dump-after=sluice_measured",
         f"--callgrind-out-file={folder}/counts", program, "--count"],
        capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"valgrind: exit code {done.returncode}\n{done.stderr[-2000:]}")
    counts = {}
    for number, name in enumerate(done.stdout.split(), 1):
        text = Path(f"{folder}/counts.{number}").read_text()
        counts[name] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.M).group(1))
    return counts


def functions(program):
    """(mangled name, [(address, mnemonic, jump target or None)]) of the AVX-512 kernels."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True,
                             text=True, check=True).stdout
    for block in listing.split("\n\n"):
        head = re.match(r"\n*([0-9a-f]+) <(\S+)>:\n", block)
        if not head or "N_AVX3" not in head.group(2):
            continue
        code = []
        for address, mnemonic, operands in re.findall(r"^ +([0-9a-f]+):\t(\S+)(.*)$", block, re.M):
            jump = re.match(r" +([0-9a-f]+) <", operands) if mnemonic.startswith("j") else None
            code.append((int(address, 16), mnemonic, int(jump.group(1), 16) if jump else None))
        yield head.group(2), code


def inner_loops(code):
    """Mnemonics of each loop that holds no other."""
    place = {address: index for index, (address, _, _) in enumerate(code)}
    spans = [(place[target], index) for index, (address, _, target) in enumerate(code)
             if target is not None and target <= address and target in place]
    for begin, end in spans:
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in spans):
            yield [mnemonic for _, mnemonic, _ in code[begin:end + 1]]


def count_loops(program):
    """Name to instructions for a hundred multiply-adds in the densest inner loop."""
    everything = list(functions(program))
    counts = {}
    for name, pattern, instruction in LOOPS:
        best = max(((sum(m.startswith(instruction) for m in loop), len(loop))
                    for function, code in everything if re.search(pattern, function)
                    for loop in inner_loops(code)), key=lambda pair: (pair[0], -pair[1]),
                   default=(0, 0))
        if best[0] == 0:
            sys.exit(f"{name}: no loop with {instruction} in a function like {pattern}")
        counts[name] = best[1] * 100 // best[0]
    return counts


def read_table():
    lines = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {name: int(count) for name, count in lines}


def write_table(counts):
    TABLE.write_text("# Instructions of each kernel (tools/kernel_counts.py --update): of one call on "
                     "AVX2; of loops on AVX-512,\n# for a hundred multiply-add instructions.\n"
                     + "".join(f"{name:<32} {count}\n" for name, count in counts.items()))


def compare(counts, committed):
    """Prints the differences; how many of them are slow-downs."""
    slower = 0
    for name in sorted(counts.keys() | committed.keys()):
        now, before = counts.get(name), committed.get(name)
        if now is None or before is None:
            print(f"{name}: {'not in the table' if before is None else 'not measured any more'}")
            slower += 1
        elif now > before * (1 + TOLERANCE):
            print(f"{name}: {now} instructions, {100 * (now / before - 1):.1f} % above {before}")
            slower += 1
        elif now < before * (1 - TOLERANCE):
            print(f"{name}: {now} instructions, below {before}: tools/kernel_counts.py --update")
    return slower


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    for tool in ("valgrind", "objdump"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed, so no instructions are counted")
            return SKIPPED
    program = f"{options.build}/bench/kernels"
    with tempfile.TemporaryDirectory() as folder:
        counts = count_calls(program, folder)
    counts |= count_loops(program)
    if options.update:
        write_table(counts)
        return 0
    slower = compare(counts, read_table())
    print(f"{len(counts)} counts, {slower} more than {TOLERANCE:.0%} above the committed ones")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
