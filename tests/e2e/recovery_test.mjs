// Processes die; what clients see of it is a pause.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { collect, kCapital, kCapitalAnswer, storyRequest } from './answers.mjs';
import { isAlive } from './processes.mjs';
import { startService } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kTokens = 600;

let service;
let client;

before(async () => {
  service = await startService();
  client = service.openai();
});
after(() => service?.stop());

afterEach(async () => {
  process.kill(service.pid, 'SIGCONT');
  await waitUntil('a worker is ready', async () => (await service.readyStatus()) === 200);
  await service.becomesIdle();
});

function engine() {
  const pid = service.childPid('engine');
  assert.ok(pid, 'there is an engine');
  return pid;
}

async function askCapital() {
  const answer = await client.chat.completions.create({
    model: 'krill', messages: kCapital, temperature: 0,
  });
  return answer.choices[0].message.content;
}

/** Streams `request` and calls `disturb` once it has `after` chunks. */
async function streamWithTrouble(request, after, disturb) {
  let done = false;
  return collect(await client.chat.completions.create({ ...request, stream: true }), (answer) => {
    if (done || answer.chunks.length < after) return;
    done = true;
    disturb();
  });
}

test('the engine named when the service became ready is its child', () => {
  assert.equal(service.workers[0].pid, engine());
});

for (const [what, request] of [
  ['seeded', storyRequest(21, kTokens)],
  ['greedy, penalised', storyRequest(22, kTokens, { temperature: 0, frequency_penalty: 0.5 })],
]) {
  test(`a ${what} stream survives kill -9 of its engine, to the letter`, { timeout: seconds(90) }, async () => {
    const undisturbed = await collect(await client.chat.completions.create({ ...request, stream: true }));
    const before = (await service.metrics()).value('sluice_resumes_total');
    const old = engine();
    const answer = await streamWithTrouble(request, 8, () => process.kill(old, 'SIGKILL'));
    assert.equal(answer.text, undisturbed.text);
    assert.equal(answer.finish, 'length');
    assert.equal((await service.metrics()).value('sluice_resumes_total'), before + 1);
    assert.notEqual(engine(), old);
    assert.match(service.log, new RegExp(`\\b${old}\\b|signal 9`));
  });
}

test('without a worker /ready says 503, and a request waits and is answered', { timeout: seconds(90) }, async () => {
  assert.equal(await service.readyStatus(), 200);
  // A supervisor that is stopped restarts nobody.
  process.kill(service.pid, 'SIGSTOP');
  process.kill(engine(), 'SIGKILL');
  await waitUntil('/ready says 503', async () => (await service.readyStatus()) === 503);
  const health = await fetch(`${service.url}/health`);
  assert.equal(health.status, 200);
  const answer = askCapital();
  await service.gatewayReaches('sluice_queue_depth', 1);

  // One that has a deadline gives up, one whose client goes leaves the queue.
  const impatient = await service.post('/v1/chat/completions', { model: 'krill', messages: kCapital }, {
    headers: { 'x-sluice-deadline-ms': '50' },
  });
  assert.equal(impatient.status, 504);
  const leaving = new AbortController();
  const left = service.post('/v1/chat/completions', { model: 'krill', messages: kCapital }, {
    signal: leaving.signal,
  });
  await service.gatewayReaches('sluice_queue_depth', 2);
  leaving.abort();
  await assert.rejects(left);
  await service.gatewayReaches('sluice_queue_depth', 1);

  process.kill(service.pid, 'SIGCONT');
  assert.equal(await answer, kCapitalAnswer);
  assert.equal(await service.readyStatus(), 200);
  const metrics = await service.metrics();
  assert.equal(metrics.value('sluice_requests_total', { outcome: 'timeout_queue' }), 1);
});

test('a gateway killed with kill -9 is back at the same address', { timeout: seconds(60) }, async () => {
  const old = service.childPid('gateway');
  assert.ok(old, 'there is a gateway');
  const orphan = service.post('/v1/chat/completions', storyRequest(5, 100_000));
  await service.workerReaches('sluice_engine_running', 1);
  process.kill(old, 'SIGKILL');
  await assert.rejects(orphan);
  assert.equal(await waitUntil('the gateway answers', askCapital), kCapitalAnswer);
  assert.notEqual(service.childPid('gateway'), old);
  assert.ok(!isAlive(old));
  // The engine has given up what the old gateway had asked for.
  await service.workerReaches('sluice_engine_running', 0);
});

test('engine and gateway killed together both come back', { timeout: seconds(60) }, async () => {
  process.kill(engine(), 'SIGKILL');
  process.kill(service.childPid('gateway'), 'SIGKILL');
  assert.equal(await waitUntil('the service answers', askCapital), kCapitalAnswer);
});
