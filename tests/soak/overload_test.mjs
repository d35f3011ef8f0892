// Four times the load that a service can bear, for a minute of real time: what it answers in time stays
// what it could answer at its best, the rest is refused at once, and memory does not grow. The same on a
// virtual clock, in seconds: tests/admission/overload_test.cc.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { runProgram, startService, temporaryFolder } from '../e2e/service.mjs';
import { seconds } from '../e2e/waiting.mjs';

const kSeconds = Number(process.env.SLUICE_OVERLOAD_SECONDS ?? 60);
const kWait = 5; // Seconds that a request may wait for its turn.
const kMix = '64/64';

let service;

before(async () => {
  const folder = temporaryFolder();
  const config = path.join(folder, 'sluice.toml');
  writeFileSync(
    config,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
queue_wait = "${kWait}s"
[[pool]]
name = "own"
[plan]
stable = "own"
`,
  );
  service = await startService(['--config', config], folder);
});
after(() => service?.stop());

// An answer in time: it waited no longer than it may, and a full engine then takes its time, too.
const kInTime = kWait + 2;

/** `sluice bench load` with `options`: its summary, and a row for each request. */
async function load(options) {
  const rows = path.join(service.folder, 'rows.jsonl');
  const run = await runProgram(
    ['bench', 'load', '--url', `${service.url}/v1`, '--mix', kMix, '--ignore-eos', '--json',
      '--slo-ttft', `${kInTime}s`, '--output', rows, ...options],
    seconds(10 * kSeconds),
  );
  assert.equal(run.code, 0, run.stderr);
  return {
    summary: JSON.parse(run.stdout),
    rows: readFileSync(rows, 'utf8').trim().split('\n').map((line) => JSON.parse(line)),
  };
}

/** Resident memory of the gateway in MiB. */
function gatewayMemory() {
  const status = readFileSync(`/proc/${service.childPid('gateway')}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
}

test('goodput stays, the rest is refused at once, memory stays', { timeout: Infinity }, async () => {
  const best = await load(['--concurrency', '64', '--requests', '1000']);
  assert.equal(best.summary.succeeded, 1000);
  const peak = best.summary.goodput_rps;
  const rate = 4 * peak;

  const memory = [];
  const watch = setInterval(() => memory.push(gatewayMemory()), 1000);
  const { summary, rows } = await load(['--rate', `${rate}`, '--requests', `${Math.ceil(rate * kSeconds)}`]);
  clearInterval(watch);

  const refused = rows.filter((row) => row.outcome !== 'ok');
  const ttft = rows.filter((row) => row.outcome === 'ok').map((row) => row.ttft_ms).sort((a, b) => a - b);
  const slowest = Math.max(...refused.map((row) => row.duration_ms));
  console.log(
    `peak ${peak.toFixed(1)} requests/s; at four times that ${summary.goodput_rps.toFixed(1)} in time, ` +
      `${refused.length} of ${rows.length} refused, the slowest after ${slowest.toFixed(0)} ms; ` +
      `time to first token p50 ${ttft[ttft.length >> 1].toFixed(0)} ms, p99 ` +
      `${ttft[Math.floor(ttft.length * 0.99)].toFixed(0)} ms; gateway ${memory[5].toFixed(0)} to ${Math.max(...memory).toFixed(0)} MiB`,
  );
  assert.ok(summary.goodput_rps >= 0.9 * peak);
  assert.deepEqual([...new Set(refused.map((row) => row.outcome))], ['rejected']);
  assert.ok(slowest < 1000, 'at once');
  assert.ok(Math.max(...memory) < memory[5] + 64, 'memory is bounded');
});
