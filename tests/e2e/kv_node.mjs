// A cache node of its own, and Redis' own programs that talk to it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const kProgram = process.env.SLUICE_BIN;

export class KvNode {
  /** Started, and ready when this resolves. `faults` are planted in it. */
  static async start(args = [], { faults = '', dram = '256MiB' } = {}) {
    const node = new KvNode();
    node.process = spawn(
      kProgram,
      ['kvnode', '--port', '0', '--http-port', '0', '--dram', dram, '--json', ...args],
      { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, SLUICE_FAULTS: faults } },
    );
    const [line] = await once(createInterface({ input: node.process.stdout }), 'line');
    const ready = JSON.parse(line);
    node.url = ready.url;
    node.port = Number(new URL(ready.url).port);
    node.http = ready.http;
    return node;
  }

  async stop() {
    if (this.process.exitCode !== null) return;
    this.process.kill('SIGTERM');
    await once(this.process, 'exit');
  }

  /** Bytes of memory that it has. */
  residentBytes() {
    const status = readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
  }

  /** What redis-cli prints, without the last line break. */
  async cli(...args) {
    const { stdout } = await promisify(execFile)('redis-cli', ['-p', String(this.port), ...args]);
    return stdout.replace(/\n$/, '');
  }

  /** What a connection brings that sends `data`, until the node ends it. */
  async raw(data, { end = true } = {}) {
    const socket = createConnection(this.port, '127.0.0.1');
    const pieces = [];
    socket.on('data', (piece) => pieces.push(piece));
    socket.write(data);
    if (end) socket.end();
    await Promise.race([once(socket, 'close'), once(socket, 'error')]).catch(() => {});
    return Buffer.concat(pieces).toString('latin1');
  }
}
