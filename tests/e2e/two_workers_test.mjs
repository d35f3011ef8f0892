// Two engines behind one gateway: they share the work, and each takes over from the other.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { collect, storyRequest } from './answers.mjs';
import { startService } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kTokens = 800;

let service;
let client;
let expected;

before(async () => {
  service = await startService(['--workers', '2']);
  client = service.openai();
  expected = await collect(await startStream());
});
after(() => service?.stop());

afterEach(async () => {
  process.kill(service.pid, 'SIGCONT');
  for (const worker of [0, 1]) {
    await service.workerReaches('sluice_engine_running', 0, {}, worker);
  }
  await service.gatewayReaches('sluice_open_streams', 0);
});

function startStream(extra) {
  return client.chat.completions.create(storyRequest(77, kTokens, { stream: true, ...extra }));
}

/** The index of the one worker that computes. */
function busyWorker() {
  return waitUntil('a worker computes', async () => {
    const running = await Promise.all(
      [0, 1].map(async (i) => (await service.workerMetrics(i)).value('sluice_engine_running')),
    );
    return running[0] + running[1] === 1 ? { index: running.indexOf(1) } : null;
  });
}

async function resumes(reason) {
  return (await service.metrics()).value('sluice_resumes_total', { reason });
}

test('requests that come together go to both', async () => {
  assert.equal(service.workers.length, 2);
  assert.notEqual(service.workers[0].url, service.workers[1].url);
  const answers = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const { data, response } = await startStream({ max_tokens: 300 }).withResponse();
      return { id: response.headers.get('x-request-id'), ...(await collect(data)) };
    }),
  );
  const taken = new Map();
  for (const answer of answers) {
    assert.equal(answer.finish, 'length');
    assert.ok(expected.text.startsWith(answer.text));
    // Where it went, not who runs how many now: a busy machine shows no moment with three on each.
    const { legs } = await service.recordOf(answer.id);
    assert.equal(legs.length, 1);
    taken.set(legs[0].worker, (taken.get(legs[0].worker) ?? 0) + 1);
  }
  assert.equal(taken.size, 2);
  assert.ok(Math.min(...taken.values()) >= 2, `${[...taken.values()]} of 6`);
});

test('a stalled engine loses its stream to the other', { timeout: seconds(90) }, async () => {
  const before = await resumes('stalled');
  const stream = await startStream();
  const { index } = await busyWorker();
  const { pid } = service.workers[index];
  process.kill(pid, 'SIGSTOP');
  try {
    const answer = await collect(stream);
    assert.equal(answer.text, expected.text);
    assert.equal(await resumes('stalled'), before + 1);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test(
  'a killed engine loses its stream to the other at once',
  { timeout: seconds(60) },
  async () => {
    const before = await resumes('worker_lost');
    const stream = await startStream();
    const { index } = await busyWorker();
    // Nobody is restarted, so it can only go on elsewhere.
    process.kill(service.pid, 'SIGSTOP');
    process.kill(service.workers[index].pid, 'SIGKILL');
    const answer = await collect(stream);
    assert.equal(answer.text, expected.text);
    assert.equal(answer.finish, 'length');
    assert.equal(await resumes('worker_lost'), before + 1);
    assert.equal(await service.readyStatus(), 200);
  },
);
