// Two real engines, one of them with a fault planted in the shipped binary: the shadow finds it, the card
// shows it in its row, the guard rolls back by itself, and the record says why.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import {
  differing, guard, judged, kNativePools, kPlan, Pair, sawRollback, shadow, startEngine, withPair, worse,
} from './pair.mjs';
import { waitUntil } from './waiting.mjs';

const kGuards =
  guard('differs_share', 'max = 0.05') +
  guard('error_rate', 'max = 0.05') +
  guard('tbt_p50', 'max_ratio = 2');

let stable;

before(async () => {
  stable = await startEngine();
});
after(() => stable?.program.kill('SIGKILL'));

test('slower', async () => {
  await withPair({ config: kPlan + shadow() + kGuards, stable, faults: 'slow_step=500ms' }, async (pair) => {
    await sawRollback(pair, /^tbt_p50 of candidate is/);
    const row = await pair.cardRow('text', worse);
    assert.equal(judged(row, 'tbt_p50'), 'worse');
    assert.equal(row.differs_share, 0);
    const deltas = (await pair.records('&role=shadow'))
      .map(({ comparison }) => comparison?.tbt_delta_ms)
      .filter((delta) => delta !== undefined);
    assert.ok(deltas.length > 10 && deltas.every((delta) => delta > 10), deltas.join(' '));
  });
});

for (const [fault, difference] of [
  ['other_sampling', 'tokens'],
  ['wrong_model', 'logprobs'],
]) {
  test(fault, async () => {
    await withPair({ config: kPlan + shadow() + kGuards, stable, faults: fault }, async (pair) => {
      await sawRollback(pair, /^differs_share of candidate is/);
      const row = await pair.cardRow('text', worse);
      assert.equal(judged(row, 'differs'), 'worse');
      const rows = await differing(pair);
      assert.ok(rows.some(({ comparison }) => comparison.differences.includes(difference)));
    });
  });
}

test('a crash', async () => {
  // Whoever supervises the candidate brings it back each time.
  let candidate = await startEngine('crash_after=60');
  const port = new URL(candidate.ready.url).port;
  let over = false;
  const supervised = (async () => {
    for (;;) {
      await candidate.program.ended;
      if (over) return;
      candidate = await startEngine('crash_after=60', ['--port', port]);
    }
  })();
  const config = kNativePools + kPlan + shadow() + guard('error_rate', 'max = 0.05');
  const pair = new Pair(config, { stable: stable.ready.url, candidate: candidate.ready.url });
  try {
    await pair.start();
    await sawRollback(pair, /^error_rate of candidate is|^candidate lost all its workers/);
    const row = await pair.cardRow('text', worse);
    assert.equal(judged(row, 'success'), 'worse');
    assert.ok(row.outcomes.worker_lost > 0);
    const rows = await differing(pair);
    assert.ok(rows.some(({ comparison }) => comparison.differences.includes('error_class')));
  } finally {
    over = true;
    candidate.program.kill('SIGKILL');
    await supervised;
    await pair.remove();
  }
});

test('a stall', async () => {
  const config = `[[pool]]\nname = "stable"\n[[pool]]\nname = "candidate"\nstall_timeout = "3s"\n`;
  const candidate = await startEngine('stall_after=300');
  const pair = new Pair(config + kPlan + shadow() + guard('error_rate', 'max = 0.05'), {
    stable: stable.ready.url,
    candidate: candidate.ready.url,
  });
  try {
    await pair.start();
    await sawRollback(pair, /^error_rate of candidate is|^candidate (has had no worker|lost all its workers)/);
    const row = await pair.cardRow('text', ({ success_rate }) => success_rate < 1);
    assert.ok(row.outcomes.worker_lost > 0, JSON.stringify(row.outcomes));
    await waitUntil('the engine says of itself that it makes no step', async () => {
      const { pools } = await pair.status();
      return pools.find(({ name }) => name === 'candidate').workers[0].state === 'stalled';
    });
  } finally {
    await pair.remove();
    candidate.program.kill('SIGKILL');
  }
});
