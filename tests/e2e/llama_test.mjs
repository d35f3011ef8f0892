// llama.cpp's own server as a pass-through pool, beside our engine with the same model: what a foreign
// server says comes through as it is, and what happens to it is known.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { kCapital, kCapitalAnswer, kStory, parseEvents } from './answers.mjs';
import { answersInOnePiece, streamsTheSame } from './passed_through.mjs';
import { startLlamaServer } from './llama_server.mjs';
import { clientOf, startService, temporaryFolder } from './service.mjs';
import { waitUntil } from './waiting.mjs';

let llama;
let service;
let client;

before(async () => {
  llama = await startLlamaServer({ alias: 'org/krill' });
  const folder = temporaryFolder();
  const file = path.join(folder, 'sluice.toml');
  writeFileSync(
    file,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pool]]
name = "llama"
engine = "llama.cpp"
url = "${llama.url}/v1"
model = "krill"
upstream_model = "org/krill"
max_concurrency = 4
[[pool]]
name = "own"
[plan]
stable = "llama"
`,
  );
  service = await startService(['--config', file], folder);
  client = service.openai();
});
after(async () => {
  await service?.stop();
  await llama?.stop();
});

const ask = (extra) =>
  client.chat.completions.create({ model: 'krill', messages: kCapital, temperature: 0, ...extra });

test('an answer in one piece is llama.cpp’s, and is counted by its usage', () =>
  answersInOnePiece(service, 'llama', ask));

test('a stream is the same, and its usage is there only if it was asked for', () =>
  streamsTheSame(ask));

test('llama.cpp and our engine say the same of one model', async () => {
  const request = { messages: kStory, temperature: 0, max_tokens: 24 };
  const { data, response } = await client.chat.completions
    .create({ model: 'krill', ...request })
    .withResponse();
  const direct = await clientOf(llama.url).chat.completions.create({ model: 'org/krill', ...request });
  assert.equal(data.choices[0].message.content, direct.choices[0].message.content);
  const own = await startService();
  try {
    const ours = await own.openai().chat.completions.create({ model: 'krill', ...request });
    const words = (answer) => answer.choices[0].message.content.split(' ').slice(0, 8).join(' ');
    // Its arithmetic is not ours: later words may differ, the first do not.
    assert.equal(words(data), words(ours));
    const row = await service.recordOf(response.headers.get('x-request-id'));
    assert.equal(row.prompt_tokens, ours.usage.prompt_tokens, 'the template is Krill’s own');
  } finally {
    await own.stop();
  }
});

test('fields that only llama.cpp knows go there and come back', async () => {
  const answer = await (
    await service.post('/v1/chat/completions', {
      model: 'krill',
      messages: kCapital,
      temperature: 2,
      top_k: 1, // So that it says what is likeliest in spite of the temperature.
      n_predict: 4,
      timings_per_token: true,
    })
  ).json();
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.ok(kCapitalAnswer.startsWith(answer.choices[0].message.content.trim()));
  assert.equal(typeof answer.timings.predicted_ms, 'number');
});

test('its JSON mode works through the pool, and the record says what kind it was', async () => {
  const schema = {
    type: 'object',
    properties: { yes: { type: 'boolean' } },
    required: ['yes'],
    additionalProperties: false,
  };
  const { data, response } = await ask({
    max_tokens: 40,
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
  }).withResponse();
  assert.equal(typeof JSON.parse(data.choices[0].message.content).yes, 'boolean');
  const row = await service.recordOf(response.headers.get('x-request-id'));
  assert.equal(row.kind, 'json_schema');
});

test('what it refuses is refused in its words', async () => {
  const body = { model: 'krill', messages: 'no list' };
  const direct = await fetch(`${llama.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  const through = await service.post('/v1/chat/completions', body);
  assert.equal(through.status, direct.status);
  assert.ok(through.status >= 400);
  assert.deepEqual(await through.json(), await direct.json());
});

test('a client that goes ends the work there', async () => {
  const aborter = new AbortController();
  const response = await service.post(
    '/v1/chat/completions',
    { model: 'krill', messages: kStory, stream: true, max_tokens: 1800, ignore_eos: true },
    { signal: aborter.signal },
  );
  const reader = response.body.getReader();
  await reader.read();
  await waitUntil('llama.cpp works on it', async () => (await llama.metric('requests_processing')) > 0);
  aborter.abort();
  await llama.becomesIdle();
  const row = await service.recordOf(response.headers.get('x-request-id'));
  assert.equal(row.outcome, 'client_gone');
});

test('more requests than it has slots wait here and are all answered', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const response = await service.post('/v1/chat/completions', {
        model: 'krill',
        messages: kCapital,
        temperature: 0,
        stream: true,
      });
      const text = await response.text();
      const events = parseEvents(text);
      assert.equal(events.at(-1), '[DONE]', text);
      return events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('');
    }),
  );
  assert.deepEqual([...new Set(answers)], [kCapitalAnswer]);
});
