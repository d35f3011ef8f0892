// Two real engines, one of them with a fault planted in the shipped binary: the shadow sees it, the guard
// rolls back by itself, and the reason is there to read. Without a fault nothing happens.

import assert from 'node:assert/strict';
import { writeFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { readMetrics } from './metrics.mjs';
import { removeFolder, runProgram, startProgram, temporaryFolder } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

const kPools = '[[pool]]\nname = "stable"\n[[pool]]\nname = "candidate"\n';
const kShadow = `${kPools}[plan]\nstable = "stable"
[[plan.shadow]]\npool = "candidate"\nshare = 1\nmax_concurrent = 64\n`;
const guard = (metric, limit) =>
  `[[plan.guard]]\npool = "candidate"\nmetric = "${metric}"\n${limit}\nmin_samples = 20\nwindow = "5m"\n`;
const kGuards =
  guard('differs_share', 'max = 0.05') +
  guard('error_rate', 'max = 0.05') +
  guard('tbt_p50', 'max_ratio = 4');

let stable;
let folder;
const engine = (faults) =>
  startProgram(['engine', '--port', '0', '--threads', '1', '--json'], { SLUICE_FAULTS: faults });

before(async () => {
  folder = temporaryFolder();
  stable = await engine('');
});
after(() => {
  stable?.program.kill('SIGKILL');
  removeFolder(folder);
});

/** A gateway in front of both, with its own state. */
async function withGateway(name, config, faults, use) {
  const candidate = await engine(faults);
  const state = temporaryFolder();
  const file = path.join(folder, `${name}.toml`);
  writeFileSync(file, `[gateway]\nlisten = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n${config}`);
  const args = ['gateway', '--config', file, '--state', state, '--json'];
  args.push('--worker', `stable=${stable.ready.url}`, '--worker', `candidate=${candidate.ready.url}`);
  const gateway = await startProgram(args, {});
  const service = { ...gateway.ready, file, state };
  try {
    await waitUntil('the candidate is ready', async () =>
      (await status(service)).pools.every((pool) => pool.ready));
    await use(service, candidate);
  } finally {
    gateway.program.kill('SIGKILL');
    candidate.program.kill('SIGKILL');
    await gateway.program.ended;
    removeFolder(state);
  }
}

async function status(service) {
  return (await fetch(`${service.admin}/admin/status`)).json();
}

let asked = 0;
async function ask(service, extra = {}) {
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'krill',
      max_tokens: 12,
      messages: [{ role: 'user', content: `Tell me story ${(asked += 1)}.` }],
      ...extra,
    }),
  });
  assert.equal(response.status, 200);
  await response.json();
  return response.headers.get('x-sluice-pool');
}

/** Asks until the plan was rolled back; the reason. */
async function rolledBack(service) {
  return waitUntil(
    'the guard rolls back',
    async () => {
      await Promise.all(Array.from({ length: 4 }, () => ask(service)));
      const { plan } = await status(service);
      return plan.latched ? plan.reason : null;
    },
    seconds(60),
  );
}

const shadows = async (service, result) =>
  (await readMetrics(service.admin)).value('sluice_shadow_total', { result }) ?? 0;

test('two equal engines are left alone, and every copy is the same to the last bit', async () => {
  await withGateway('equal', kShadow + kGuards, '', async (service) => {
    for (let i = 0; i < 25; i += 1) {
      const pools = await Promise.all(Array.from({ length: 4 }, () => ask(service)));
      assert.deepEqual(new Set(pools), new Set(['stable']));
    }
    await waitUntil('most copies are compared', async () => (await shadows(service, 'same')) > 20);
    assert.equal(await shadows(service, 'differs'), 0);
    assert.equal((await status(service)).plan.latched, false);
  });
});

for (const [fault, metric] of [
  ['other_sampling', 'differs_share'],
  ['wrong_model', 'differs_share'],
  ['slow_step=100ms', 'tbt_p50'],
]) {
  test(`${fault} is found and rolled back by ${metric}`, async () => {
    await withGateway(metric, kShadow + kGuards, fault, async (service) => {
      assert.match(await rolledBack(service), new RegExp(metric));
      const audit = readFileSync(path.join(service.state, 'audit.jsonl'), 'utf8');
      assert.match(audit, /"who":"guard","what":"rollback"/);
    });
  });
}

test('a candidate that crashes is rolled back, and no client sees it', async () => {
  const split = `${kPools}[plan]\nstable = "stable"
[[plan.split]]\npool = "candidate"\nweight = 1\nlease = "10m"\n`;
  await withGateway('crash', split, 'crash_after=30', async (service) => {
    assert.match(await rolledBack(service), /candidate has had no worker for 10s/);
  });
});

test('sluice ctl shows, applies, rolls back and rearms', async () => {
  await withGateway('ctl', kPools + '[plan]\nstable = "stable"\n', '', async (service) => {
    const ctl = async (...args) => {
      const done = await runProgram(['ctl', ...args, '--url', service.admin]);
      return { code: done.code, text: done.stdout + done.stderr };
    };
    const next = path.join(folder, 'next.toml');
    writeFileSync(
      next,
      '[plan]\nstable = "stable"\n[[plan.split]]\npool = "candidate"\nweight = 1\nlease = "1h"\n',
    );
    assert.match((await ctl('plan', 'diff', next)).text, /\+ split candidate weight 1 lease 1h/);
    assert.match((await ctl('plan', 'apply', next, '--why', 'canary')).text, /plan 2 holds/);
    assert.equal(await ask(service), 'candidate');
    assert.match((await ctl('plan', 'show')).text, /pool = "candidate"/);
    assert.match((await ctl('rollback', '--why', 'looks odd')).text, /rolled back/);
    assert.equal(await ask(service), 'stable');
    assert.match((await ctl('status')).text, /ROLLED BACK since .*: by hand: looks odd/);
    assert.match((await ctl('plan', 'apply', next)).text, /only `sluice ctl plan rearm` undoes/);
    assert.equal(await ask(service), 'stable');
    assert.equal((await ctl('plan', 'rearm')).code, 0);
    assert.equal(await ask(service), 'candidate');
    writeFileSync(next, '[plan]\nstable = "stabel"\n');
    const wrong = await ctl('plan', 'apply', next);
    assert.equal(wrong.code, 1);
    assert.match(wrong.text, /next\.toml:2: plan\.stable names no pool/);
    assert.match(readFileSync(path.join(service.state, 'audit.jsonl'), 'utf8'), /canary/);
  });
});
