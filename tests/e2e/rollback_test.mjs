// One switch under 200 streams: from its acknowledgement on nothing is dispatched to the candidate, what
// waited included; nobody loses an answer; and nothing but rearming brings the candidate back.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { storyRequest } from './answers.mjs';
import { readMetrics } from './metrics.mjs';
import { kNativePools, kPlan, Pair, split, startEngine } from './pair.mjs';
import { waitUntil } from './waiting.mjs';

const kStreams = 200;
const kConfig = kNativePools + kPlan + split(1);

let engines;
let pair;

before(async () => {
  // Few places and slow steps, so that requests wait in front of the candidate, too.
  const few = ['--port', '0', '--running', '32'];
  engines = await Promise.all([startEngine('', few), startEngine('slow_step=100ms', few)]);
  const [stable, candidate] = engines.map(({ ready }) => ready.url);
  pair = await new Pair(kConfig, { stable, candidate }).start();
});
after(async () => {
  await pair?.remove();
  for (const { program } of engines ?? []) program.kill('SIGKILL');
});

async function stream(seed) {
  const response = await pair.chat(storyRequest(seed, 40, { stream: true }));
  assert.equal(response.status, 200);
  return response.text();
}

test('nothing reaches the candidate once the rollback is acknowledged', async () => {
  const streams = Array.from({ length: kStreams }, (_, seed) => stream(seed));
  await waitUntil('the candidate is full, and others wait', async () => {
    const metrics = await readMetrics(pair.admin);
    return metrics.value('sluice_open_streams') === kStreams && metrics.value('sluice_queue_depth') > 0;
  });
  assert.equal((await pair.sluice('ctl', 'rollback', '--why', 'a drill')).code, 0);
  const before = await pair.dispatched('candidate');
  assert.ok(before < kStreams, `all ${before} were dispatched before the rollback`);

  for (const text of await Promise.all(streams)) assert.match(text, /data: \[DONE\]\n\n$/);
  const rows = await waitUntil('all rows are written', async () => {
    const all = await pair.records();
    return all.length === kStreams ? all : null;
  });
  assert.equal(rows.filter(({ pool }) => pool === 'candidate').length, before);
  assert.ok(rows.every(({ outcome, legs }) => outcome === 'ok' && legs.length === 1));
  assert.equal(await pair.dispatched('candidate'), before);
  assert.equal(await pair.dispatched('stable'), kStreams - before);
});

test('no restart, reload or old file brings it back', async () => {
  await pair.kill();
  await pair.start();
  const old = path.join(pair.folder, 'old.toml');
  writeFileSync(old, kPlan + split(1));
  assert.equal((await pair.sluice('ctl', 'plan', 'apply', old)).code, 0);
  pair.program.kill('SIGHUP');
  assert.deepEqual(await pair.askMany(50, 10, { max_tokens: 2 }), { stable: 50 });
  assert.equal(await pair.dispatched('candidate'), 0);
  const { plan } = await pair.status();
  assert.equal(plan.latched, true);
  assert.equal(plan.reason, 'by hand: a drill');
});
