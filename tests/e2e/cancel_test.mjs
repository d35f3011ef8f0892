// A client that goes takes its request with it, through to the engine, wherever the request is.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { kCapital, kCapitalAnswer, storyRequest } from './answers.mjs';
import { RawConnection } from './raw_connection.mjs';
import { startService } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kChat = '/v1/chat/completions';
const kEndless = 100_000; // Tokens: minutes of work.
const kPlaces = 128; // Requests that an engine computes together.

let service;

before(async () => (service = await startService()));
after(() => service?.stop());

// Whatever happened, the service is idle and well.
afterEach(async () => {
  await service.becomesIdle();
  const answer = await service.openai().chat.completions.create({
    model: 'krill',
    messages: kCapital,
    temperature: 0,
  });
  assert.equal(answer.choices[0].message.content, kCapitalAnswer);
  assert.deepEqual(service.errorLines, []);
});

async function clientsGone() {
  return (await service.metrics()).value('sluice_requests_total', { outcome: 'client_gone' });
}

async function engineTokens(phase) {
  return (await service.workerMetrics()).value('sluice_engine_tokens_total', { phase });
}

/** Runs `leave` and expects one more request to be counted as left by its client. */
async function countsAsGone(leave, count = 1) {
  const before = await clientsGone();
  await leave();
  await waitUntil(
    'the client is counted as gone',
    async () => (await clientsGone()) === before + count,
  );
}

test('while its answer streams', async () => {
  const before = await engineTokens('decode');
  const stream = await RawConnection.post(
    service,
    kChat,
    storyRequest(1, kEndless, { stream: true }),
  );
  await stream.receives('"content":"');
  await countsAsGone(() => stream.destroy());
  await service.workerReaches('sluice_engine_running', 0);
  assert.ok((await engineTokens('decode')) - before < kEndless / 2);
});

test('while it waits for an answer in one piece', async () => {
  const connection = await RawConnection.post(service, kChat, storyRequest(2, kEndless));
  await service.workerReaches('sluice_engine_running', 1);
  await countsAsGone(() => connection.destroy());
});

test('while its prompt is computed, before the first token', async () => {
  const prompt = Array.from({ length: 40_000 }, (_, i) => 259 + (i % 3000));
  const prefilled = await engineTokens('prefill');
  const decoded = await engineTokens('decode');
  const connection = await RawConnection.post(service, '/v1/completions', {
    model: 'krill',
    prompt,
    max_tokens: 16,
    stream: true,
  });
  await waitUntil(
    'the prompt is on its way',
    async () => (await engineTokens('prefill')) > prefilled,
  );
  await countsAsGone(() => connection.destroy());
  await service.workerReaches('sluice_engine_running', 0);
  assert.ok((await engineTokens('prefill')) - prefilled < prompt.length);
  assert.equal(await engineTokens('decode'), decoded);
  assert.ok(!connection.text.includes('"text":"'));
});

test('while it waits for a place in the engine', { timeout: seconds(90) }, async () => {
  const start = (seed) =>
    RawConnection.post(service, kChat, storyRequest(seed, kEndless, { stream: true }));
  const busy = await Promise.all(Array.from({ length: kPlaces }, (_, seed) => start(seed)));
  await service.workerReaches('sluice_engine_running', kPlaces);
  const waiting = await start(1000);
  await service.workerReaches('sluice_engine_waiting', 1);
  await countsAsGone(() => waiting.destroy());
  await service.workerReaches('sluice_engine_waiting', 0);
  assert.equal((await service.workerMetrics()).value('sluice_engine_running'), kPlaces);
  await countsAsGone(() => busy.forEach((each) => each.destroy()), busy.length);
});

test("by OpenAI's own client", async () => {
  await countsAsGone(async () => {
    const stream = await service
      .openai()
      .chat.completions.create(storyRequest(3, kEndless, { stream: true }));
    for await (const chunk of stream) {
      if (chunk.choices[0].delta.content) break;
    }
    stream.controller.abort();
  });
});

test('by closing only its sending side', async () => {
  const stream = await RawConnection.post(
    service,
    kChat,
    storyRequest(4, kEndless, { stream: true }),
  );
  await stream.receives('"content":"');
  await countsAsGone(() => stream.socket.end());
  await stream.closes();
});

test('a hundred times in a row without a trace', { timeout: seconds(90) }, async () => {
  await countsAsGone(async () => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, seed) => {
        const stream = await RawConnection.post(
          service,
          kChat,
          storyRequest(seed, kEndless, { stream: true }),
        );
        await stream.receives('HTTP/1.1 200');
        stream.destroy();
      }),
    );
  }, 100);
});
