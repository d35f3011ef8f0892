// An answer that goes on with another worker after each of its tokens is the same as one that stays
// where it is, to the last bit of its log-probabilities: sampler, penalties, stop strings and
// half-written characters are rebuilt from the journal. In a pool of equal workers, and in one that is
// split into prefill and decode.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startService } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kQuiet = ['--threads', '1', '--speculation', 'off'];
const kTokens = 40;

const say = (content) => [{ role: 'user', content }];
const kRequests = {
  greedy: { messages: say('What is the capital of France?'), temperature: 0 },
  seeded: { messages: say('Tell me a story about a fox.'), seed: 11 },
  'another seed': { messages: say('Tell me a story about a fox.'), seed: 12, temperature: 1.3 },
  penalties: {
    messages: say('Tell me a story about a fox.'),
    seed: 13,
    frequency_penalty: 0.7,
    presence_penalty: 0.4,
    repetition_penalty: 1.2,
  },
  filters: { messages: say('Name a river.'), seed: 14, top_k: 7, top_p: 0.8, min_p: 0.02 },
  'logit bias': { messages: say('Name a colour.'), seed: 15, logit_bias: { 300: 4, 301: -4 } },
  'stop string': { messages: say('Tell me a story about a fox.'), seed: 11, stop: [' the ', 'zzz'] },
  'forced length': { messages: say('Hi'), seed: 16, ignore_eos: true, min_tokens: 30 },
  'log-probabilities': {
    messages: say('Tell me a story.'), seed: 17, logprobs: true, top_logprobs: 3,
  },
  'broken characters': {
    messages: say('ünïcödé 你好 🙂'), seed: 18, temperature: 2, ignore_eos: true,
  },
  'a long prompt': { messages: say('The fox went on. '.repeat(40)), seed: 19 },
};

/** What each request is answered with. */
async function answers(service) {
  const entries = Object.entries(kRequests).map(async ([name, request]) => {
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'krill', max_tokens: kTokens, ...request }),
    });
    const body = await response.json();
    assert.equal(response.status, 200, `${name}: ${JSON.stringify(body)}`);
    return [name, { choices: body.choices, tokens: body.usage.completion_tokens }];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** How often the answers together went on elsewhere, as their records say. */
async function movesOf(service) {
  const rows = await waitUntil('each request has its record', async () => {
    const all = await service.records();
    return all.length === Object.keys(kRequests).length ? all : null;
  });
  return rows.reduce((sum, { resumes }) => sum + resumes, 0);
}

/** Starts a service whose streams move after each token, and asks it. */
async function moving(args) {
  // Slow enough that each token is on its way before the next is drawn.
  process.env.SLUICE_FAULTS = 'move_every=1,slow_step=10ms';
  const service = await startService([...kQuiet, ...args]);
  delete process.env.SLUICE_FAULTS;
  try {
    const got = await answers(service);
    await service.gatewayReaches('sluice_open_streams', 0);
    for (const phase of ['full', 'prefill', 'decode']) {
      await service.gatewayReaches('sluice_leases', 0, { phase });
    }
    return { got, moves: await movesOf(service) };
  } finally {
    await service.stop();
  }
}

let expected;
let tokens;

before(async () => {
  const service = await startService(kQuiet);
  try {
    expected = await answers(service);
  } finally {
    await service.stop();
  }
  tokens = Object.values(expected).reduce((sum, { tokens: each }) => sum + each, 0);
});

for (const [what, args] of Object.entries({
  'equal workers': ['--workers', '2'],
  'prefill and decode': ['--prefill', '1', '--decode', '2'],
})) {
  test(`the same bits from ${what}`, { timeout: seconds(120) }, async () => {
    const { got, moves } = await moving(args);
    for (const name of Object.keys(kRequests)) assert.deepEqual(got[name], expected[name], name);
    // Now and then two tokens come together; of a split pool's legs prefill's token moves on anyway.
    assert.ok(moves > tokens / 3, `${moves} moves in ${tokens} tokens`);
  });
}
