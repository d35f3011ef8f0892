// The largest value that Redis takes, and one MiB more. (redis_cli: run.sh skips this file where Redis'
// programs are missing.)

import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { test } from 'node:test';

import { KvNode } from '../e2e/kv_node.mjs';

const kMost = 512 * 1024 * 1024;

/** What is answered to `pieces`, as far as `bytes` or the end of the connection. */
async function ask(port, pieces, bytes) {
  const socket = createConnection(port, '127.0.0.1');
  const answer = [];
  let missing = bytes;
  socket.on('data', (data) => {
    answer.push(data);
    missing -= data.length;
    if (missing <= 0) socket.end();
  });
  const closed = once(socket, 'close');
  for (const piece of pieces) socket.write(piece);
  await closed;
  return Buffer.concat(answer);
}

test('512 MiB come back as they were, and 513 are refused', async () => {
  const node = await KvNode.start([], { dram: '2GiB' });
  try {
    const value = randomFillSync(Buffer.alloc(kMost));
    const set = [`*3\r\n$3\r\nSET\r\n$7\r\nlargest\r\n$${kMost}\r\n`, value, '\r\n'];
    assert.equal((await ask(node.port, set, 5)).toString(), '+OK\r\n');
    const head = `$${kMost}\r\n`;
    const answer = await ask(node.port, ['GET largest\r\n'], head.length + kMost + 2);
    assert.equal(answer.length, head.length + kMost + 2);
    assert.ok(value.equals(answer.subarray(head.length, head.length + kMost)));
    // Held once: neither end of a connection keeps a copy.
    const resident = node.residentBytes();
    assert.ok(resident < 1.25 * kMost, `${resident} bytes`);

    const refused = await ask(
      node.port, [`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$${513 * 1024 * 1024}\r\n`], Infinity);
    assert.match(refused.toString(), /^-ERR Protocol error/);
    assert.equal(await node.cli('exists', 'a'), '0');
    assert.equal(await node.cli('strlen', 'largest'), String(kMost));
  } finally {
    await node.stop();
  }
});
