// A pass-through pool in front of another service: what OpenAI's and Vercel's clients see through it is
// what they see without it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';

import { collect, kCapital, kCapitalAnswer, storyRequest } from './answers.mjs';
import { startService, temporaryFolder } from './service.mjs';

let upstream; // Krill, served by our own engine.
let service; // Krill beside it, and the pool that passes through.
let client;

before(async () => {
  upstream = await startService();
  const folder = temporaryFolder();
  const file = path.join(folder, 'sluice.toml');
  writeFileSync(
    file,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pool]]
name = "outside"
engine = "openai"
url = "${upstream.url}/v1"
model = "glass"
upstream_model = "krill"
[[pool]]
name = "own"
[plan]
stable = "outside"
`,
  );
  service = await startService(['--config', file], folder);
  client = service.openai();
});
after(async () => {
  await service?.stop();
  await upstream?.stop();
});

const ask = (extra) =>
  client.chat.completions.create({ model: 'glass', messages: kCapital, temperature: 0, ...extra });

test('both pools are there, and the native one has its engine', async () => {
  const status = await (await fetch(`${service.admin}/admin/status`)).json();
  assert.deepEqual(
    status.pools.map(({ name, engine }) => ({ name, engine })).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    [
      { name: 'outside', engine: 'openai' },
      { name: 'own', engine: 'native' },
    ],
  );
  assert.deepEqual(service.workers.map(({ name }) => name), ['own-0']);
  const models = await client.models.list();
  assert.deepEqual(models.data.map(({ id }) => id), ['glass']);
});

test('an answer in one piece is the other service’s own', async () => {
  const { data, response } = await ask().withResponse();
  assert.equal(data.choices[0].message.content, kCapitalAnswer);
  assert.equal(data.model, 'glass', 'as the client calls it');
  assert.equal(data.usage.prompt_tokens, 11);
  assert.equal(response.headers.get('x-sluice-pool'), 'outside');
});

test('a stream is the same, and its usage is there only if it was asked for', async () => {
  const plain = await collect(await ask({ stream: true }));
  assert.equal(plain.text, kCapitalAnswer);
  assert.equal(plain.finish, 'stop');
  assert.equal(plain.usage, null);
  const counted = await collect(
    await ask({ stream: true, stream_options: { include_usage: true } }),
  );
  assert.equal(counted.usage.completion_tokens, 8);
  const through = await collect(
    await client.chat.completions.create({
      ...storyRequest(7, 60, { stream: true }),
      model: 'glass',
    }),
  );
  const direct = await collect(
    await upstream.openai().chat.completions.create(storyRequest(7, 60, { stream: true })),
  );
  assert.equal(through.text, direct.text);
});

test('Vercel’s client works through it', async () => {
  const provider = createOpenAICompatible({
    name: 'sluice',
    baseURL: `${service.url}/v1`,
    includeUsage: true,
  });
  const { text, usage } = await generateText({
    model: provider('glass'),
    messages: kCapital,
    temperature: 0,
    maxRetries: 0,
  });
  assert.equal(text, kCapitalAnswer);
  assert.equal(usage.inputTokens, 11);
  const stream = streamText({
    model: provider('glass'),
    messages: kCapital,
    temperature: 0,
    maxRetries: 0,
  });
  let streamed = '';
  for await (const part of stream.textStream) streamed += part;
  assert.equal(streamed, kCapitalAnswer);
  assert.equal(await stream.finishReason, 'stop');
  assert.equal((await stream.usage).outputTokens, 8);
});

test('what the other service refuses is refused in its words', async () => {
  await assert.rejects(ask({ temperature: 9 }), (error) => {
    assert.equal(error.status, 400);
    assert.equal(error.param, 'temperature');
    return true;
  });
  await assert.rejects(ask({ model: 'krill' }), { status: 404 });
});

test('its times are measured here', async () => {
  const metrics = await service.metrics();
  const ok = { pool: 'outside', outcome: 'ok', kind: 'text', bucket: '<=16k' };
  assert.ok(metrics.value('sluice_requests_total', ok) > 0);
  assert.ok(metrics.value('sluice_ttft_seconds_count', { pool: 'outside' }) > 0);
  assert.ok(metrics.value('sluice_tbt_seconds_count', { pool: 'outside' }) > 0);
});
