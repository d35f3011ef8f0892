// The cluster of cache nodes grows and shrinks while requests run: 3 -> 4 -> 3 nodes, and one that is
// killed. What is counted are tokens: those of repeated prompts that were computed although they had
// been computed before. Workers forget their own blocks before every round, so that nodes count alone.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { KvNode } from './kv_node.mjs';
import { runProgram, startService, temporaryFolder } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kBlock = 64;
const kAnswer = 4;
const kClients = 6;
/** A quarter of the extents moves when a fourth node comes. Addresses are drawn anew for each run, and
 *  decide which: with some 130 extents, four standard deviations are 0.15. */
const kMovedAtMost = 0.25 + 0.15;

let service;
let fourth;

before(async () => {
  const folder = temporaryFolder();
  const config = path.join(folder, 'sluice.toml');
  // Forced, because with a model this small computing may well be predicted to be sooner.
  writeFileSync(
    config,
    '[gateway]\nlisten = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n[kv]\nforce = "load"\n',
  );
  service = await startService(
    ['--config', config, '--workers', '2', '--threads', '1', '--kv-nodes', '3', '--kv-node-ssd', '0B'],
    folder,
  );
  fourth = await KvNode.start();
});
after(async () => {
  fourth?.process.kill('SIGKILL');
  await service?.stop();
});

// ---- Prompts --------------------------------------------------------------------------------------

/** Short ones, and every tenth of more than an extent; no two begin alike. */
function promptsOf(name, count) {
  return Array.from({ length: count }, (_, number) => {
    const facts = Array.from(
      { length: number % 10 === 0 ? 130 : 14 },
      (_, i) => `Town ${i} of ${name}${number} has ${(i * 37 + number) % 101} wells.`,
    );
    return `${name}${number}: ${facts.join(' ')} How many wells?`;
  });
}

const answers = new Map();

/** The answer, which is always the same; the tokens of the prompt, and those that were computed. */
async function ask(prompt) {
  const response = await service.post('/v1/completions', {
    model: 'krill',
    prompt,
    seed: 7,
    temperature: 0.8,
    max_tokens: kAnswer,
    ignore_eos: true,
  });
  assert.equal(response.status, 200, await response.clone().text());
  const { choices, usage } = await response.json();
  const text = answers.get(prompt) ?? choices[0].text;
  answers.set(prompt, text);
  assert.equal(choices[0].text, text);
  return {
    prompt: usage.prompt_tokens,
    computed: usage.prompt_tokens - (usage.prompt_tokens_details?.cached_tokens ?? 0),
  };
}

/** Workers have nothing of their own any more. */
async function forgetOwn() {
  for (const { url } of service.workers) {
    const dropped = await fetch(`${url}/kv/drop`, { method: 'POST', body: '{"class":"chat"}' });
    assert.equal(dropped.status, 200, await dropped.text());
  }
}

/**
 * Every prompt once, a few at a time. `midway` begins after a third of them, and the last third waits
 * for its end. In all: the tokens of prompts, `extra` of which were computed though a block could have
 * them, and the blocks that are left behind.
 */
async function round(prompts, midway = async () => {}) {
  await forgetOwn();
  let next = 0;
  let changed;
  const sum = { tokens: 0, blocks: 0, extra: 0 };
  const client = async () => {
    while (next < prompts.length) {
      const at = next++;
      if (at >= prompts.length / 3) changed ??= midway();
      if (at >= (2 * prompts.length) / 3) await changed;
      const { prompt, computed } = await ask(prompts[at]);
      sum.tokens += prompt;
      // The last token of a prompt is always computed, that of an answer never.
      sum.extra += computed - 1 - ((prompt - 1) % kBlock);
      sum.blocks += Math.floor((prompt + kAnswer - 1) / kBlock);
    }
  };
  await Promise.all(Array.from({ length: kClients }, client));
  return sum;
}

// ---- Nodes ----------------------------------------------------------------------------------------

const fourthUrl = () => `redis://127.0.0.1:${fourth.port}`;

