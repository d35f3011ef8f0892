// What was computed once is found again: after the engine died, after everything was started anew, and
// nobody notices when the cache dies.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { childrenOf, commandLine } from './processes.mjs';
import { removeFolder, startService, temporaryFolder } from './service.mjs';
import { seconds, waitUntil, within } from './waiting.mjs';

const folder = temporaryFolder();
let service;

after(async () => {
  service?.program.kill('SIGKILL');
  await service?.program.ended;
  removeFolder(folder);
});

const kFacts = Array.from({ length: 150 }, (_, i) => `Town ${i} has ${(i * 37) % 101} wells.`);

function request(question) {
  return {
    model: 'krill',
    messages: [
      { role: 'system', content: kFacts.join(' ') },
      { role: 'user', content: question },
    ],
    seed: 7,
    temperature: 0.8,
    max_tokens: 40,
  };
}

/** The answer's text, and how many tokens of the prompt came from where. */
async function ask(question) {
  const response = await service.post('/v1/chat/completions', request(question));
  assert.equal(response.status, 200, await response.clone().text());
  const answer = await response.json();
  const row = await service.recordOf(response.headers.get('x-request-id'));
  return {
    text: answer.choices[0].message.content,
    prompt: answer.usage.prompt_tokens,
    cached: answer.usage.prompt_tokens_details?.cached_tokens ?? 0,
    sources: row.cached_by_source ?? {},
    decision: row.kv_decision,
  };
}

async function start() {
  service = await startService(['--kv-nodes', '1'], folder);
}

/** Nothing new goes to the node any more, and something did. */
async function published() {
  let before = -1;
  await waitUntil('the blocks are at the node', async () => {
    const metrics = await service.workerMetrics();
    const now = metrics.value('sluice_kv_published_total', { tier: 'node', result: 'stored' }) ?? 0;
    const settled = now > 0 && now === before;
    before = now;
    return settled;
  });
}

function pidOf(command) {
  return childrenOf(service.pid).find((pid) => commandLine(pid)[1] === command);
}

async function killed(command) {
  const pid = pidOf(command);
  assert.ok(pid, `there is a ${command}`);
  process.kill(pid, 'SIGKILL');
  await waitUntil(`another ${command} is there`, () => {
    const now = pidOf(command);
    return now && now !== pid;
  });
}

let first;

test('a prompt that was asked before is cached', { timeout: seconds(60) }, async () => {
  await start();
  first = await ask('How many wells?');
  assert.equal(first.cached, 0);
  assert.ok(first.prompt > 1000, `${first.prompt} tokens`);
  const again = await ask('How many wells?');
  assert.equal(again.text, first.text);
  assert.ok(again.cached > 0.9 * first.prompt - 64, `${again.cached} of ${again.prompt}`);
  assert.ok(again.sources.pool > 0);
  await published();
});

test('a new engine finds it at the node', { timeout: seconds(60) }, async () => {
  await killed('engine');
  await waitUntil('a worker is ready', async () => (await service.readyStatus()) === 200);
  const again = await ask('How many wells?');
  assert.equal(again.text, first.text);
  assert.ok(again.sources.node > 0.9 * first.prompt - 64, JSON.stringify(again.sources));
  assert.equal(again.cached, again.sources.node);
  // What the worker had predicted, and what came of it, is on record.
  const [load] = again.decision.loads;
  assert.deepEqual([load.source, load.choice, load.tokens], ['node', 'load', again.sources.node]);
  assert.ok(load.took_us > 0 && load.predicted_us > 0 && load.predicted_us < load.queue_us + load.compute_us);
  assert.ok(again.decision.compute_took_us > 0);
});

test('everything started anew finds it on the disk', { timeout: seconds(90) }, async () => {
  service.program.kill('SIGTERM');
  await within('the service stops', service.program.ended, seconds(40));
  await start();
  const again = await ask('How many wells?');
  assert.equal(again.text, first.text);
  assert.ok(again.sources.node > 0.9 * first.prompt - 64, JSON.stringify(again.sources));
});

test('a node that dies costs no request', { timeout: seconds(90) }, async () => {
  const texts = new Map();
  for (let i = 0; i < 4; ++i) texts.set(i, (await ask(`Question ${i}?`)).text);
  const asked = Array.from({ length: 12 }, (_, i) =>
    ask(`Question ${i % 4}?`).then((answer) => assert.equal(answer.text, texts.get(i % 4))),
  );
  await killed('kvnode');
  await Promise.all(asked);
  await killed('engine');
  await killed('kvnode');
  await waitUntil('a worker is ready', async () => (await service.readyStatus()) === 200);
  for (const [i, text] of texts) assert.equal((await ask(`Question ${i}?`)).text, text);
  assert.deepEqual(service.errorLines, []);
});
