// A service of its own for each test file: the real program, on free ports, with its state in a
// temporary folder. It is gone when the test file is, however that ends.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import OpenAI from 'openai';

import { readMetrics } from './metrics.mjs';
import { childrenOf, commandLine } from './processes.mjs';
import { seconds, waitUntil, within } from './waiting.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const binary = process.env.SLUICE_BIN ?? path.join(root, 'build', 'sluice');

/** What Krill answers, computed by PyTorch; by name. */
export const reference = new Map(
  JSON.parse(readFileSync(path.join(root, 'models/krill/reference.json'), 'utf8')).map((row) => [
    row.name,
    row,
  ]),
);

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** The program as a child whose output is kept. */
class Program {
  stdout = '';
  stderr = '';

  constructor(args, environment = {}) {
    this.args = args;
    this.child = spawn(binary, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    running.add(this.child);
    this.child.stdout.setEncoding('utf8').on('data', (text) => (this.stdout += text));
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code, signal]) => {
      running.delete(this.child);
      return { code, signal };
    });
  }

  get pid() {
    return this.child.pid;
  }

  kill(signal) {
    this.child.kill(signal);
  }

  /** The first line of JSON on stdout with this event. */
  async event(name) {
    let end = null;
    this.ended.then((how) => (end = how));
    const line = await waitUntil(
      `sluice ${this.args[0]} says "${name}"`,
      () => {
        const lines = this.stdout.split('\n').slice(0, -1);
        return lines.map((text) => JSON.parse(text)).find((each) => each.event === name) ?? end;
      },
      seconds(60),
    );
    if (line !== end) return line;
    const how = `ended (${end.code ?? end.signal}) before "${name}"`;
    throw new Error(`sluice ${this.args.join(' ')} ${how}:\n${this.stderr}`);
  }
}

/** Starts a part of the service alone, and waits until it can answer, or until another event. */
export async function startProgram(args, environment, event = 'ready') {
  const program = new Program(args, environment);
  try {
    return { program, [event]: await program.event(event) };
  } catch (error) {
    program.kill('SIGKILL');
    throw error;
  }
}

/** Runs the program to its end. */
export async function runProgram(args, timeout = seconds(30)) {
  const program = new Program(args);
  try {
    const end = await within(`sluice ${args.join(' ')} ends`, program.ended, timeout);
    return { ...end, stdout: program.stdout, stderr: program.stderr };
  } finally {
    program.kill('SIGKILL');
  }
}

/** A new key of `tenant`, of the service that `config` describes. */
export async function addKey(tenant, config) {
  const made = await runProgram(['ctl', 'keys', 'add', '--tenant', tenant, '--config', config]);
  if (made.code !== 0) throw new Error(made.stderr);
  return made.stdout.trim();
}

export function temporaryFolder() {
  return mkdtempSync(path.join(tmpdir(), 'sluice-e2e-'));
}

export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
}

/** OpenAI's client; what fails once is for the tests to see. */
export function clientOf(url, apiKey = 'none') {
  return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
}

class Service {
  /** `ready`: what the program said when it could answer. */
  constructor(program, ready, folder) {
    this.program = program;
    this.folder = folder;
    this.url = ready.url;
    this.admin = ready.admin;
    this.pid = ready.pid;
    this.gateway = ready.gateway;
    this.workers = ready.workers;
  }

  get host() {
    return new URL(this.url).hostname;
  }
  get port() {
    return Number(new URL(this.url).port);
  }

  /** Everything the service has logged. */
  get log() {
    return this.program.stderr;
  }
  get errorLines() {
    return this.log.split('\n').filter((line) => /^\S+ error /.test(line));
  }

  openai() {
    return clientOf(this.url);
  }

  /** POSTs `body` (a string as it is, else as JSON). */
  post(where, body, { headers = {}, ...options } = {}) {
    return fetch(`${this.url}${where}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...options,
    });
  }

  metrics() {
    return readMetrics(this.admin);
  }
  workerMetrics(index = 0) {
    return readMetrics(this.workers[index].url);
  }

  /** Waits until a metric of the gateway has `value`. */
  async gatewayReaches(name, value, labels = {}) {
    return waitUntil(`${name} is ${value}`, async () => {
      return (await this.metrics()).value(name, labels) === value;
    });
  }
  async workerReaches(name, value, labels = {}, index = 0) {
    return waitUntil(`${name} of worker ${index} is ${value}`, async () => {
      return (await this.workerMetrics(index)).value(name, labels) === value;
    });
  }

  /** Nothing is left of any request, in the gateway or the engine. */
  async becomesIdle() {
    await this.gatewayReaches('sluice_open_streams', 0);
    await this.gatewayReaches('sluice_queue_depth', 0);
    await this.gatewayReaches('sluice_leases', 0);
    await this.workerReaches('sluice_engine_running', 0);
    await this.workerReaches('sluice_engine_waiting', 0);
  }

  /** The rows of requests so far, newest last. */
  async records() {
    const text = await (await fetch(`${this.admin}/admin/records?since=1h`)).text();
    return text.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }
  /** The row of a request; they are written in batches. */
  recordOf(id) {
    return waitUntil(`the record of ${id} is there`, async () =>
      (await this.records()).find((row) => row.request_id === id),
    );
  }

  async readyStatus() {
    const response = await fetch(`${this.url}/ready`);
    await response.arrayBuffer();
    return response.status;
  }

  /** The pid of the child that runs `sluice COMMAND`; undefined while there is none. */
  childPid(command) {
    return childrenOf(this.pid).find((pid) => commandLine(pid).includes(command));
  }

  /** Ends the service as an operator would, and leaves nothing behind. */
  async stop() {
    this.program.kill('SIGTERM');
    try {
      return await within('the service stops', this.program.ended, seconds(40));
    } finally {
      this.program.kill('SIGKILL');
      removeFolder(this.folder);
    }
  }
}

/** Starts `sluice up` and waits until it can answer. */
export async function startService(args = [], folder = temporaryFolder()) {
  const program = new Program(['up', '--port', '0', '--state', folder, '--json', ...args]);
  try {
    return new Service(program, await program.event('ready'), folder);
  } catch (error) {
    program.kill('SIGKILL');
    removeFolder(folder);
    throw error;
  }
}
