// Workers that come and go while the gateway runs: they register themselves, are drained, taken away and
// come back, and no stream notices.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { collect, storyRequest } from './answers.mjs';
import { Cluster } from './cluster.mjs';
import { startEngine } from './pair.mjs';
import { waitUntil } from './waiting.mjs';

const kTokens = 600;

let cluster;
let expected;
let first;

const startStream = (extra) =>
  cluster.openai().chat.completions.create(storyRequest(77, kTokens, { stream: true, ...extra }));

before(async () => {
  cluster = await new Cluster().start();
});
after(() => cluster?.stop());

test('an engine that registers itself is a worker, for as long as it renews its lease', async () => {
  assert.deepEqual(await cluster.workers(), []);
  first = await cluster.startEngine();
  const worker = await cluster.becomesReady(first.url);
  assert.equal(worker.name, 'stable-0');
  assert.equal(worker.pid, first.program.pid);
  expected = await collect(await startStream());
  assert.equal(expected.finish, 'length');

  const second = await cluster.startEngine(['--phase', 'decode']);
  assert.equal((await cluster.becomesReady(second.url)).name, 'stable-decode-0');
  second.program.kill('SIGKILL');
  await cluster.isForgotten(second.url);
  assert.equal((await cluster.worker(first.url)).state, 'ready', 'whose lease is renewed');
});

test('an engine that stops takes itself off the list', async () => {
  const engine = await cluster.startEngine([], { lease: '600s' });
  await cluster.becomesReady(engine.url);
  engine.program.kill('SIGTERM');
  assert.equal((await engine.program.ended).code, 0, engine.program.stderr);
  assert.equal(await cluster.worker(engine.url), undefined);
});

test('a restart within the lease is the same worker, and another process', async () => {
  const engine = await cluster.startEngine([], { lease: '600s' });
  const { name } = await cluster.becomesReady(engine.url);
  engine.program.kill('SIGKILL');
  await engine.program.ended;
  const again = await cluster.startEngine(['--port', engine.port], { lease: '600s' });
  assert.equal(again.url, engine.url);
  const worker = await cluster.reaches('is the new process', engine.url, (each) =>
    each?.state === 'ready' && each.pid === again.program.pid);
  assert.equal(worker.name, name);
  again.program.kill('SIGTERM');
  await again.program.ended;
});

test('a worker that is drained gives its streams away, bit for bit', async () => {
  const second = await cluster.startEngine();
  const { name } = await cluster.becomesReady(second.url);
  const held = async () => (await cluster.worker(second.url)).leases;
  // All go there while the other one takes nothing.
  await cluster.drain('stable-0');
  const streams = await Promise.all([startStream(), startStream(), startStream()]);
  assert.equal(await held(), 3);
  await cluster.drain('stable-0', '--undo');
  const answers = streams.map((stream) => collect(stream));
  assert.match(await cluster.drain(name), /nothing runs there/);
  assert.equal((await cluster.worker(second.url)).state, 'draining');
  for (const answer of await Promise.all(answers)) {
    assert.equal(answer.text, expected.text);
    assert.equal(answer.finish, 'length');
  }
  const resumed = (await cluster.metrics()).value('sluice_resumes_total', { reason: 'drained' });
  assert.ok(resumed > 0, 'they were moved, and not waited for');
  // What comes now goes elsewhere; then it takes requests again.
  assert.equal((await collect(await startStream())).text, expected.text);
  assert.equal(await held(), 0);
  assert.match(await cluster.drain(name, '--undo'), /takes requests again/);
  assert.equal((await cluster.worker(second.url)).state, 'ready');
  second.program.kill('SIGTERM');
  await second.program.ended;
});

test('the last worker keeps what it has until it is done', async () => {
  const stream = await startStream();
  const drained = cluster.drain('stable-0');
  const answer = await collect(stream);
  assert.equal(answer.text, expected.text);
  await drained;
  await cluster.drain('stable-0', '--undo');
});

