// Every engine is replaced under load, one after the other, and no client notices: no error, and not a
// byte of an answer is another one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { collect, storyRequest } from './answers.mjs';
import { Cluster } from './cluster.mjs';
import { seconds } from './waiting.mjs';

const kEngines = 3;
const kStreams = 6;
const kTokens = 300;

let cluster;
let engines;

before(async () => {
  cluster = await new Cluster().start();
  engines = await Promise.all(Array.from({ length: kEngines }, () => cluster.startEngine()));
  for (const { url } of engines) await cluster.becomesReady(url);
});
after(() => cluster?.stop());

const ask = async (seed) =>
  collect(await cluster.openai().chat.completions.create(storyRequest(seed, kTokens, { stream: true })));

/** Asks the same few questions over and over until it is told to stop. */
class Load {
  answers = 0;
  #stop = false;

  constructor(expected) {
    this.done = Promise.all(
      Array.from({ length: kStreams }, async (_, i) => {
        while (!this.#stop) {
          const seed = i % expected.length;
          const answer = await ask(seed);
          assert.equal(answer.finish, 'length');
          assert.equal(answer.text, expected[seed]);
          this.answers += 1;
        }
      }),
    );
    this.done.catch(() => {}); // It is looked at in the end.
  }

  stop() {
    this.#stop = true;
    return this.done;
  }
}

test('a rolling restart of every worker loses nothing', { timeout: seconds(150) }, async () => {
  const expected = [];
  for (let seed = 0; seed < 3; seed += 1) expected.push((await ask(seed)).text);
  const load = new Load(expected);
  for (const old of engines) {
    const { name } = await cluster.worker(old.url);
    await cluster.drain(name);
    old.program.kill('SIGTERM');
    assert.equal((await old.program.ended).code, 0, old.program.stderr);
    const next = await cluster.startEngine();
    await cluster.becomesReady(next.url);
    assert.equal(await cluster.worker(old.url), undefined);
  }
  await load.stop();
  assert.ok(load.answers > 0);
  const metrics = await cluster.metrics();
  assert.equal(metrics.value('sluice_leases', {}), 0);
  assert.equal(metrics.value('sluice_retries_total', {}), 0, 'nobody was sent to one that goes');
});
