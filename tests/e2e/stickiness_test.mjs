// One prefix that everybody asks for, over four workers: it is computed once or twice, not by each
// worker, and yet no worker gets much more than the others. With a cache node, and without any: then
// workers load from one another.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { startService } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kWorkers = 4;
const kRequests = 800;
const kClients = 12;
const kFacts = Array.from({ length: 250 }, (_, i) => `Town ${i} has ${(i * 37) % 101} wells.`);

let service;
afterEach(() => service?.stop());

async function ask(question) {
  const response = await service.post('/v1/chat/completions', {
    model: 'krill',
    messages: [
      { role: 'system', content: kFacts.join(' ') },
      { role: 'user', content: `Is it ${question}?` },
    ],
    seed: question,
    temperature: 0.8,
    max_tokens: 2 + (question % 5),
    ignore_eos: true,
  });
  assert.equal(response.status, 200, await response.clone().text());
  const { choices, usage } = await response.json();
  return {
    question,
    text: choices[0].message.content,
    prompt: usage.prompt_tokens,
    cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

/** What `kClients` at a time get of `kRequests`. */
async function everybodyAsks() {
  const answers = [];
  let next = 0;
  const client = async () => {
    while (next < kRequests) answers.push(await ask(next++ % 20));
  };
  await Promise.all(Array.from({ length: kClients }, client));
  return answers;
}

async function allRecords() {
  return waitUntil('all records are there', async () => {
    const rows = await service.records();
    return rows.length >= kRequests ? rows : null;
  });
}

const sum = (list, of) => list.reduce((all, each) => all + of(each), 0);

for (const nodes of [1, 0]) {
  test(`a hot prefix pins nobody, with ${nodes} nodes`, { timeout: seconds(120) }, async () => {
    service = await startService(
      ['--workers', `${kWorkers}`, '--threads', '1', '--kv-nodes', `${nodes}`]);
    const answers = await everybodyAsks();

    const rows = await allRecords();
    const requests = {};
    for (const { legs } of rows) requests[legs[0].worker] = (requests[legs[0].worker] ?? 0) + 1;
    const share = sum(answers, ({ cached }) => cached) / sum(answers, ({ prompt }) => prompt);
    console.log(`${nodes} nodes: ${JSON.stringify(requests)}, ${(100 * share).toFixed(1)} % found`);
    assert.ok(share >= 0.9, `${share}`);
    for (const [worker, count] of Object.entries(requests))
      assert.ok(count <= (1.3 * kRequests) / kWorkers, `${worker} got ${count}`);

    // The others had it from somewhere, and their answers are the same.
    assert.ok(rows.some(({ cached_by_source: from }) => (from.node ?? 0) + (from.peer ?? 0) > 1000));
    const texts = {};
    for (const { question, text } of answers) assert.equal(text, (texts[question] ??= text));
    assert.deepEqual(service.errorLines, []);
  });
}
