// Two real engines, one of them with a fault planted in the shipped binary, or two scripted upstreams
// where the engine has no such answers yet: the shadow finds it, the card shows it in its row, the
// guard rolls back by itself, and the record says why.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import {
  guard, kNativePools, kPlan, Pair, shadow, startEngine, startUpstream, withPair,
} from './pair.mjs';
import { waitUntil } from './waiting.mjs';

const kGuards =
  guard('differs_share', 'max = 0.05') +
  guard('error_rate', 'max = 0.05') +
  guard('invalid_output_rate', 'max = 0.02') +
  guard('tbt_p50', 'max_ratio = 4');

let stable;

before(async () => {
  stable = await startEngine();
});
after(() => stable?.program.kill('SIGKILL'));

/** Rows of copies that were compared and differ. */
async function differing(pair) {
  const copies = await pair.records('&role=shadow');
  return copies.filter(({ comparison }) => comparison?.differs);
}

/** It was rolled back by this metric, for good, and whoever asks is told so. */
async function sawRollback(pair, reason, extra = {}) {
  const why = await pair.rolledBack(extra);
  assert.match(why, reason);
  const entry = pair.audit().find(({ what }) => what === 'rollback');
  assert.match(entry.who, /^(guard|breaker)$/);
  assert.equal(entry.why, why);
  const { text } = await pair.sluice('ctl', 'status');
  assert.ok(text.includes('ROLLED BACK') && text.includes(why), text);
}

const worse = ({ verdict }) => verdict === 'worse';
const judged = (row, metric) => row.judgements.find((each) => each.metric === metric)?.verdict;

test('slower', async () => {
  await withPair({ config: kPlan + shadow() + kGuards, stable, faults: 'slow_step=100ms' }, async (pair) => {
    await sawRollback(pair, /^tbt_p50 of candidate is/);
    const row = await pair.cardRow('text', worse);
    assert.equal(judged(row, 'tbt_p50'), 'worse');
    assert.equal(row.differs_share, 0);
    const copies = (await pair.records('&role=shadow')).filter(({ comparison }) => comparison);
    assert.ok(copies.every(({ comparison }) => comparison.tbt_delta_ms > 50));
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
    await sawRollback(pair, /^error_rate of candidate is|^candidate has had no worker for 10s/);
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

// ---- JSON and tools, by upstreams that a test scripts ---------------------------------------------

const kSchema = { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } };
const kTools = { tools: [{ type: 'function', function: { name: 'look_up', parameters: {} } }] };
const call = (name, args) => ({
  tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: args } }],
});

for (const { name, kind, extra, good, bad, difference, metric } of [
  {
    name: 'broken JSON',
    kind: 'json_schema',
    extra: kSchema,
    good: { content: '{"city":"Paris"}' },
    bad: { content: '{"city":"Par' },
    difference: 'json',
    metric: 'invalid_output_rate',
  },
  {
    name: 'another tool',
    kind: 'tools',
    extra: kTools,
    good: call('look_up', '{"q":1}'),
    bad: call('look_down', '{"q":1}'),
    difference: 'tool_name',
    metric: 'differs_share',
  },
  {
    name: 'other arguments',
    kind: 'tools',
    extra: kTools,
    good: call('look_up', '{"q":1,"n":2}'),
    bad: call('look_up', '{"q":2,"n":2}'),
    difference: 'tool_arguments',
    metric: 'differs_share',
  },
]) {
  test(name, async () => {
    const upstreams = [await startUpstream(() => good), await startUpstream(() => bad)];
    const pool = (pool, { url }) =>
      `[[pool]]\nname = "${pool}"\nengine = "openai"\nurl = "${url}"\nmodel = "krill"\n`;
    const pair = new Pair(
      pool('stable', upstreams[0]) + pool('candidate', upstreams[1]) + kPlan + shadow() +
        // How often stable differs from itself, which nobody knows of an engine that is not ours.
        shadow(1, 'stable') + guard(metric, 'max = 0.02'),
    );
    try {
      await pair.start();
      await sawRollback(pair, new RegExp(`^${metric} of candidate is`), extra);
      const row = await pair.cardRow(kind, worse);
      if (metric === 'invalid_output_rate') assert.ok(row.outcomes.invalid_output > 0);
      const rows = await differing(pair);
      assert.ok(rows.length > 0);
      for (const { comparison } of rows) assert.deepEqual(comparison.differences, [difference]);
    } finally {
      await pair.remove();
      for (const upstream of upstreams) upstream.close();
    }
  });
}
