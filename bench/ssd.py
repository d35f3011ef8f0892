#!/usr/bin/env python3
"""Reads from the SSD tier beside fio, with the same size, depth and disk in the same run.

usage: bench/ssd.py [--dir FOLDER] [--value 147456] [--depth 16] [--total 1073741824] [--seconds 2] [--passes 3]

Both read at random from files on the same file system, past the page cache; the tier checks what it
reads. fio is told the size that an entry takes on disk. Passes alternate and medians count.
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile

GOAL = 0.90


def fio_bytes_per_s(folder, block, options):
    command = ["fio", "--name=peer", f"--filename={folder}/fio.dat", f"--size={options.total}", f"--bs={block}",
               f"--iodepth={options.depth}", "--ioengine=io_uring", "--direct=1", "--rw=randread", "--randrepeat=0",
               "--time_based", f"--runtime={options.seconds}", "--thread", "--output-format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report["jobs"][0]["read"]["bw_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bench/ssd")
    parser.add_argument("--dir", default="build", help="a folder on the disk that is measured")
    parser.add_argument("--value", type=int, default=147456, help="bytes of a value")
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--total", type=int, default=1 << 30, help="bytes that are read from")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("fio") is None:
        print("ssd: skipped, because fio is not installed")
        return 0
    ours, fio = [], []
    with tempfile.TemporaryDirectory(prefix="sluice-ssd-", dir=options.dir) as folder:
        tier = subprocess.Popen([options.program, f"{folder}/tier", str(options.value), str(options.total),
                                 str(options.depth)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _, block, kind = tier.stdout.readline().split()
        fio_bytes_per_s(folder, block, options)  # Lays out its file.
        for _ in range(options.passes):
            tier.stdin.write(f"{options.seconds}\n")
            tier.stdin.flush()
            ours.append(float(tier.stdout.readline()))
            fio.append(fio_bytes_per_s(folder, block, options))
        tier.stdin.close()
        tier.wait()
    mine, peer = statistics.median(ours), statistics.median(fio)
    print(f"random reads of {options.value} bytes, depth {options.depth}, with {kind}; GB/s")
    print(f"{'SSD tier':>10}{'fio':>10}{'ratio':>8}{'goal':>8}")
    print(f"{mine / 1e9:>10.2f}{peer / 1e9:>10.2f}{mine / peer:>8.2f}{'≥':>4}{GOAL:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
