#!/usr/bin/env python3
"""Computes every number of a card a second time, from the rows alone.

    card_check.py ROWS.jsonl CARD.json

ROWS.jsonl is what `sluice ctl records` prints for the card's window, CARD.json what
`sluice card --json` prints. Written from docs/records.md without a look at the C++; needs nothing but
the standard library. Prints what differs; exit code 1 if anything does.
"""

import json
import math
import sys
from collections import Counter, defaultdict

Z = 3.29
GROWTH = 1.02
BUCKETS = ["<=16k", "16k-64k", "64k-256k", ">256k"]
KINDS = ["text", "seeded", "json_schema", "tools"]


def bucket_of(tokens):
    for bucket, limit in zip(BUCKETS, (16, 64, 256)):
        if tokens <= limit * 1024:
            return bucket
    return BUCKETS[-1]


class Samples:
    def __init__(self):
        self.values = []

    def add(self, value, weight):
        self.values.append((value, weight))

    def size(self):
        total = sum(w for _, w in self.values)
        return total * total / sum(w * w for _, w in self.values) if self.values else 0.0

    def quantile(self, share):
        if not self.values:
            return None
        values = sorted(self.values)
        rank = math.ceil(share * sum(w for _, w in values))
        seen = 0
        for value, weight in values:
            seen += weight
            if seen >= rank:
                return value
        return values[-1][0]

    def interval(self, share):
        if not self.values:
            return None
        size = self.size()
        reach = Z * math.sqrt(share * (1 - share) / size) + 0.5 / size
        if share - reach <= 0 or share + reach >= 1:
            return None
        return self.quantile(share - reach), self.quantile(share + reach)


def sketch_quantile(counts, largest, share):
    if not counts:
        return None
    rank = math.ceil(share * sum(counts.values()))
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= rank:
            return min(largest, round(2 * GROWTH**index / (GROWTH + 1)) / 1000)


def wilson(part, whole):
    if whole == 0:
        return 0.0, 1.0
    p = part / whole
    centre = p + Z * Z / (2 * whole)
    reach = Z * math.sqrt(p * (1 - p) / whole + Z * Z / (4 * whole * whole))
    scale = 1 + Z * Z / whole
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def newcombe(x1, n1, x2, n2):
    if n1 == 0 or n2 == 0:
        return -1.0, 1.0
    p1, p2 = x1 / n1, x2 / n2
    l1, u1 = wilson(x1, n1)
    l2, u2 = wilson(x2, n2)
    return p2 - p1 - math.hypot(p2 - l2, u1 - p1), p2 - p1 + math.hypot(u2 - p2, p1 - l1)


class Group:
    def __init__(self):
        self.rows = []

    def total(self, of):
        return sum(of(row) * row.get("weight", 1) for row in self.rows)

    def outcomes(self):
        counts = Counter()
        for row in self.rows:
            counts[row["outcome"]] += row.get("weight", 1)
        return counts

    def answerable(self):
        return sum(n for o, n in self.outcomes().items() if o not in ("client_gone", "rejected"))

    def samples(self, of, rows=None):
        samples = Samples()
        for row in self.rows if rows is None else rows:
            value = of(row)
            if value is not None:
                samples.add(value, row.get("weight", 1))
        return samples

    def ttft(self):
        return self.samples(lambda row: row["ttft_ms"])

    def tbt(self, which):
        return self.samples(lambda row: row["tbt_ms"] and row["tbt_ms"][which])

    def sketch(self):
        counts, largest = Counter(), 0
        for row in self.rows:
            for index, count in row.get("tbt_sketch", []):
                counts[index] += count * row.get("weight", 1)
            if row["tbt_ms"]:
                largest = max(largest, row["tbt_ms"]["max"])
        return counts, largest

    def compared_with(self, pool):
        return [row for row in self.rows if row.get("comparison", {}).get("pool") == pool]


def differing(rows):
    weight = sum(row.get("weight", 1) for row in rows)
    return sum(row.get("weight", 1) for row in rows if row["comparison"]["differences"]), weight


def read_share(interval, margin, good):
    low, high = interval
    if low > margin:
        return "better" if good else "worse"
    if high < -margin:
        return "worse" if good else "better"
    return "same" if high <= margin + 0.10 and low >= -margin - 0.10 else "insufficient"


def read_ratio(interval, margin):
    low, high = interval
    if low > 1 + margin:
        return "worse"
    if high < 1 / (1 + margin):
        return "better"
    return "same" if high <= 2 and low >= 0.5 else "insufficient"


def ratio(a, b, share):
    one, two = a.interval(share), b.interval(share)
    if not one or not two:
        return None
    return two[0] / max(one[1], 0.001), two[1] / max(one[0], 0.001)


