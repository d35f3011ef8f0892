// Tenants beside each other: their limits, their order in the queue, and whose cache is whose.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';

import OpenAI from 'openai';

import { kCapital } from './answers.mjs';
import { addKey, startService, temporaryFolder } from './service.mjs';

const folder = temporaryFolder();
const keys = {};
let service;

before(async () => {
  const config = path.join(folder, 'sluice.toml');
  writeFileSync(
    config,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
keys = "${path.join(folder, 'keys.json')}"
headers_after = "50ms"
[[tenant]]
name = "metered"
requests_per_minute = 120
[[tenant]]
name = "single"
concurrency = 1
[[tenant]]
name = "shared"
share = "user"
`,
  );
  for (const tenant of ['a', 'b', 'metered', 'single', 'shared']) {
    keys[tenant] = await addKey(tenant, config);
  }
  service = await startService(['--config', config], path.join(folder, 'state'));
});
after(() => service?.stop());

function openai(tenant, options = {}) {
  const baseURL = `${service.url}/v1`;
  return new OpenAI({ apiKey: keys[tenant], baseURL, maxRetries: 0, ...options });
}

function ask(tenant, extra = {}, options = {}) {
  return openai(tenant, options).chat.completions.create({
    model: 'krill',
    messages: kCapital,
    temperature: 0,
    max_tokens: 4,
    ...extra,
  });
}

describe('requests per minute', () => {
  test('beyond them it is 429 with the time to wait, which OpenAI’s client keeps to', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 140 }, () => ask('metered', { max_tokens: 1 })),
    );
    const refused = outcomes.filter((each) => each.status === 'rejected').map((e) => e.reason);
    assert.ok(refused.length > 0);
    for (const error of refused) {
      assert.ok(error instanceof OpenAI.RateLimitError, String(error));
      assert.equal(error.code, 'rate_limited');
      assert.ok(Number(error.headers.get('retry-after')) >= 1);
    }
    const answer = await ask('metered', { max_tokens: 1 }, { maxRetries: 8 });
    assert.equal(answer.choices.length, 1);
    // Nobody else has felt it.
    assert.equal((await ask('a')).choices.length, 1);
  });
});

describe('concurrency', () => {
  test('holds a tenant’s second request back, whose head and comments come all the same', async () => {
    const long = { max_tokens: 400, ignore_eos: true, stream: true };
    const first = await ask('single', long);
    const body = JSON.stringify({ model: 'krill', messages: kCapital, max_tokens: 2, stream: true });
    const second = await service.post('/v1/chat/completions', body, {
      headers: { authorization: `Bearer ${keys.single}` },
    });
    assert.equal(second.status, 200);
    assert.match(second.headers.get('content-type'), /^text\/event-stream/);
    const text = second.text();
    assert.equal((await ask('b')).choices.length, 1);
    for await (const chunk of first) assert.ok(chunk.id);
    assert.match(await text, /data: \[DONE\]\n\n$/);
  });
});

describe('cached prefixes', () => {
  const words = Array.from({ length: 300 }, (_, i) => `word${i % 17}`).join(' ');
  const cached = async (tenant, user) => {
    const messages = [{ role: 'user', content: words }];
    const answer = await ask(tenant, user ? { messages, user } : { messages });
    const { prompt_tokens_details: details } = answer.usage;
    return { tokens: details.cached_tokens, text: answer.choices[0].message.content };
  };

  test('are a tenant’s own, and the answer is the same with and without them', async () => {
    const cold = await cached('a');
    const warm = await cached('a');
    const other = await cached('b');
    assert.equal(cold.tokens, 0);
    assert.ok(warm.tokens > 0);
    assert.equal(other.tokens, 0);
    assert.equal(warm.text, cold.text);
    assert.equal(other.text, cold.text);
  });

  test('are a user’s own where the tenant says so', async () => {
    assert.equal((await cached('shared', 'ann')).tokens, 0);
    assert.ok((await cached('shared', 'ann')).tokens > 0);
    assert.equal((await cached('shared', 'bob')).tokens, 0);
  });
});

describe('what was refused', () => {
  test('is counted by tenant and reason, and nothing is left waiting', async () => {
    const metrics = await service.metrics();
    const labels = { tenant: 'metered', reason: 'tenant_requests' };
    assert.ok(metrics.value('sluice_admission_refused_total', labels) > 0);
    await service.becomesIdle();
  });
});
