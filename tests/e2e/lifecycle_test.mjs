// How the service starts, fails to start, and ends.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { collect, kCapital, kCapitalAnswer, storyRequest } from './answers.mjs';
import { descendantsOf, isAlive } from './processes.mjs';
import { clientOf, removeFolder, runProgram, startService, temporaryFolder } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

async function withFolder(use) {
  const folder = temporaryFolder();
  try {
    return await use(folder);
  } finally {
    removeFolder(folder);
  }
}

/** The program could not start and said why in one line. */
function assertCannotStart(end, pattern) {
  assert.equal(end.code, 3, end.stderr);
  const lines = end.stderr.trim().split('\n');
  assert.equal(lines.length, 1, end.stderr);
  assert.match(lines[0], pattern);
}

async function assertAllGone(pids) {
  assert.ok(pids.length >= 2, 'a gateway and an engine');
  await waitUntil('no process is left', () => !pids.some(isAlive));
}

test('ready tells addresses and pids that hold', async () => {
  const service = await startService();
  try {
    assert.equal(service.pid, service.program.pid);
    assert.notEqual(service.port, 0);
    for (const url of [service.url, service.admin]) {
      assert.equal((await fetch(`${url}/health`)).status, 200);
    }
    assert.ok(isAlive(service.gateway.pid));
    assert.equal(service.workers.length, 1);
    for (const worker of service.workers) {
      assert.ok(isAlive(worker.pid));
      assert.equal((await fetch(`${worker.url}/health`)).status, 200);
      assert.ok(worker.name);
    }
    for (const name of [
      'sluice_open_streams',
      'sluice_queue_depth',
      'process_resident_memory_bytes',
    ]) {
      assert.ok((await service.metrics()).has(name), name);
    }
    const info = await (await fetch(`${service.workers[0].url}/server_info`)).json();
    assert.match(JSON.stringify(info), /krill/i);
  } finally {
    await service.stop();
  }
});

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} ends the service in order`, async () => {
    const service = await startService();
    const pids = descendantsOf(service.pid);
    service.program.kill(signal);
    const end = await service.program.ended;
    assert.equal(end.code, signal === 'SIGTERM' ? 0 : 130, service.log);
    await assertAllGone(pids);
    assert.deepEqual(service.errorLines, []);
    await service.stop();
  });
}

test('a split service names the phase of each engine, and answers', async () => {
  const service = await startService(['--prefill', '1', '--decode', '1']);
  try {
    const shape = (workers) => workers.map(({ name, phase }) => ({ name, phase }));
    const expected = [
      { name: 'stable-prefill-0', phase: 'prefill' },
      { name: 'stable-decode-0', phase: 'decode' },
    ];
    assert.deepEqual(shape(service.workers), expected);
    const status = await (await fetch(`${service.admin}/admin/status`)).json();
    assert.deepEqual(shape(status.pools[0].workers), expected);
    const answer = await service.openai().chat.completions.create({
      model: 'krill',
      messages: kCapital,
      temperature: 0,
    });
    assert.equal(answer.choices[0].message.content, kCapitalAnswer);
  } finally {
    await service.stop();
  }
});

test('data-parallel ranks share the work of one process', async () => {
  const service = await startService(['--dp', '2']);
  try {
    assert.equal(service.workers.length, 1);
    const stream = () =>
      service.openai().chat.completions.create(storyRequest(7, 400, { stream: true }));
    const streams = await Promise.all([stream(), stream(), stream(), stream()]);
    await waitUntil('both ranks have two requests each', async () => {
      const { ranks } = await (await fetch(`${service.workers[0].url}/ready`)).json();
      return ranks.length === 2 && ranks.every(({ running, waiting }) => running + waiting === 2);
    });
    const texts = await Promise.all(streams.map(async (each) => (await collect(each)).text));
    assert.equal(new Set(texts).size, 1);
  } finally {
    await service.stop();
  }
});

test('a detached service answers until it is told to stop', () =>
  withFolder(async (folder) => {
    const up = await runProgram(['up', '--port', '0', '--state', folder, '--detach', '--json']);
    const stop = () => runProgram(['down', '--state', folder]);
    try {
      assert.equal(up.code, 0, up.stderr);
      const ready = JSON.parse(up.stdout);
      const pids = [ready.pid, ...descendantsOf(ready.pid)];
      const answer = await clientOf(ready.url).chat.completions.create({
        model: 'krill',
        messages: kCapital,
        temperature: 0,
      });
      assert.equal(answer.choices[0].message.content, kCapitalAnswer);
      const down = await stop();
      assert.equal(down.code, 0, down.stderr);
      assert.match(down.stdout, new RegExp(`${ready.pid}`));
      await assertAllGone(pids);
    } finally {
      await stop();
    }
  }));

test('without --json a person is told the addresses', () =>
  withFolder(async (folder) => {
    const up = await runProgram(['up', '--port', '0', '--state', folder, '--detach']);
    try {
      assert.equal(up.code, 0, up.stderr);
      assert.match(
        up.stdout,
        /^ready on http:\/\/127\.0\.0\.1:\d+ \(admin http:\/\/127\.0\.0\.1:\d+\)/m,
      );
    } finally {
      await runProgram(['down', '--state', folder]);
    }
  }));

test('SIGTERM lets running answers finish', async () => {
  const service = await startService();
  try {
    const request = storyRequest(1, 300, { stream: true });
    let asked = false;
    const answer = await collect(await service.openai().chat.completions.create(request), () => {
      if (!asked) service.program.kill('SIGTERM');
      asked = true;
    });
    assert.equal(answer.finish, 'length');
    assert.equal((await service.program.ended).code, 0);
  } finally {
    await service.stop();
  }
});

test('kill -9 of the supervisor leaves no process', async () => {
  const service = await startService();
  const pids = descendantsOf(service.pid);
  process.kill(service.pid, 'SIGKILL');
  await assertAllGone(pids);
  await service.stop();
});

test('a second service in the same state folder is refused', async () => {
  const service = await startService();
  try {
    const end = await runProgram(['up', '--port', '0', '--state', service.folder, '--json']);
    assertCannotStart(end, new RegExp(`${service.pid}|${service.folder}|already`));
    assert.equal(await service.readyStatus(), 200);
  } finally {
    await service.stop();
  }
});

test('a state folder can be used again after kill -9', async () => {
  const service = await startService();
  const pids = descendantsOf(service.pid);
  process.kill(service.pid, 'SIGKILL');
  await assertAllGone(pids);
  const next = await startService([], service.folder);
  await next.stop();
  await service.stop();
});

test('a port that is taken is named', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address();
  try {
    await withFolder(async (folder) => {
      const end = await runProgram(['up', '--port', `${port}`, '--state', folder, '--json']);
      assertCannotStart(end, new RegExp(`127\\.0\\.0\\.1:${port}`));
    });
  } finally {
    other.close();
  }
});

test('a model that is missing is named', () =>
  withFolder(async (folder) => {
    const model = path.join(folder, 'no-such-model.gguf');
    const end = await runProgram([
      'up',
      '--port',
      '0',
      '--state',
      folder,
      '--model',
      model,
      '--json',
    ]);
    assertCannotStart(end, /no-such-model\.gguf/);
  }));
