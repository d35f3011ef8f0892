// An A/A pair: two engines of the same build, guards on everything, and no reason to roll back. First
// each request is copied to the candidate, then half of the conversations are answered by it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { guard, kNativePools, kPlan, Pair, shadow, split, startEngine } from './pair.mjs';

const kRequests = Number(process.env.SLUICE_AA_REQUESTS ?? 1000);
const kGuards = [
  guard('error_rate', 'max = 0.01'),
  guard('invalid_output_rate', 'max = 0.01'),
  ...['ttft_p50', 'ttft_p95', 'tbt_p50', 'tbt_p95'].map((metric) => guard(metric, 'max_ratio = 1.3')),
].join('');

const kDiffers = guard('differs_share', 'max = 0.01');

let engines;
let pair;

before(async () => {
  engines = await Promise.all([startEngine(), startEngine()]);
  const [stable, candidate] = engines.map(({ ready }) => ready.url);
  pair = await new Pair(kNativePools + kPlan + shadow() + kDiffers + kGuards, { stable, candidate }).start();
});
after(async () => {
  await pair?.remove();
  for (const { program } of engines ?? []) program.kill('SIGKILL');
});

test(`${kRequests} requests, and nothing is rolled back`, { timeout: Infinity }, async () => {
  const half = Math.ceil(kRequests / 2);
  assert.deepEqual(await pair.askMany(half, 16, { max_tokens: 4 }), { stable: half });
  assert.ok((await pair.shadows('same')) > 0);
  assert.equal(await pair.shadows('differs'), 0);
  assert.equal((await pair.status()).plan.latched, false);

  const file = path.join(pair.folder, 'split.toml');
  writeFileSync(file, kPlan + split(0.5) + kGuards);
  const applied = await pair.sluice('ctl', 'plan', 'apply', file);
  assert.equal(applied.code, 0, applied.text);
  const answered = await pair.askMany(kRequests - half, 16, { max_tokens: 4 });
  assert.equal(answered.stable + answered.candidate, kRequests - half);
  assert.ok(Math.abs(answered.candidate / (kRequests - half) - 0.5) < 0.1);
  const { plan } = await pair.status();
  assert.equal(plan.latched, false, plan.reason);
});
