// The traffic plan over two real engines: ctl shows, applies, rolls back and rearms; what holds
// survives a restart, a reload and the old file; equal engines are left alone.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { collect, storyRequest } from './answers.mjs';
import { guard, kNativePools, kPlan, shadow, split, startEngine, withPair } from './pair.mjs';
import { clientOf, runProgram, startService, temporaryFolder } from './service.mjs';
import { waitUntil } from './waiting.mjs';

let stable;

before(async () => {
  stable = await startEngine();
});
after(() => stable?.program.kill('SIGKILL'));

test('sluice ctl shows, applies, rolls back and rearms', async () => {
  await withPair({ config: kPlan, stable }, async (pair) => {
    const ctl = (...args) => pair.sluice('ctl', ...args);
    const next = path.join(pair.folder, 'next.toml');
    writeFileSync(next, kPlan + split(1));
    assert.match((await ctl('plan', 'diff', next)).text, /\+ split candidate weight 1 lease 1h/);
    assert.match((await ctl('plan', 'apply', next, '--why', 'canary')).text, /plan 2 holds/);
    assert.equal(await pair.ask(), 'candidate');
    assert.match((await ctl('plan', 'show')).text, /pool = "candidate"/);
    assert.match((await ctl('status')).text, /room for \d+ requests/);
    assert.ok((await pair.status()).rollback_capacity >= 64);

    assert.match((await ctl('rollback', '--why', 'looks odd')).text, /rolled back/);
    assert.equal(await pair.ask(), 'stable');
    assert.match((await ctl('status')).text, /ROLLED BACK since .*: by hand: looks odd/);
    assert.match((await ctl('plan', 'apply', next)).text, /only `sluice ctl plan rearm` undoes/);
    assert.equal(await pair.ask(), 'stable');
    assert.equal((await ctl('plan', 'rearm')).code, 0);
    assert.equal(await pair.ask(), 'candidate');

    writeFileSync(next, '[plan]\nstable = "stabel"\n');
    const wrong = await ctl('plan', 'apply', next);
    assert.equal(wrong.code, 1);
    assert.match(wrong.text, /next\.toml:2: plan\.stable names no pool/);
    assert.deepEqual(
      pair.audit().map(({ what }) => what),
      ['start', 'apply', 'rollback', 'apply', 'rearm'],
    );
    assert.match(pair.audit()[1].why, /canary/);
  });
});

test('a rollback outlives a kill, a changed file and a reload', async () => {
  await withPair({ config: kPlan + split(1), stable }, async (pair) => {
    assert.equal(await pair.ask(), 'candidate');
    assert.equal((await pair.sluice('ctl', 'rollback')).code, 0);
    await pair.kill();
    await pair.start();
    assert.equal(await pair.ask(), 'stable');

    await pair.kill();
    pair.configure(kNativePools + kPlan + split(0.5));
    await pair.start();
    assert.equal((await pair.status()).plan.latched, true);
    pair.configure(kNativePools + kPlan + split(0.9));
    pair.program.kill('SIGHUP');
    await waitUntil('the file is read again', async () => (await pair.status()).plan.version === 3);
    assert.equal((await pair.status()).plan.latched, true);
    assert.deepEqual(await pair.askMany(20, 4), { stable: 20 });

    const pinned = await pair.chat({}, { 'x-sluice-pool': 'candidate' });
    assert.equal(pinned.status, 400);
    const { error } = await pinned.json();
    assert.equal(error.code, 'unsupported');
    assert.equal(error.param, 'x-sluice-pool');
    assert.equal(await pair.dispatched('candidate'), 0);
  });
});

