// Redis' own programs and its most used npm client take a cache node for a Redis: redis-cli,
// redis-benchmark, ioredis. (redis_cli: run.sh skips this file where they are missing.)

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import Redis from 'ioredis';

import { KvNode } from './kv_node.mjs';

let folder;
let node;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kvnode-'));
  node = await KvNode.start();
});
after(async () => {
  await node?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('redis-cli reads and writes', async () => {
  assert.equal(await node.cli('ping'), 'PONG');
  assert.equal(await node.cli('set', 'a', 'one', 'EX', '100'), 'OK');
  assert.equal(await node.cli('get', 'a'), 'one');
  const left = Number(await node.cli('ttl', 'a'));
  assert.ok(left > 90 && left <= 100, `${left}`);
  assert.equal(await node.cli('set', 'a', 'two', 'NX'), '');
  assert.equal(await node.cli('set', 'none', 'two', 'XX'), '');
  assert.equal(await node.cli('set', 'a', 'two', 'GET'), 'one');
  assert.equal(await node.cli('getrange', 'a', '1', '-1'), 'wo');
  assert.equal(await node.cli('strlen', 'a'), '3');
  assert.equal(await node.cli('mset', 'x', '1', 'y', '2'), 'OK');
  assert.equal(await node.cli('mget', 'x', 'y', 'z'), '1\n2\n');
  assert.equal(await node.cli('exists', 'x', 'y', 'z', 'x'), '3');
  assert.equal(await node.cli('kv.longest', 'x', 'y', 'z', 'x'), '2');
  assert.equal(await node.cli('del', 'x', 'y', 'z'), '2');
  assert.equal(await node.cli('pttl', 'x'), '-2');
  assert.equal(await node.cli('-3', 'select', '0'), 'OK');
  assert.match(await node.cli('select', '1'), /out of range/);
  assert.match(await node.cli('info'), /redis_version:7/);
  assert.match(await node.cli('lpush', 'a', 'b'), /ERR unknown command/);
});

test('redis-cli scans all names', async () => {
  const names = Array.from({ length: 500 }, (_, i) => `scan:${i}`);
  await node.cli('mset', ...names.flatMap((name) => [name, 'v']));
  const found = (await node.cli('--scan', '--pattern', 'scan:*')).split('\n');
  assert.deepEqual(new Set(found), new Set(names));
  await node.cli('del', ...names);
});

test('redis-benchmark finds nothing wrong', async () => {
  const { stdout, stderr } = await promisify(execFile)('redis-benchmark', [
    '-p', String(node.port), '-t', 'ping,set,get,mset', '-n', '2000', '-P', '16', '-d', '1000',
    '-r', '1000', '--csv',
  ]);
  assert.match(stdout, /"GET","[0-9.]+"/);
  assert.doesNotMatch(stdout + stderr, /error/i);
});

for (const protocol of [2, 3]) {
  test(`ioredis works, by RESP${protocol} where it knows it`, async () => {
    const redis = new Redis({ port: node.port, maxRetriesPerRequest: 0, protocol });
    const value = randomBytes(3_000_000);
    assert.equal(await redis.set('large', value, 'PX', 60_000), 'OK');
    assert.ok(value.equals(await redis.getBuffer('large')));
    const pipeline = redis.pipeline();
    for (let i = 0; i < 1000; ++i) pipeline.set(`p:${i}`, i).get(`p:${i}`);
    const answers = await pipeline.exec();
    assert.equal(answers.length, 2000);
    answers.forEach(([error, answer], i) => {
      assert.equal(error, null);
      assert.equal(answer, i % 2 === 0 ? 'OK' : String((i - 1) / 2));
    });
    assert.equal(await redis.unlink('large'), 1);
    assert.equal(await redis.get('large'), null);
    await redis.quit();
  });
}

test('without the password nothing is told', async () => {
  const file = join(folder, 'password');
  await writeFile(file, 'open sesame\n');
  const closed = await KvNode.start(['--password-file', file]);
  try {
    assert.match(await closed.cli('get', 'a'), /NOAUTH/);
    assert.match(await closed.cli('auth', 'wrong'), /WRONGPASS/);
    assert.equal(await closed.cli('--no-auth-warning', '-a', 'open sesame', 'ping'), 'PONG');
    const redis = new Redis({ port: closed.port, password: 'open sesame' });
    assert.equal(await redis.set('a', 'b'), 'OK');
    await redis.quit();
    const order = await fetch(`${closed.http}/kv/drop`, { method: 'POST', body: '{"tenant":"t"}' });
    assert.equal(order.status, 401);
  } finally {
    await closed.stop();
  }
});

test('redis-cli and ioredis speak TLS, and trust whom they were told to', async () => {
  const certificate = join(folder, 'cert.pem');
  const key = join(folder, 'key.pem');
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1'],
    ...['-keyout', key, '-out', certificate],
  ], { stdio: 'ignore' });
  const secure = await KvNode.start(['--tls-cert', certificate, '--tls-key', key]);
  try {
    assert.match(secure.url, /^rediss:/);
    const tls = ['--tls', '--cacert', certificate];
    assert.equal(await secure.cli(...tls, 'set', 'a', 'one'), 'OK');
    assert.equal(await secure.cli(...tls, 'get', 'a'), 'one');
    await assert.rejects(secure.cli('--tls', 'get', 'a'), 'nobody has told it of that certificate');

    const redis = new Redis({
      host: '127.0.0.1', port: secure.port, tls: { ca: await readFile(certificate) },
    });
    const value = randomBytes(3_000_000);
    assert.equal(await redis.set('large', value), 'OK');
    assert.ok(value.equals(await redis.getBuffer('large')));
    await redis.quit();
    const stranger = new Redis({
      host: '127.0.0.1', port: secure.port, tls: {}, lazyConnect: true, retryStrategy: () => null,
    });
    stranger.on('error', () => {});
    await assert.rejects(stranger.connect());
    const plain = await secure.raw('PING\r\n');
    assert.doesNotMatch(plain, /PONG/);
  } finally {
    await secure.stop();
  }
});

