// Two scripted upstreams, because our engine has no such answers yet: a candidate whose JSON is broken,
// or that calls tools otherwise, is found, judged and rolled back.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { differing, guard, kPlan, Pair, sawRollback, shadow, startUpstream, worse } from './pair.mjs';

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