test('evacuation moves a running answer to stable, and no token changes', async () => {
  const faults = 'slow_step=50ms';
  await withPair({ config: kPlan + split(1), stable, faults }, async (pair) => {
    const story = () =>
      clientOf(pair.url).chat.completions.create(storyRequest(7, 100, { stream: true }));
    let begun = false;
    const moved = collect(await story(), ({ text }) => (begun ||= text.length > 0));
    await waitUntil('the answer has begun', () => begun);
    assert.equal((await pair.sluice('ctl', 'rollback', '--evacuate')).code, 0);
    const { text, finish } = await moved;
    assert.equal(finish, 'length');
    assert.equal(text, (await collect(await story())).text);
    const rows = await waitUntil('both rows are written', async () => {
      const all = await pair.records();
      return all.length === 2 ? all : null;
    });
    assert.deepEqual(
      rows.map(({ legs }) => legs.map(({ pool }) => pool)),
      [['candidate', 'stable'], ['stable']],
    );
  });
});

test('a conversation stays with its pool', async () => {
  await withPair({ config: kPlan + split(0.5), stable }, async (pair) => {
    const pools = {};
    for (let turn = 0; turn < 3; turn += 1)
      for (let i = 0; i < 16; i += 1) {
        const pool = await pair.ask({ max_tokens: 2 }, { 'x-sluice-conversation': `c${i}` });
        assert.equal(pools[i] ?? pool, pool);
        pools[i] = pool;
      }
    assert.equal(new Set(Object.values(pools)).size, 2);
  });
});

test('a weight that nobody renews goes back to stable', async () => {
  await withPair({ config: kPlan + split(1, '1500ms'), stable }, async (pair) => {
    await waitUntil('stable answers again', async () => (await pair.ask({ max_tokens: 1 })) === 'stable');
    await waitUntil('the audit log says so', () =>
      pair.audit().some(({ what }) => what === 'lease_ended'));
    assert.equal((await pair.status()).plan.latched, false);
  });
});

test('copies of equal engines are the same to the last bit, and the card says so', async () => {
  const config = kPlan + shadow() + guard('differs_share', 'max = 0.01');
  await withPair({ config, stable }, async (pair) => {
    assert.deepEqual(await pair.askMany(100, 4), { stable: 100 });
    await waitUntil('most copies are compared', async () => (await pair.shadows('same')) > 50);
    assert.equal(await pair.shadows('differs'), 0);
    const row = await pair.cardRow('text', ({ differs_share }) => differs_share === 0);
    assert.ok(row.requests > 50);
    const copies = await pair.records('&role=shadow');
    const compared = copies.filter(({ comparison }) => comparison);
    assert.ok(compared.length > 50);
    for (const { pool, comparison } of compared) {
      assert.equal(pool, 'candidate');
      assert.equal(comparison.pool, 'stable');
      assert.equal(comparison.logprob_delta ?? 0, 0);
      assert.equal(typeof comparison.ttft_delta_ms, 'number');
    }
    assert.ok(compared.some(({ comparison }) => typeof comparison.tbt_delta_ms === 'number'));
  });
});

test('sluice up starts the engines of both pools, and keeps the plan in its state', async () => {
  const folder = temporaryFolder();
  const file = path.join(folder, 'sluice.toml');
  writeFileSync(file, kNativePools + kPlan + split(1));
  const service = await startService(['--config', file], folder);
  try {
    assert.deepEqual(service.workers.map(({ name }) => name), ['stable-0', 'candidate-0']);
    const status = async () => (await fetch(`${service.admin}/admin/status`)).json();
    await waitUntil('both pools are ready', async () =>
      (await status()).pools.every((pool) => pool.ready));
    const answer = await service.post('/v1/chat/completions', {
      model: 'krill',
      max_tokens: 2,
      messages: [{ role: 'user', content: 'Hello' }],
    });
    await answer.json();
    assert.equal(answer.headers.get('x-sluice-pool'), 'candidate');
    assert.equal((await runProgram(['ctl', 'rollback', '--url', service.admin])).code, 0);
    process.kill(service.childPid('gateway'), 'SIGKILL');
    await waitUntil('the new gateway holds it', async () => (await status()).plan.latched);
  } finally {
    await service.stop();
  }
});
