// vLLM behind a pass-through pool, with the model that our engine has, too: what it says comes through,
// tenants do not meet in its prefix cache, and a shadow lays both engines side by side on the card.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { kCapital } from '../e2e/answers.mjs';
import { answersInOnePiece, streamsTheSame } from '../e2e/passed_through.mjs';
import { kPlan, Pair, shadow, startEngine } from '../e2e/pair.mjs';
import { clientOf, runProgram, startService, temporaryFolder } from '../e2e/service.mjs';
import { waitUntil } from '../e2e/waiting.mjs';
import { startVllmServer } from './vllm_server.mjs';

let vllm;
let service;
let clients; // By tenant.

const pool = (name) => `[[pool]]
name = "${name}"
engine = "vllm"
url = "${vllm.url}/v1"
model = "krill"
upstream_model = "org/krill"
max_concurrency = 16
`;

async function addKey(folder, tenant) {
  const added = await runProgram(['ctl', 'keys', 'add', '--tenant', tenant, '--state', folder, '--json']);
  assert.equal(added.code, 0, added.stderr);
  return JSON.parse(added.stdout).key;
}

before(async () => {
  vllm = await startVllmServer({ alias: 'org/krill' });
  const folder = temporaryFolder();
  const file = path.join(folder, 'sluice.toml');
  writeFileSync(
    file,
    `[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[tenant]]
name = "acme"
[[tenant]]
name = "zenith"
${pool('outside')}[plan]
stable = "outside"
`,
  );
  const keys = { acme: await addKey(folder, 'acme'), zenith: await addKey(folder, 'zenith') };
  service = await startService(['--config', file], folder);
  clients = Object.fromEntries(
    Object.entries(keys).map(([tenant, key]) => [tenant, clientOf(service.url, key)]),
  );
});
after(async () => {
  await service?.stop();
  await vllm?.stop();
});

const ask = (extra, tenant = 'acme') =>
  clients[tenant].chat.completions.create({
    model: 'krill',
    messages: kCapital,
    temperature: 0,
    ...extra,
  });

test('an answer in one piece is vLLM’s, and is counted by its usage', () =>
  answersInOnePiece(service, 'outside', ask));

test('a stream is the same, and its usage is there only if it was asked for', () =>
  streamsTheSame(ask));

test('what it refuses is refused in its words', async () => {
  await assert.rejects(ask({ temperature: -1 }), (error) => {
    assert.equal(error.status, 400);
    assert.match(error.message, /temperature/);
    return true;
  });
  await assert.rejects(ask({ model: 'org/krill' }), { status: 404 });
});

test('a prompt’s prefix is found again by its tenant, and by nobody else', async () => {
  const long = Array.from({ length: 60 }, (_, i) => `The rabbit saw boat ${i}.`).join(' ');
  const cached = async (tenant, extra = {}) => {
    const { usage } = await ask(
      { messages: [{ role: 'user', content: long }], max_tokens: 1, ...extra },
      tenant,
    );
    assert.ok(usage.prompt_tokens > 64, 'the prompt has several of its blocks');
    return usage.prompt_tokens_details?.cached_tokens ?? 0;
  };
  assert.equal(await cached('acme'), 0);
  assert.ok((await cached('acme')) >= 64);
  assert.equal(await cached('zenith'), 0, 'what acme asked left no trace');
  assert.equal(await cached('zenith', { cache_salt: 'acme' }), 0, 'nor for who asks for it');
  assert.ok((await cached('zenith')) >= 64);
});

test('a shadow lays it beside our engine, and the card shows both', async () => {
  const engine = await startEngine();
  const config = `[[pool]]\nname = "stable"\n${pool('candidate')}${kPlan}${shadow()}`;
  const pair = new Pair(config, { stable: engine.ready.url });
  try {
    await pair.start();
    const kRequests = 24;
    const compared = async () => (await pair.shadows('same')) + (await pair.shadows('differs'));
    for (let count = 1; count <= kRequests; count += 1) {
      assert.equal(await pair.ask({ temperature: 0, max_tokens: 8, seed: 1 }), 'stable');
      // vLLM is the slower one, and a copy that finds no room is none.
      await waitUntil('the copy is compared', async () => (await compared()) === count);
    }
    // Krill's weights are rounded in our file and not in its own, so a close call may go either way.
    assert.ok((await pair.shadows('same')) > kRequests / 2);
    const { rows } = await pair.card();
    for (const name of ['stable', 'candidate']) {
      const row = rows.find((each) => each.pool === name);
      assert.equal(row.requests, kRequests, name);
      assert.equal(row.success_rate, 1, name);
      assert.ok(row.ttft_ms.p50 > 0, name);
    }
  } finally {
    await pair.remove();
    engine.program.kill('SIGKILL');
  }
});