def judge(baseline, candidate, names, minimum, exact):
    """{metric: (verdict, (low, high), margin)}"""
    said = {}
    a, b = baseline.answerable(), candidate.answerable()
    interval = newcombe(baseline.outcomes()["ok"], a, candidate.outcomes()["ok"], b)
    verdict = "insufficient" if min(a, b) < minimum else read_share(interval, 0.005, True)
    said["success"] = (verdict, interval, 0.005)

    own = baseline.compared_with(names[0])
    noise = baseline.samples(lambda row: row["ttft_ms"], own)
    margin = 0.05
    x, y = noise.quantile(0.5), baseline.ttft().quantile(0.5)
    if x and y and noise.size() >= minimum:
        margin = max(margin, max(x / y, y / x) - 1)
    for metric, one, two, share in (
        ("ttft_p50", baseline.ttft(), candidate.ttft(), 0.5),
        ("ttft_p99", baseline.ttft(), candidate.ttft(), 0.99),
        ("tbt_p50", baseline.tbt("p50"), candidate.tbt("p50"), 0.5),
        ("tbt_p99", baseline.tbt("p99"), candidate.tbt("p99"), 0.5),
    ):
        if not one.values or not two.values:
            continue
        enough = min(one.size(), two.size()) >= minimum
        interval = ratio(one, two, share) if enough else None
        verdict = read_ratio(interval, margin) if interval else "insufficient"
        if verdict == "insufficient" and metric.endswith("p99"):
            continue
        said[metric] = (verdict, interval or (0.0, 0.0), margin)

    x, n = differing(candidate.compared_with(names[0]))
    if n:
        noise_x, noise_n = differing(own)
        measured = noise_n >= minimum
        interval = newcombe(noise_x, noise_n, x, n) if measured else wilson(x, n)
        known = measured or exact or x == 0
        verdict = read_share(interval, 0.005, False) if n >= minimum and known else "insufficient"
        said["differs"] = (verdict, interval, 0.005)
    return said


def overall(verdicts):
    for verdict in ("worse", "insufficient", "better"):
        if verdict in verdicts:
            return verdict
    return "same" if verdicts else "insufficient"


class Check:
    def __init__(self):
        self.numbers = 0
        self.wrong = []

    def same(self, where, got, expected):
        self.numbers += 1
        close = got == expected
        if isinstance(got, (int, float)) and isinstance(expected, (int, float)):
            close = math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12)
        if not close:
            self.wrong.append(f"{where}: the card says {got}, the rows say {expected}")


def share(part, whole):
    return part / whole if whole else None


def check_row(check, row, where, group, names, exact):
    outcomes = group.outcomes()
    check.same(where + " requests", row["requests"], group.total(lambda _: 1))
    check.same(where + " outcomes", row["outcomes"], dict(outcomes))
    check.same(where + " success", row["success_rate"], share(outcomes["ok"], row["requests"]))
    counts, largest = group.sketch()
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        check.same(f"{where} ttft {name}", row["ttft_ms"][name], group.ttft().quantile(q))
        check.same(f"{where} tbt {name}", row["tbt_ms"][name], sketch_quantile(counts, largest, q))
    prompt = group.total(lambda r: r["prompt_tokens"])
    for key, field in (("cached_share", "cached_tokens"), ("recomputed_share", "recomputed_tokens")):
        check.same(f"{where} {key}", row[key], share(group.total(lambda r: r[field]), prompt))
    memory = max(r.get("device_memory_bytes", 0) for r in group.rows)
    check.same(where + " memory", row["device_memory_bytes"], memory or None)
    cost = sum(r["cost"] for r in group.rows)
    check.same(where + " cost", row["cost_per_success"], share(cost, outcomes["ok"]))
    check.same(where + " differs", row["differs_share"], share(*differing(group.compared_with(names[0]))))


def check_card(rows, card):
    check = Check()
    names = card["baseline"], card["candidate"]
    groups = defaultdict(Group)
    versions = Counter()
    for row in rows:
        check.same(f"{row['rid']} bucket", row["bucket"], bucket_of(row["prompt_tokens"]))
        groups[row["bucket"], row["kind"], row["pool"]].rows.append(row)
        for print_ in {leg["fingerprint"] for leg in row["legs"] if leg["pool"] == row["pool"]}:
            versions[row["pool"], print_] += row.get("weight", 1)
    of_baseline = card["versions"].get(names[0], [])
    exact = bool(of_baseline) and all(v.get("engine") == "native" for v in of_baseline)
    seen = set()
    for row in card["rows"]:
        key = row["bucket"], row["kind"], row["pool"]
        seen.add(key)
        where = " ".join(key)
        check_row(check, row, where, groups[key], names, exact)
        baseline = groups[row["bucket"], row["kind"], names[0]]
        x, n = differing(baseline.compared_with(names[0]))
        check.same(where + " noise", row["noise_floor"], x / n if n else 0.0 if exact else None)
        said = {}
        if row["pool"] != names[0]:
            said = judge(baseline, groups[key], names, card["min_samples"], exact)
            check.same(where + " verdict", row["verdict"], overall([v for v, _, _ in said.values()]))
        check.same(where + " metrics", sorted(j["metric"] for j in row["judgements"]), sorted(said))
        for j in row["judgements"]:
            verdict, (low, high), margin = said.get(j["metric"], (None, (None, None), None))
            for name, value in (("verdict", verdict), ("low", low), ("high", high), ("margin", margin)):
                check.same(f"{where} {j['metric']} {name}", j[name], value)
    check.same("rows", seen, {key for key, group in groups.items() if group.rows and key[2] in names})
    told = {(pool, v["fingerprint"]): v["requests"] for pool, list_ in card["versions"].items() for v in list_}
    check.same("versions", told, {key: n for key, n in versions.items() if key[0] in names})
    return check


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    with open(sys.argv[2], encoding="utf-8") as file:
        card = json.load(file)
    check = check_card(rows, card)
    for line in check.wrong:
        print(line)
    print(f"{check.numbers} numbers of {len(rows)} rows, {len(check.wrong)} differ")
    return 1 if check.wrong or not check.numbers else 0


if __name__ == "__main__":
    sys.exit(main())