test('workers are added, shown and taken away by hand', async () => {
  const engine = await cluster.startEngine([], { lease: '1s' });
  await cluster.becomesReady(engine.url);
  // Without a lease it stays until it is deleted.
  const worker = { url: engine.url, pool: 'stable' };
  const added = await cluster.ask('POST', '/workers', worker);
  assert.equal(added.status, 200);
  const where = `/workers/${added.body.name}`;
  assert.equal((await cluster.ask('GET', where)).body.state, 'ready');
  const removed = await cluster.ask('DELETE', where);
  assert.deepEqual(removed.body, { name: added.body.name, state: 'removed' });
  engine.program.kill('SIGKILL');
  await cluster.isForgotten(engine.url);
  assert.equal((await cluster.ask('GET', where)).status, 404);
});

test('what makes no worker is refused with its field', async () => {
  const good = { url: 'http://127.0.0.1:9', pool: 'stable' };
  const refused = async (change, status, param) => {
    const answer = await cluster.ask('POST', '/workers', { ...good, ...change });
    assert.equal(answer.status, status, JSON.stringify(change));
    assert.equal(answer.body.error.param, param);
  };
  await refused({ url: 'http://127.0.0.1:9/v1' }, 400, 'url');
  await refused({ url: 7 }, 400, 'url');
  await refused({ pool: 'other' }, 404, 'pool');
  await refused({ phase: 'fill' }, 400, 'phase');
  await refused({ lease_s: 0 }, 400, 'lease_s');
  await refused({ lease_s: 'long' }, 400, 'lease_s');
  for (const method of ['GET', 'DELETE'])
    assert.equal((await cluster.ask(method, '/workers/nobody')).status, 404);
  assert.equal((await cluster.ask('PATCH', '/workers/nobody', { draining: true })).status, 404);
  assert.equal((await cluster.ask('PATCH', '/workers/stable-0', { draining: 1 })).status, 400);
  const { code, text } = await cluster.ctl('drain', 'nobody');
  assert.equal(code, 1);
  assert.match(text, /there is no worker "nobody"/);
});

test('a worker that comes back with another model gets no request', async () => {
  const engine = await cluster.startEngine([], { lease: '600s' });
  await cluster.becomesReady(engine.url);
  engine.program.kill('SIGKILL');
  await engine.program.ended;
  const other = await cluster.startEngine(
    ['--port', engine.port, '--model', new URL('../../models/krill/krill-f16.gguf', import.meta.url).pathname],
    { lease: '600s' },
  );
  const worker = await cluster.reaches('says why', other.url, (each) => /another model/.test(each?.reason));
  assert.notEqual(worker.versions.fingerprint, (await cluster.worker(first.url)).versions.fingerprint);
  const answers = await Promise.all(
    Array.from({ length: 6 }, async () => collect(await startStream({ max_tokens: 40 }))),
  );
  for (const { text } of answers) assert.ok(expected.text.startsWith(text));
  await waitUntil('its engine had nothing to do', async () => {
    const text = await (await fetch(`${other.url}/metrics`)).text();
    return /^sluice_engine_tokens_total\{phase="decode"\} 0$/m.test(text);
  });
  other.program.kill('SIGKILL');
});

test('a file names engines that run already, and what they are for', async () => {
  const engine = await startEngine();
  const other = new Cluster(`urls = ["decode=${engine.ready.url}"]\n`);
  try {
    await other.start();
    const { name, phase } = await other.becomesReady(engine.ready.url);
    assert.deepEqual({ name, phase }, { name: 'stable-decode-0', phase: 'decode' });
    const answer = await collect(
      await other.openai().chat.completions.create(storyRequest(77, kTokens, { stream: true })),
    );
    assert.equal(answer.text, expected.text, 'it does what its kind is not there for, too');
  } finally {
    await other.stop();
    engine.program.kill('SIGKILL');
  }
});
