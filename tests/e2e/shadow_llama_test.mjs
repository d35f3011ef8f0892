// Two engines that are not of one make, on one model: ours answers, llama.cpp's server gets the copies,
// and the shadow, the records and the card say how they compare.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startLlamaServer } from './llama_server.mjs';
import { kPlan, Pair, shadow, startEngine } from './pair.mjs';
import { waitUntil } from './waiting.mjs';

const kRequests = 24;

let llama;
let engine;
let pair;

before(async () => {
  [llama, engine] = await Promise.all([startLlamaServer({ alias: 'org/krill' }), startEngine()]);
  const pools = `[[pool]]
name = "stable"
[[pool]]
name = "candidate"
engine = "llama.cpp"
url = "${llama.url}/v1"
model = "krill"
upstream_model = "org/krill"
max_concurrency = 4
`;
  pair = await new Pair(pools + kPlan + shadow(), { stable: engine.ready.url }).start();
});
after(async () => {
  await pair?.remove();
  engine?.program.kill('SIGKILL');
  await llama?.stop();
});

test('copies are compared, and their times are on the card', async () => {
  const compared = async () => (await pair.shadows('same')) + (await pair.shadows('differs'));
  for (let count = 1; count <= kRequests; count += 1) {
    assert.equal(await pair.ask({ temperature: 0, max_tokens: 4, seed: 1 }), 'stable');
    // Llama.cpp is the slower one, and a copy that finds no room is none.
    await waitUntil('the copy is compared', async () => (await compared()) === count);
  }
  // Their arithmetic differs, so that a close call may go either way; most are none.
  assert.ok((await pair.shadows('same')) > kRequests / 2);

  const copies = await waitUntil('the copies are recorded', async () => {
    const rows = await pair.records('&role=shadow');
    return rows.length === kRequests ? rows : null;
  });
  for (const { pool, outcome, comparison } of copies) {
    assert.equal(pool, 'candidate');
    assert.equal(outcome, 'ok');
    assert.ok(comparison.differences.every((each) => ['text', 'finish_reason'].includes(each)));
  }
  const { rows } = await pair.card();
  assert.deepEqual(new Set(rows.map(({ pool }) => pool)), new Set(['stable', 'candidate']));
});
