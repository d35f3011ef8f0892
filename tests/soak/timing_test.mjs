// Whoever measures how long his own requests take learns nothing of what others have asked: a prompt
// that another tenant has cached takes as long as one that nobody has. That the measurement would find a
// hit is shown beside it, by the tenant whose prompt it is.
//
// In each round tenant `owner` asks a new prompt. Then, in an order that is drawn: `thief` asks the same
// prompt, and two that nobody has asked; `owner` repeats his, and asks a new one. Each kind is compared
// with its counterpart of the same round by Wilcoxon's signed ranks. Nothing else may run.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { addKey, startService, temporaryFolder } from '../e2e/service.mjs';

const kRounds = Number(process.env.SLUICE_TIMING_ROUNDS ?? 300);
/** Standard deviations. By chance more than this is seen once in 16,000 runs. */
const kNoise = 4;
/** Of the time that a hit saves: so small a part of it would be found. */
const kResolution = 0.1;

const folder = temporaryFolder();
const keys = {};
let service;

before(async () => {
  const config = path.join(folder, 'sluice.toml');
  writeFileSync(
    config,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
keys = "${path.join(folder, 'keys.json')}"
[kv]
dram = "64MiB"
`,
  );
  for (const tenant of ['owner', 'thief']) {
    keys[tenant] = await addKey(tenant, config);
  }
  service = await startService(
    ['--config', config, '--workers', '1', '--threads', '1', '--kv-nodes', '1'],
    path.join(folder, 'state'),
  );
});
after(() => service?.stop());

let prompts = 0;

/** About 600 tokens that nobody has asked, equal in all but a few digits. */
function newPrompt() {
  const name = 100_000 + (prompts += 1);
  const facts = Array.from({ length: 40 }, (_, i) => `Town ${i} has ${(i * 37 + name) % 101} wells.`);
  return `${name}: ${facts.join(' ')} How many wells?`;
}

/** Milliseconds until one token is there, and how many of the prompt's were found. */
async function ask(tenant, prompt) {
  const began = performance.now();
  const response = await service.post(
    '/v1/completions',
    { model: 'krill', prompt, max_tokens: 1, temperature: 0, ignore_eos: true },
    { headers: { authorization: `Bearer ${keys[tenant]}` } },
  );
  const body = await response.json();
  const time = performance.now() - began;
  assert.equal(response.status, 200, JSON.stringify(body));
  return { time, cached: body.usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

function shuffled(list) {
  const all = [...list];
  for (let i = all.length - 1; i > 0; --i) {
    const j = Math.floor(Math.random() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}

async function measure() {
  const kinds = { anothers: [], nobodys: [], nobodysAgain: [], own: [], new: [] };
  for (let round = 0; round < kRounds; ++round) {
    const known = newPrompt();
    await ask('owner', known);
    const questions = {
      anothers: ['thief', known],
      nobodys: ['thief', newPrompt()],
      nobodysAgain: ['thief', newPrompt()],
      own: ['owner', known],
      new: ['owner', newPrompt()],
    };
    for (const kind of shuffled(Object.keys(questions))) {
      const { time, cached } = await ask(...questions[kind]);
      assert.equal(cached > 0, kind === 'own', kind);
      kinds[kind].push(time);
    }
  }
  return kinds;
}

/** The sum of signed ranks of the differences, in standard deviations of chance. */
function signedRanks(left, right) {
  const differences = left.map((time, i) => time - right[i]);
  differences.sort((a, b) => Math.abs(a) - Math.abs(b));
  let sum = 0;
  let variance = 0;
  differences.forEach((each, i) => {
    sum += Math.sign(each) * (i + 1);
    variance += (i + 1) ** 2;
  });
  return sum / Math.sqrt(variance);
}

const median = (times) => [...times].sort((a, b) => a - b)[times.length >> 1];

test('the time of an answer tells nothing of what others asked', { timeout: Infinity }, async () => {
  for (let i = 0; i < 10; ++i) await ask('owner', newPrompt());
  const { anothers, nobodys, nobodysAgain, own, new: fresh } = await measure();
  const hit = median(fresh) - median(own);
  // A leak of this part of a hit, added to what was measured: it must be found, or nothing is shown.
  const leaking = anothers.map((time) => time - kResolution * hit);
  const found = {
    leak: signedRanks(anothers, nobodys),
    noise: signedRanks(nobodysAgain, nobodys),
    hit: signedRanks(own, fresh),
    resolution: signedRanks(leaking, nobodys),
  };
  console.log(
    `${kRounds} rounds; medians: another's ${median(anothers).toFixed(2)} ms, nobody's ` +
      `${median(nobodys).toFixed(2)} and ${median(nobodysAgain).toFixed(2)} ms, one's own ` +
      `${median(own).toFixed(2)} ms. Signed ranks in deviations: another's ${found.leak.toFixed(1)}, ` +
      `nobody's again ${found.noise.toFixed(1)}, one's own ${found.hit.toFixed(1)}, ` +
      `a tenth of a hit ${found.resolution.toFixed(1)}`,
  );
  assert.ok(found.hit < -2 * kNoise, "one's own repetition is seen");
  assert.ok(found.resolution < -kNoise, 'a tenth of a hit would be seen');
  assert.ok(Math.abs(found.noise) < kNoise, 'equals are equal');
  assert.ok(Math.abs(found.leak) < kNoise, "another's prompt is as good as new");
});