/** The list of nodes, and its epoch. */
async function list() {
  return (await fetch(`${service.admin}/admin/kv/nodes`)).json();
}

async function blocksAt(http) {
  const status = await (await fetch(`${http}/kv/status`)).json();
  return status.tiers.find(({ tier }) => tier === 'dram').entries;
}

/** All nodes of the list together hold as many blocks, so that nothing is on its way any more. */
function nodesHold(blocks) {
  return waitUntil(`the nodes hold ${blocks} blocks`, async () => {
    const held = await Promise.all((await list()).members.map(({ http }) => blocksAt(http)));
    return held.reduce((sum, each) => sum + each, 0) >= blocks;
  });
}

/** `sluice ctl kv nodes ARGS`, and every worker follows. */
async function change(...args) {
  const done = await runProgram(['ctl', 'kv', 'nodes', ...args, '--url', service.admin]);
  assert.equal(done.code, 0, done.stderr);
  const { epoch } = await list();
  await waitUntil(`workers follow list ${epoch}`, async () => {
    const loads = await Promise.all(
      service.workers.map(async ({ url }) => (await fetch(`${url}/ready`)).json()),
    );
    return loads.every(({ kv_epoch }) => kv_epoch === epoch);
  });
}
const add = () => change('add', fourthUrl(), '--http', fourth.http);
const remove = () => change('remove', fourthUrl());

// ---- What happens ---------------------------------------------------------------------------------

const early = promptsOf('Alder', 120);
const late = promptsOf('Birch', 120);
const last = promptsOf('Cedar', 60);
let first;
let second;

test('three nodes hold all that was asked', { timeout: seconds(90) }, async () => {
  first = await round(early);
  assert.ok(first.extra > 0, 'nothing was known');
  await nodesHold(first.blocks);
  assert.equal((await round(early)).extra, 0);
});

test('a fourth node takes its share over, and nothing is computed anew', { timeout: seconds(90) }, async () => {
  const during = await round(early, add);
  assert.equal((await list()).members.length, 4);
  assert.equal(during.extra, 0, 'it is had from where it lay before');
  await round(early);
  const moved = await blocksAt(fourth.http);
  assert.ok(moved > 0 && moved <= kMovedAtMost * first.blocks, `${moved} of ${first.blocks}`);
  assert.equal((await round(early)).extra, 0);
});

test('a node that leaves costs what it alone had, once', { timeout: seconds(90) }, async () => {
  const shared = await blocksAt(fourth.http);
  second = await round(late);
  await nodesHold(first.blocks + second.blocks + shared);
  const alone = (await blocksAt(fourth.http)) - shared;
  assert.ok(alone > 0 && alone <= kMovedAtMost * second.blocks, `${alone} of ${second.blocks}`);
  const during = await round([...early, ...late], remove);
  assert.equal((await list()).members.length, 3);
  assert.ok(during.extra <= alone * kBlock, `${during.extra}, of ${alone} blocks`);
  await round([...early, ...late]);
  await nodesHold(first.blocks + second.blocks);
  assert.equal((await round([...early, ...late])).extra, 0);
});

test('a node that is killed costs what it alone had, until it is removed', { timeout: seconds(90) }, async () => {
  await add();
  const shared = await blocksAt(fourth.http);
  const third = await round(last);
  await nodesHold(first.blocks + second.blocks + third.blocks + shared);
  const alone = (await blocksAt(fourth.http)) - shared;
  const during = await round([...late, ...last], async () => fourth.process.kill('SIGKILL'));
  assert.ok(during.extra <= alone * kBlock, `${during.extra}, of ${alone} blocks`);
  const without = await round(last);
  assert.ok(without.extra > 0 && without.extra <= alone * kBlock, `${without.extra}, of ${alone} blocks`);
  await remove();
  await round(last);
  await nodesHold(first.blocks + second.blocks + third.blocks);
  assert.equal((await round([...early, ...late, ...last])).extra, 0);
  assert.deepEqual(service.errorLines, []);
});
