// Workers that stand in a real etcd: they come and go with their keys, and while it is away nothing is
// lost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { kCapital, kCapitalAnswer } from './answers.mjs';
import { Cluster } from './cluster.mjs';
import { startEtcd } from './etcd_server.mjs';
import { waitUntil } from './waiting.mjs';

let etcd;
let cluster;
let engine;

before(async () => {
  etcd = await startEtcd();
  cluster = await new Cluster(`[discovery]\netcd = ["${etcd.url}"]\nprefix = "/test/"\n`).start();
});
after(async () => {
  await cluster?.stop();
  await etcd?.stop();
});

async function answers() {
  const answer = await cluster.openai().chat.completions.create({
    model: 'krill',
    messages: kCapital,
    temperature: 0,
  });
  assert.equal(answer.choices[0].message.content, kCapitalAnswer);
}

test('an engine that stands in etcd is a worker', async () => {
  engine = await cluster.startEngine([], { register: 'etcd' });
  await cluster.becomesReady(engine.url);
  await answers();
  const { status, body } = await cluster.ask('DELETE', `/workers/${(await cluster.worker(engine.url)).name}`);
  assert.equal(status, 400);
  assert.match(body.error.message, /etcd/);
});

test('keys that somebody writes come and go, and what is no worker is left out', async () => {
  const url = 'http://127.0.0.1:9';
  await etcd.put('/test/nonsense', 'no JSON');
  await etcd.put('/test/other', JSON.stringify({ url, pool: 'of another gateway' }));
  await etcd.put('/test/mine', JSON.stringify({ url, pool: 'stable', phase: 'prefill' }));
  const worker = await cluster.reaches('is known', url, (each) => each !== undefined);
  assert.equal(worker.phase, 'prefill');
  await etcd.erase('/test/mine');
  await cluster.isForgotten(url);
  assert.equal((await cluster.workers()).length, 1);
});

test('while etcd is away its workers stay, and serve', async () => {
  await etcd.kill();
  await waitUntil('the gateway notices', () => cluster.program.stderr.includes('does not answer'));
  await answers();
  assert.equal((await cluster.worker(engine.url)).state, 'ready');
  await etcd.start();
  await waitUntil('the gateway notices', () => /etcd at \S+ answers/.test(cluster.program.stderr));
  await answers();
});

test('a worker that dies while etcd is away is off the list soon after', async () => {
  const second = await cluster.startEngine([], { register: 'etcd' });
  await cluster.becomesReady(second.url);
  await etcd.kill();
  second.program.kill('SIGKILL');
  await cluster.reaches('is lost', second.url, (each) => each?.state === 'lost');
  await answers();
  await etcd.start();
  await cluster.isForgotten(second.url);
  assert.equal((await cluster.worker(engine.url)).state, 'ready');
});

test('an engine that stops takes its key away', async () => {
  engine.program.kill('SIGTERM');
  assert.equal((await engine.program.ended).code, 0, engine.program.stderr);
  await cluster.isForgotten(engine.url);
});