test('ten thousand idle connections take little memory, and nobody notices them', async () => {
  const kIdle = 10_000;
  const idle = await KvNode.start();
  try {
    await idle.cli('set', 'a', 'one');
    const before = idle.residentBytes();
    const sockets = [];
    while (sockets.length < kIdle) {
      const more = Array.from({ length: 200 }, () => createConnection(idle.port, '127.0.0.1'));
      await Promise.all(more.map((socket) => once(socket, 'connect')));
      sockets.push(...more);
    }
    // Each has said something, so that whatever a client costs is there.
    for (const socket of sockets) socket.write('PING\r\n');
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    assert.match(await idle.cli('info', 'clients'), new RegExp(`connected_clients:${kIdle + 1}\\b`));
    assert.equal(await idle.cli('get', 'a'), 'one');
    const each = (idle.residentBytes() - before) / kIdle;
    assert.ok(each < 8 * 1024, `${each} bytes each`);
    for (const socket of sockets) socket.destroy();
  } finally {
    await idle.stop();
  }
});

test('another machine may reach no node without a password', async () => {
  const start = promisify(execFile)(process.env.SLUICE_BIN, [
    'kvnode', '--bind', '0.0.0.0', '--port', '0', '--http-port', '0', '--dram', '64MiB',
  ]);
  await assert.rejects(start, /password/);
});

test('what is no request ends the connection with a word, and nobody else', async () => {
  assert.match(await node.raw('*2\r\n$3\r\nGET\r\n$536870913\r\n', { end: false }), /^-ERR Protocol error/);
  assert.match(await node.raw(Buffer.alloc(80_000, 0xff), { end: false }), /^-ERR Protocol error/);
  assert.equal(await node.raw('*1\r\n$4\r\nPI'), '');
  assert.equal(await node.raw('PING\r\nECHO "a b"\r\nQUIT\r\n', { end: false }), '+PONG\r\n$3\r\na b\r\n+OK\r\n');
  assert.equal(await node.cli('ping'), 'PONG');
});

test('values on the SSD outlive the process', async () => {
  const ssd = ['--ssd', `${join(folder, 'ssd')}:1GiB`];
  const first = await KvNode.start(ssd);
  const value = 'v'.repeat(100_000);
  await first.cli('set', 'kept', value, 'EX', '1000');
  await first.stop();
  const second = await KvNode.start(ssd);
  assert.equal(await second.cli('get', 'kept'), value);
  assert.ok(Number(await second.cli('ttl', 'kept')) > 900);
  await second.stop();
});

test('planted faults spoil answers', async () => {
  const value = 'v'.repeat(10_000);
  const cut = await KvNode.start([], { faults: 'node_cut' });
  await cut.cli('set', 'a', value);
  const answer = await cut.raw('GET a\r\n', { end: false });
  assert.ok(answer.startsWith('$10000') && answer.length < 10_000, `${answer.length}`);
  await cut.stop();
  const flip = await KvNode.start([], { faults: 'node_flip' });
  await flip.cli('set', 'a', value);
  const flipped = await flip.cli('get', 'a');
  assert.equal(flipped.length, value.length);
  assert.notEqual(flipped, value);
  await flip.stop();
});
