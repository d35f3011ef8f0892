// 90 % of the clients in flight go away at once, as when a service in front of us is restarted, and
// others come at once in their place. What engines computed for those who went must not hold up those
// who came: within five seconds as much text comes as before. The same on a virtual clock:
// SimulationTest.AfterMostRequestsWereCancelledThroughputIsBackInFiveSeconds.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { storyRequest } from '../e2e/answers.mjs';
import { startService } from '../e2e/service.mjs';
import { seconds } from '../e2e/waiting.mjs';

const kRounds = Number(process.env.SLUICE_CANCEL_ROUNDS ?? 5);
const kClients = 160; // 80 for each worker.
const kShare = 0.9;
const kWindow = 10_000; // Milliseconds over which text is counted.
const kBack = 5_000;

let service;
before(async () => {
  service = await startService(['--workers', '2', '--threads', '1']);
});
after(() => service?.stop());

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Someone who asks again as soon as an answer has ended, or was given up. */
class Client {
  constructor(number, count) {
    this.number = number;
    this.count = count;
    this.asked = 0;
    this.failures = [];
  }

  async run() {
    while (!this.stopped) {
      this.abort = new AbortController();
      await this.ask(this.abort.signal).catch((error) => {
        if (error.name !== 'AbortError') this.failures.push(error.message);
      });
    }
  }

  async ask(signal) {
    // Long prompts and short ones, long answers and short ones.
    const turn = this.number * 7 + this.asked++;
    const request = storyRequest(turn, 40 + (turn % 5) * 40, { stream: true });
    const text = `Sum this up: ${'the fox ran home. '.repeat((turn % 4) * 40)}`;
    request.messages = [{ role: 'user', content: `${turn}. ${text}` }];
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      signal,
    });
    assert.equal(response.status, 200);
    const reader = response.body.pipeThrough(new TextDecoderStream());
    let last = '';
    for await (const piece of reader) {
      this.count(piece.split('data: ').length - 1);
      last = (last + piece).slice(-64);
    }
    assert.ok(last.includes('[DONE]'), last);
  }
}

test(`${kRounds} times ${100 * kShare} % are cancelled: as much text as before within 5 s`, { timeout: Infinity }, async () => {
  let events = 0;
  const clients = Array.from({ length: kClients }, (_, i) => new Client(i, (more) => (events += more)));
  const running = clients.map((client) => client.run());
  const eventsIn = async (milliseconds) => {
    const from = events;
    const began = performance.now();
    await pause(milliseconds);
    return ((events - from) / (performance.now() - began)) * 1000;
  };

  await pause(kWindow);
  for (let round = 1; round <= kRounds; ++round) {
    const before = await eventsIn(kWindow);
    for (const client of clients.filter(({ number }) => (number * 37 + round) % 100 < 100 * kShare))
      client.abort.abort();
    const during = await eventsIn(kBack);
    const after = await eventsIn(kWindow);
    console.log(
      `round ${round}: ${before.toFixed(0)} events a second before, ${during.toFixed(0)} in the ` +
        `five seconds after, ${after.toFixed(0)} then`,
    );
    assert.ok(after >= 0.9 * before, 'throughput is back');
  }

  for (const client of clients) {
    client.stopped = true;
    client.abort.abort();
  }
  await Promise.all(running);
  assert.deepEqual(clients.flatMap(({ failures }) => failures), []);
});

test('who went away left nothing behind', { timeout: seconds(60) }, async () => {
  await service.becomesIdle();
  for (const name of ['sluice_engine_running', 'sluice_engine_waiting'])
    await service.workerReaches(name, 0, {}, 1);
});
