// Split requests in a storm: workers die by kill -9, and connections to them are cut, at moments drawn
// from a seed. No stream fails, none differs by a letter from the undisturbed one, and when it is over
// nobody holds anything. SLUICE_KILL_SCHEDULES says how many storms.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { collect, kStory } from './answers.mjs';
import { CuttableProxy } from './cuttable_proxy.mjs';
import { readMetrics } from './metrics.mjs';
import { clientOf, startProgram, startService } from './service.mjs';
import { seconds, waitUntil, within } from './waiting.mjs';

const kSchedules = Number(process.env.SLUICE_KILL_SCHEDULES ?? 100);
const kStreams = 6;  // At once.

let service;  // Supervises the engines.
let workers;  // { name, url, phase, proxy }
let gateway;  // Reaches them through the proxies.
let expected;

/** A small generator of numbers: the same seed, the same storm (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Everything that an answer can depend on: seeds, penalties, stops, what was said, and how much. */
const kRequests = [
  { seed: 1 },
  { seed: 2, temperature: 0.7, top_p: 0.9 },
  { temperature: 0, frequency_penalty: 0.5 },
  { seed: 4, presence_penalty: 1, frequency_penalty: 0.3 },
  { seed: 5, stop: [' and the'] },
  { seed: 6, logprobs: true, top_logprobs: 2 },
  { seed: 7, stream_options: { include_usage: true } },
  { seed: 8, reasoning_effort: 'high' },
  { seed: 9, messages: [{ role: 'user', content: `Sum this up: ${'the fox ran home. '.repeat(60)}` }] },
  { seed: 10, messages: [{ role: 'user', content: 'Say something.' }], max_tokens: 20 },
].map((extra) => ({
  model: 'krill',
  messages: kStory,
  temperature: 1,
  max_tokens: 48,
  ignore_eos: !extra.stop,
  stream: true,
  ...extra,
}));

function contentOf(answer) {
  const choices = answer.chunks.map((chunk) => chunk.choices[0]).filter(Boolean);
  return {
    text: answer.text,
    reasoning: answer.reasoning,
    finish: answer.finish,
    logprobs: choices.flatMap((choice) => choice.logprobs?.content ?? []),
    usage: answer.usage && [answer.usage.prompt_tokens, answer.usage.completion_tokens],
  };
}

async function ask(client, index, onChunk = () => {}) {
  return contentOf(await collect(await client.chat.completions.create(kRequests[index]), onChunk));
}

before(async () => {
  // A number of threads need not be measured: who was killed is back sooner.
  service = await startService(['--prefill', '2', '--decode', '2', '--threads', '1']);
  const client = service.openai();
  expected = await Promise.all(kRequests.map((_, index) => ask(client, index)));
  workers = await Promise.all(
    service.workers.map(async (worker) => ({ ...worker, proxy: await CuttableProxy.to(worker.url) })),
  );
  gateway = await startProgram([
    'gateway', '--port', '0', '--json', '--records', path.join(service.folder, 'storm'),
    ...workers.flatMap(({ phase, proxy }) => ['--worker', `stable/${phase}=${proxy.url}`]),
  ]);
  await allReady();
});
after(async () => {
  gateway?.program.kill('SIGKILL');
  for (const { proxy } of workers ?? []) proxy.close();
  await service?.stop();
});

async function loadOf(worker) {
  const response = await fetch(`${worker.url}/ready`);
  return { status: response.status, ...(await response.json()) };
}

/** Every worker answers, and the gateway knows it. */
async function allReady() {
  await waitUntil('all workers are ready', async () => {
    // The gateway may not know yet that one was killed which nobody used.
    const loads = await Promise.all(workers.map(loadOf));
    if (loads.some(({ status }) => status !== 200)) return false;
    const status = await (await fetch(`${gateway.ready.admin}/admin/status`)).json();
    const known = status.pools.flatMap((pool) => pool.workers);
    return known.length === workers.length && known.every(({ state }) => state === 'ready');
  });
}

/** kill -9 of all of them at once. */
async function kill(...victims) {
  const loads = await Promise.all(
    victims.map((worker) => waitUntil(`${worker.name} says who it is`, () => loadOf(worker))),
  );
  for (const { pid } of loads) process.kill(pid, 'SIGKILL');
}

