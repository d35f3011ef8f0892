// Many clients at once, and one that doesn't read.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { collect, parseEvents, storyRequest, textOf } from './answers.mjs';
import { RawConnection } from './raw_connection.mjs';
import { startService } from './service.mjs';
import { seconds } from './waiting.mjs';

const kStreams = 200;
const kSeeds = 8;
const kTokens = 24;

let service;
let client;
let expected;  // By seed, from when the service had nothing else to do.

before(async () => {
  service = await startService();
  client = service.openai();
  expected = [];
  for (let seed = 0; seed < kSeeds; ++seed) {
    const answer = await client.chat.completions.create(storyRequest(seed, kTokens));
    expected.push(answer.choices[0].message.content);
  }
});
after(() => service?.stop());

async function runStreams(count) {
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, i) =>
      collect(
        await client.chat.completions.create(
          storyRequest(i % kSeeds, kTokens, { stream: true, stream_options: { include_usage: true } }),
        ),
      ),
    ),
  );
  for (const [i, answer] of answers.entries()) {
    assert.equal(answer.text, expected[i % kSeeds]);
    assert.equal(answer.finish, 'length');
    assert.equal(answer.usage.completion_tokens, kTokens);
  }
}

test('200 streams at once say what each says alone', { timeout: seconds(120) }, async () => {
  const before = await service.metrics();
  await runStreams(kStreams);
  await service.becomesIdle();
  const ok = { outcome: 'ok' };
  const after = await service.metrics();
  assert.equal(
    after.value('sluice_requests_total', ok) - before.value('sluice_requests_total', ok),
    kStreams,
  );
});

test('a reader that stops reading holds nobody up, and loses nothing', { timeout: seconds(120) }, async () => {
  const request = storyRequest(1234, 300, { logprobs: true, top_logprobs: 5 });
  const whole = await client.chat.completions.create(request);

  const reader = await RawConnection.post(service, '/v1/chat/completions',
    { ...request, stream: true }, ['Connection: close']);
  await reader.pauseAfterFirstBytes();
  await runStreams(40);
  assert.ok(!reader.text.includes('[DONE]'));

  reader.socket.resume();
  await reader.closes();
  const events = parseEvents(reader.unchunkedBody());
  assert.equal(textOf(events), whole.choices[0].message.content);
  assert.equal(events.at(-1), '[DONE]');
  await service.becomesIdle();
});

test('the log holds no error', () => assert.deepEqual(service.errorLines, []));