const pick = (random, phase) => {
  const those = workers.filter((worker) => worker.phase === phase);
  return those[random(those.length)];
};

/** What happens, and at which token of the first stream; 0 is before there is any. */
function storm(random) {
  const prefill = pick(random, 'prefill');
  const decode = pick(random, 'decode');
  const later = 1 + random(40);
  return [
    { what: 'prefill before', at: 0, strike: () => kill(prefill) },
    { what: 'prefill during', at: 0, delay: random(12), strike: () => kill(prefill) },
    { what: 'prefill at the hand-over', at: 1, strike: () => kill(prefill) },
    { what: 'prefill after', at: later, strike: () => kill(prefill) },
    { what: 'decode', at: later, strike: () => kill(decode) },
    { what: 'decode at the hand-over', at: 1, strike: () => kill(decode) },
    { what: 'one of each', at: later, strike: () => kill(prefill, decode) },
    { what: 'connections of a prefill', at: random(3), delay: random(12), strike: () => prefill.proxy.cut() },
    { what: 'connections of a decode', at: later, strike: () => decode.proxy.cut() },
    { what: 'all connections', at: later, strike: () => workers.forEach(({ proxy }) => proxy.cut()) },
  ][random(10)];
}

async function weather(seed) {
  const random = randomOf(seed);
  const { what, at, delay, strike } = storm(random);
  const client = clientOf(gateway.ready.url);
  const indices = Array.from({ length: kStreams }, () => random(kRequests.length));
  let struck = null;
  const strikeOnce = () => {
    struck ??= Promise.resolve(strike());
    struck.catch(() => {});  // Whoever waits for it below hears of it.
    return struck;
  };
  if (at === 0 && delay === undefined) await strikeOnce();
  const streams = indices.map((index, place) =>
    ask(client, index, (answer) => {
      if (place === 0 && at > 0 && answer.chunks.length >= at) strikeOnce();
    }),
  );
  if (delay !== undefined) setTimeout(strikeOnce, delay);
  const answers = await within(`storm ${seed} (${what}) passes`, Promise.allSettled(streams), seconds(60));
  await strikeOnce();
  for (const [place, answer] of answers.entries()) {
    const which = `storm ${seed}: ${what} at ${at}, stream ${place}`;
    assert.equal(answer.status, 'fulfilled', `${which}: ${answer.reason}`);
    assert.deepEqual(answer.value, expected[indices[place]], which);
  }
  // A request may lose two workers in a row, but not three: each storm is one blow.
  await allReady();
}

test('in calm weather answers go from worker to worker', async () => {
  for (const [index, answer] of expected.entries()) {
    assert.deepEqual(await ask(clientOf(gateway.ready.url), index), answer);
  }
  const decoders = workers.filter(({ phase }) => phase === 'decode');
  const metrics = await Promise.all(decoders.map(({ url }) => readMetrics(url)));
  const pulled = metrics.map((each) =>
    each.value('sluice_engine_cached_tokens_total', { source: 'peer' }),
  );
  assert.ok(pulled.reduce((sum, each) => sum + each) > 0, 'blocks were pulled');
});

test(`${kSchedules} storms: no stream fails, none differs`, { timeout: Infinity }, async () => {
  for (let seed = 1; seed <= kSchedules; ++seed) {
    await weather(seed);
    if (seed % 50 === 0) console.log(`${seed} storms have passed`);
  }
});

test('when it is over all are back and nobody holds anything', { timeout: seconds(60) }, async () => {
  await allReady();
  await waitUntil('the gateway holds nothing', async () => {
    const metrics = await readMetrics(gateway.ready.admin);
    return ['sluice_open_streams', 'sluice_queue_depth', 'sluice_leases'].every(
      (name) => metrics.value(name) === 0,
    );
  });
  for (const worker of workers) {
    await waitUntil(
      `${worker.name} holds nothing`,
      async () => {
        const metrics = await readMetrics(worker.url);
        return ['sluice_kv_holds', 'sluice_engine_running', 'sluice_engine_waiting'].every(
          (name) => metrics.value(name) === 0,
        );
      },
      seconds(40),
    );
  }
});
